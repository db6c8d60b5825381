// Pods that have memory and huge pages of particular NUMA nodes.
import { container, POLITE, type PodKind } from './pods.ts';

type Amounts = Record<string, string>;

const exactly = (limits: Amounts): Record<string, unknown> => ({ resources: { limits, requests: limits } });

export const MEMORY_KINDS: Readonly<Record<string, PodKind>> = {
  memory: {
    fate: 'runs',
    spec: (r) => ({
      containers: [container('main', POLITE, exactly({ cpu: '1', memory: `${r.int(1, 12)}Gi` }))],
    }),
  },
  'memory-huge': {
    fate: 'runs',
    spec: (r) => ({
      containers: [
        container('main', POLITE, exactly({ cpu: '500m', memory: '1Gi', 'hugepages-2Mi': `${r.int(1, 6) * 256}Mi` })),
      ],
    }),
  },
  'memory-pair': {
    fate: 'runs',
    spec: (r) => ({
      initContainers: [
        container('first', 'sleep 2', exactly({ cpu: '1', memory: `${r.int(1, 14)}Gi` })),
        container('beside', POLITE, { restartPolicy: 'Always', ...exactly({ cpu: '100m', memory: '1Gi' }) }),
        container('second', 'sleep 1', exactly({ cpu: '100m', memory: `${r.int(1, 8)}Gi` })),
      ],
      containers: [
        container('a', POLITE, exactly({ cpu: '1', memory: `${r.int(1, 6)}Gi` })),
        container('b', POLITE, exactly({ cpu: '100m', memory: `${r.int(1, 6)}Gi` })),
      ],
    }),
  },
  'memory-crashing': {
    fate: 'unsteady',
    spec: (r) => ({
      containers: [
        container('main', `sleep ${r.int(5, 200)}; exit 1`, exactly({ cpu: '1', memory: `${r.int(1, 8)}Gi` })),
      ],
    }),
  },
  'memory-job': {
    fate: 'ends',
    spec: (r) => ({
      restartPolicy: 'Never',
      containers: [
        container('main', `sleep ${r.int(1, 200)}; exit 0`, exactly({ cpu: '1', memory: `${r.int(2, 10)}Gi` })),
      ],
    }),
  },
  'memory-large': {
    fate: 'unsteady',
    spec: (r) => ({
      containers: [container('main', POLITE, exactly({ cpu: '2', memory: `${r.int(34, 44)}Gi` }))],
    }),
  },
};

/** Whose containers the agent has no reason of its own to end. */
export const STEADY_MEMORY_KINDS: readonly string[] = [
  'memory',
  'memory-huge',
  'memory-pair',
  'memory-crashing',
  'memory-large',
];
