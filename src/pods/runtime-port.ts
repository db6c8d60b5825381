// What a sync asks of the pod runtime, with everything it needs beside the pod: pull secrets, probe results, and word of
// how far a resize has come.
import { uidOf, type Pod } from '../core/pod.ts';
import { emptySnapshot, type MadePod, type PodSnapshot } from '../core/snapshot.ts';
import type { PodRuntime, PodSyncRequest } from '../runtime/pod-runtime.ts';
import type { PodSyncResult } from '../runtime/sync-result.ts';
import type { KillOptions, PodRuntimePort, RuntimeSyncOptions, RuntimeSyncResult } from './sync-pod.ts';

export type RuntimePortDeps = {
  readonly runtime: Pick<PodRuntime, 'syncPod' | 'killPod'>;
  readonly pullSecrets: (pod: Pod, signal: AbortSignal) => Promise<PodSyncRequest['pullSecrets']>;
  readonly probes: PodSyncRequest['probes'];
  /** Told before and after: a resize may begin, end or fail in between. */
  readonly resizes: { synced(pod: Pod, snapshot: PodSnapshot | undefined, error: string | undefined): void };
  readonly observedSandbox: (made: NonNullable<PodSyncResult['made']>['sandbox']) => MadePod['sandbox'];
};

export class RuntimePort implements PodRuntimePort {
  readonly #deps: RuntimePortDeps;

  constructor(deps: RuntimePortDeps) {
    this.#deps = deps;
  }

  async sync(
    pod: Pod,
    snapshot: PodSnapshot | undefined,
    options: RuntimeSyncOptions,
    signal: AbortSignal,
  ): Promise<RuntimeSyncResult> {
    const { runtime, pullSecrets, probes, resizes, observedSandbox } = this.#deps;
    const secrets = await pullSecrets(pod, signal);
    resizes.synced(pod, snapshot, undefined);
    const { made, resizeError, ...result } = await runtime.syncPod(
      {
        pod,
        snapshot: snapshot ?? emptySnapshot(uidOf(pod), pod.metadata.name, pod.metadata.namespace ?? ''),
        pullSecrets: secrets,
        probes,
        ...options,
        isTerminating: () => signal.aborted,
      },
      signal,
    );
    resizes.synced(pod, snapshot, resizeError);
    return made === undefined ? result : { ...result, made: { ...made, sandbox: observedSandbox(made.sandbox) } };
  }

  kill(
    pod: Pod | undefined,
    snapshot: PodSnapshot,
    { graceSeconds, onContainersStopped }: KillOptions,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#deps.runtime.killPod(
      { pod, snapshot, graceOverrideSeconds: graceSeconds, onContainersStopped },
      signal,
    );
  }
}
