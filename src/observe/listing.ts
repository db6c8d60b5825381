// The runtime's full lists, grouped by pod, and whether they still match what was read of a pod. Pure.
import { PodSandboxState, type Container, type PodSandbox } from '../cri/gen/cri.ts';
import { podUid, type PodUid } from '../core/ids.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { observedState, POD_NAME_LABEL, POD_NAMESPACE_LABEL, POD_UID_LABEL } from './snapshot-of.ts';

export type ListedPod = {
  readonly name: string;
  readonly namespace: string;
  /** Sandbox and container ids with their states. */
  readonly states: Map<string, string>;
};

export type Listing = {
  readonly pods: ReadonlyMap<PodUid, ListedPod>;
  /** Sandboxes that a filter by label would miss. */
  readonly unlabelled: ReadonlyMap<PodUid, readonly string[]>;
};

const sandboxState = (ready: boolean): string => (ready ? 'ready' : 'notReady');

export function groupByPod(sandboxes: readonly PodSandbox[], containers: readonly Container[]): Listing {
  const pods = new Map<PodUid, ListedPod>();
  const unlabelled = new Map<PodUid, string[]>();
  const podOf = (uid: PodUid, name: string, namespace: string): ListedPod => {
    let pod = pods.get(uid);
    if (pod === undefined) pods.set(uid, (pod = { name, namespace, states: new Map() }));
    return pod;
  };
  for (const sandbox of sandboxes) {
    const { metadata } = sandbox;
    if (metadata === undefined || metadata.uid === '') continue;
    const uid = podUid(metadata.uid);
    const pod = podOf(uid, metadata.name, metadata.namespace);
    pod.states.set(sandbox.id, sandboxState(sandbox.state === PodSandboxState.SANDBOX_READY));
    if (sandbox.labels[POD_UID_LABEL] !== uid) unlabelled.set(uid, [...(unlabelled.get(uid) ?? []), sandbox.id]);
  }
  for (const container of containers) {
    const uid = container.labels[POD_UID_LABEL];
    if (uid === undefined || uid === '') continue;
    const { [POD_NAME_LABEL]: name = '', [POD_NAMESPACE_LABEL]: namespace = '' } = container.labels;
    podOf(podUid(uid), name, namespace).states.set(container.id, observedState(container.state));
  }
  return { pods, unlabelled };
}

export function listingDiffers(listed: ListedPod | undefined, read: PodSnapshot | undefined): boolean {
  if (listed === undefined || read === undefined) return listed !== read;
  if (listed.states.size !== read.sandboxes.length + read.containers.length) return true;
  return (
    read.sandboxes.some((s) => listed.states.get(s.id) !== sandboxState(s.ready)) ||
    read.containers.some((c) => listed.states.get(c.id) !== c.state)
  );
}
