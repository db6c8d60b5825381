// Observed containers for tests: a running one of which nothing else is known, with what matters put over it.
import { containerId, sandboxId } from './ids.ts';
import type { ObservedContainer } from './snapshot.ts';

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
