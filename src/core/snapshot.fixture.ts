// Observed containers for tests: a running one of which nothing else is known, with what matters put over it.
import { containerId, podUid, sandboxId } from './ids.ts';
import { emptySnapshot, type ObservedContainer, type PodSnapshot } from './snapshot.ts';

export const observedContainer = (
  name: string,
  { id, ...more }: Partial<Omit<ObservedContainer, 'id' | 'name'>> & { readonly id?: string } = {},
): ObservedContainer => ({
  id: containerId(id ?? name),
  name,
  sandboxId: sandboxId('s'),
  attempt: 0,
  state: 'running',
  createdAt: 1n,
  startedAt: 0n,
  finishedAt: 0n,
  exitCode: 0,
  reason: '',
  message: '',
  image: '',
  imageRef: '',
  imageId: '',
  labels: {},
  annotations: {},
  logPath: '',
  mounts: [],
  ...more,
});

/** A pod with one running container. */
export const aliveSnapshot = (uid: string): PodSnapshot => ({
  ...emptySnapshot(podUid(uid), uid, 'n'),
  containers: [observedContainer('c')],
});
