// The image pull secrets of a pod. One that cannot be had is told of, and the pull is tried without it.
import type { EventRecorder } from '../core/events.ts';
import type { Secret } from '../core/node.ts';
import { namespaceOf, type Pod } from '../core/pod.ts';
import { isFault } from '../lib/errors.ts';

export type PullSecretsDeps = {
  readonly secret: (namespace: string, name: string, signal: AbortSignal) => Promise<Secret>;
  readonly events: EventRecorder;
};

export async function pullSecretsOf(
  { secret, events }: PullSecretsDeps,
  pod: Pod,
  signal: AbortSignal,
): Promise<readonly Secret[]> {
  const found: Secret[] = [];
  const missing: string[] = [];
  for (const { name } of pod.spec.imagePullSecrets ?? []) {
    if (name === undefined || name === '') continue;
    try {
      found.push(await secret(namespaceOf(pod), name, signal));
    } catch (err) {
      signal.throwIfAborted();
      if (!isFault(err)) throw err;
      missing.push(name);
    }
  }
  if (missing.length > 0)
    events.pod(
      pod,
      'Warning',
      'FailedToRetrieveImagePullSecret',
      `Unable to retrieve some image pull secrets (${missing.join(', ')}); attempting to pull the image may not succeed.`,
    );
  return found;
}
