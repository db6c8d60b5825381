// Figures and pods for tests of eviction, short to write.
import type { Pod, PodSpec } from '../core/pod.ts';
import type { FsFigure, NodeFigures, PodFigures } from './figures.ts';

const at = (ms: number): { readonly ms: number } => ({ ms });

export const fs = (more: Partial<FsFigure>, ms = 0): FsFigure => ({
  time: at(ms),
  availableBytes: undefined,
  capacityBytes: undefined,
  usedBytes: undefined,
  inodesFree: undefined,
  inodes: undefined,
  inodesUsed: undefined,
  ...more,
});

export const nodeFigures = (more: Partial<NodeFigures>): NodeFigures => ({
  systemContainers: [],
  memory: undefined,
  ...more,
});

export const memory = (
  availableBytes: number,
  workingSetBytes: number,
  ms = 0,
): NonNullable<NodeFigures['memory']> => ({
  time: at(ms),
  availableBytes,
  workingSetBytes,
});

export const podFigures = (uid: string, more: Partial<PodFigures> = {}): PodFigures => ({
  podRef: { uid },
  containers: [],
  memory: undefined,
  ...more,
});

export const pod = (name: string, spec: Partial<PodSpec> = {}): Pod => ({
  metadata: { name, namespace: 'ns', uid: name },
  spec: { containers: [{ name: 'c' }], ...spec },
});

export const asking = (requests: Record<string, string>): Partial<PodSpec> => ({
  containers: [{ name: 'c', resources: { requests } }],
});
