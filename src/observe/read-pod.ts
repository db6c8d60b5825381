// One read of one pod from the runtime: lists by its UID label, then the status of each part. What vanishes while we
// read is left out; any other failure fails the read, so that a snapshot is never half a truth.
import { POD_NAME, POD_NAMESPACE, POD_UID } from '../core/runtime-labels.ts';
import type { Container, PodSandbox } from '../cri/gen/cri.ts';
import { ContainerState, PodSandboxState } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import type { PodUid } from '../core/ids.ts';
import type { MadePod, ObservedContainer, ObservedSandbox, PodSnapshot } from '../core/snapshot.ts';
import { isFault } from '../lib/errors.ts';
import { observedContainer, observedSandbox, type PodRead } from './snapshot-of.ts';

export type PodReader = Pick<CriRuntime, 'listPodSandbox' | 'listContainers' | 'podSandboxStatus' | 'containerStatus'>;

/** `unlabelled`: sandboxes that name the pod's UID in their metadata only (made by other tools). */
export async function readPod(
  runtime: PodReader,
  uid: PodUid,
  previous: PodSnapshot | undefined,
  unlabelled: readonly string[],
  signal: AbortSignal,
): Promise<PodRead> {
  const labelSelector = { [POD_UID]: uid };
  const [{ items }, { containers: listed }] = await Promise.all([
    runtime.listPodSandbox({ filter: { labelSelector } }, signal),
    runtime.listContainers({ filter: { labelSelector } }, signal),
  ]);
  const sandboxIds = new Set([...items.map((s) => s.id), ...unlabelled]);
  const [sandboxes, containers] = await Promise.all([
    readSandboxes(runtime, items, sandboxIds, previous, signal),
    readContainers(runtime, listed, previous, signal),
  ]);
  const named = items[0]?.metadata;
  const labels = listed[0]?.labels ?? {};
  return {
    uid,
    name: named?.name ?? labels[POD_NAME] ?? previous?.name ?? '',
    namespace: named?.namespace ?? labels[POD_NAMESPACE] ?? previous?.namespace ?? '',
    sandboxes,
    containers,
  };
}

/** A pod that was made just now: there is nothing to find, only its containers to read. Undefined when one of them has gone. */
export async function readMadePod(
  runtime: PodReader,
  uid: PodUid,
  made: MadePod,
  signal: AbortSignal,
): Promise<PodRead | undefined> {
  const answers = await Promise.all(
    made.containerIds.map((containerId) => unlessGone(runtime.containerStatus({ containerId }, signal))),
  );
  const statuses = answers.map((answer) => answer?.status).filter((status) => status !== undefined);
  const labels = statuses[0]?.labels;
  if (labels === undefined || statuses.length < answers.length) return undefined;
  return {
    uid,
    name: labels[POD_NAME] ?? '',
    namespace: labels[POD_NAMESPACE] ?? '',
    sandboxes: [made.sandbox],
    containers: statuses.map((status) => observedContainer(status, made.sandbox.id)),
  };
}

/**
 * A pod whose containers, and perhaps `sandboxes`, were all stopped just now: only how its containers ended is left to
 * read. Undefined when one of them has gone or still runs.
 */
export async function readStoppedPod(
  runtime: PodReader,
  previous: PodSnapshot,
  stopped: { readonly sandboxes: boolean },
  signal: AbortSignal,
): Promise<PodRead | undefined> {
  const containers = await Promise.all(
    previous.containers.map(async (known): Promise<ObservedContainer | undefined> => {
      if (known.state === 'exited') return known;
      const answer = await unlessGone(runtime.containerStatus({ containerId: known.id }, signal));
      return answer?.status === undefined ? undefined : observedContainer(answer.status, known.sandboxId);
    }),
  );
  const ended = containers.filter((c) => c !== undefined && c.state !== 'running');
  if (ended.length < containers.length) return undefined;
  const { uid, name, namespace } = previous;
  const sandboxes = stopped.sandboxes
    ? previous.sandboxes.map((s): ObservedSandbox => ({ ...s, ready: false, ips: [] }))
    : previous.sandboxes;
  return { uid, name, namespace, sandboxes, containers: ended.filter((c) => c !== undefined) };
}

async function readSandboxes(
  runtime: PodReader,
  listed: readonly PodSandbox[],
  ids: ReadonlySet<string>,
  previous: PodSnapshot | undefined,
  signal: AbortSignal,
): Promise<ObservedSandbox[]> {
  const isReady = new Map(listed.map((s) => [s.id, s.state === PodSandboxState.SANDBOX_READY]));
  const reads = [...ids].map(async (id): Promise<ObservedSandbox | undefined> => {
    const known = previous?.sandboxes.find((s) => s.id === id);
    if (known !== undefined && isSettled(known) && isReady.get(id) === known.ready) return known;
    const answer = await unlessGone(runtime.podSandboxStatus({ podSandboxId: id }, signal));
    return answer?.status === undefined ? undefined : observedSandbox(answer.status);
  });
  return (await Promise.all(reads)).filter((s) => s !== undefined);
}

/** Dead, or ready with all it will ever say: there is nothing new to read while it stays that way. */
const isSettled = ({ ready, hostNetwork, ips }: ObservedSandbox): boolean => !ready || hostNetwork || ips.length > 0;

async function readContainers(
  runtime: PodReader,
  listed: readonly Container[],
  previous: PodSnapshot | undefined,
  signal: AbortSignal,
): Promise<ObservedContainer[]> {
  const reads = listed.map(async (container): Promise<ObservedContainer | undefined> => {
    const known = previous?.containers.find((c) => c.id === container.id);
    // What a dead container says about itself does not change any more: a pile of them costs nothing to re-read.
    if (known?.state === 'exited' && container.state === ContainerState.CONTAINER_EXITED) return known;
    const answer = await unlessGone(runtime.containerStatus({ containerId: container.id }, signal));
    return answer?.status === undefined ? undefined : observedContainer(answer.status, container.podSandboxId);
  });
  return (await Promise.all(reads)).filter((c) => c !== undefined);
}

async function unlessGone<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (err) {
    if (isFault(err, 'notFound')) return undefined;
    throw err;
  }
}
