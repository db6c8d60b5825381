// The runtime's full lists, grouped by pod, and whether they still match what was read of a pod. Pure.
import { POD_NAME, POD_NAMESPACE, POD_UID } from '../core/runtime-labels.ts';
import { PodSandboxState, Signal, type Container, type PodSandbox } from '../cri/gen/cri.ts';
import { podUid, type PodUid } from '../core/ids.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { assembleSnapshot, observedContainer, observedSandbox, observedState } from './snapshot-of.ts';

export type ListedPod = {
  readonly name: string;
  readonly namespace: string;
  readonly sandboxes: PodSandbox[];
  readonly containers: Container[];
};

export type Listing = {
  readonly pods: ReadonlyMap<PodUid, ListedPod>;
  /** Sandboxes that a filter by label would miss. */
  readonly unlabelled: ReadonlyMap<PodUid, readonly string[]>;
};

export function groupByPod(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Listing {
  const pods = new Map<PodUid, ListedPod>();
  const unlabelled = new Map<PodUid, string[]>();
  const podOf = (uid: PodUid, name: string, namespace: string): ListedPod => {
    let pod = pods.get(uid);
    if (pod === undefined) pods.set(uid, (pod = { name, namespace, sandboxes: [], containers: [] }));
    return pod;
  };
  for (const sandbox of sandboxes) {
    const { metadata } = sandbox;
    if (metadata === undefined || metadata.uid === '') continue;
    const uid = podUid(metadata.uid);
    podOf(uid, metadata.name, metadata.namespace).sandboxes.push(sandbox);
    if (sandbox.labels[POD_UID] !== uid) unlabelled.set(uid, [...(unlabelled.get(uid) ?? []), sandbox.id]);
  }
  for (const container of containers) {
    const uid = container.labels[POD_UID];
    if (uid === undefined || uid === '') continue;
    const { [POD_NAME]: name = '', [POD_NAMESPACE]: namespace = '' } = container.labels;
    podOf(podUid(uid), name, namespace).containers.push(container);
  }
  return { pods, unlabelled };
}

export function listingDiffers(listed: ListedPod | undefined, read: PodSnapshot | undefined): boolean {
  if (listed === undefined || read === undefined) return listed !== read;
  const { sandboxes, containers } = listed;
  if (sandboxes.length !== read.sandboxes.length || containers.length !== read.containers.length) return true;
  const ready = new Map(read.sandboxes.map((s) => [s.id as string, s.ready]));
  const states = new Map(read.containers.map((c) => [c.id as string, c.state]));
  return (
    sandboxes.some((s) => ready.get(s.id) !== isSandboxReady(s)) ||
    containers.some((c) => states.get(c.id) !== observedState(c.state))
  );
}

const isSandboxReady = (sandbox: PodSandbox): boolean => sandbox.state === PodSandboxState.SANDBOX_READY;

/** What the lists alone tell of a pod: enough to know that it is there and what runs, too little to plan with. */
export function listedSnapshot(uid: PodUid, listed: ListedPod, version: number): PodSnapshot {
  const sandboxes = listed.sandboxes.map((s) =>
    observedSandbox({ ...s, network: { ip: '', additionalIps: [] }, linux: undefined }),
  );
  const containers = listed.containers.map((c) =>
    observedContainer(
      { ...c, ...NOT_LISTED, stopSignal: Signal.RUNTIME_DEFAULT, resources: undefined, user: undefined },
      c.podSandboxId,
    ),
  );
  const read = { uid, name: listed.name, namespace: listed.namespace, sandboxes, containers };
  return { ...assembleSnapshot(read, [], version), partial: true };
}

/** Where dead ones may be missing in the lists, what they lack is dead; whether it is still there a later list tells. */
export function withUnlisted(shown: PodSnapshot, known: PodSnapshot | undefined): PodSnapshot {
  const ids = new Set<string>([...shown.sandboxes, ...shown.containers].map(({ id }) => id));
  const sandboxes = (known?.sandboxes ?? [])
    .filter((s) => !ids.has(s.id))
    .map((s) => ({ ...s, ready: false, ips: [] }));
  const containers = (known?.containers ?? []).filter((c) => !ids.has(c.id)).map((c) => ({ ...c, state: EXITED }));
  const read = {
    ...shown,
    sandboxes: [...shown.sandboxes, ...sandboxes],
    containers: [...shown.containers, ...containers],
  };
  return { ...assembleSnapshot(read, [], shown.version), partial: true };
}

const EXITED = 'exited' as const;
const NOT_LISTED = { startedAt: 0n, finishedAt: 0n, exitCode: 0, reason: '', message: '', mounts: [], logPath: '' };
