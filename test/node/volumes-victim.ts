// The process that the crash test kills: a volume manager that takes over what is on disk, mounts ten pods with five
// volumes each, and mounts and unmounts half of them for ever. argv[2]: the root directory.
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { createVolumes } from '../../src/volumes/create.ts';
import { crashPod, PODS, STEADY } from './volumes-crash-pods.ts';

const signal = new AbortController().signal;
const { manager } = createVolumes(
  {
    objects: {
      configMap: () => Promise.resolve({ metadata: { name: 'c' }, data: { a: 'alpha', 'b.txt': 'beta' } }),
      secret: () => Promise.resolve({ metadata: { name: 's' }, data: { key: 'dmFsdWU=' } }),
    },
    facts: { factsOf: () => ({ podIPs: [], hostIPs: [] }), allocatable: () => ({ memory: '64Mi' }) },
    tokens: { token: () => Promise.resolve({ token: 't', refreshAtMs: Infinity }) },
    events: { pod: () => undefined, node: () => undefined },
    clock: systemClock,
    log: silentLogger,
  },
  { rootDir: process.argv[2] ?? '' },
);
await manager.reconstruct(signal);
process.stdout.write('started\n');
const steady = Array.from({ length: STEADY }, (_, i) => crashPod(i));
const moving = Array.from({ length: PODS - STEADY }, (_, i) => crashPod(STEADY + i));
for (const pod of [...steady, ...moving]) manager.setDesired(pod);
manager.removeUnknown(() => false);
await Promise.all([...steady, ...moving].map((pod) => manager.waitMounted(pod, signal)));
process.stdout.write('mounted\n');
for (;;) {
  await Promise.all(
    moving.map(async (pod) => {
      await manager.waitMounted(pod, signal);
      for (const index of [0, 3]) {
        await manager
          .prepareSubPath(pod, pod.spec.containers[0] ?? { name: 'c' }, index, 'sub', signal)
          .catch(() => undefined);
      }
      manager.podRemoved(pod.metadata.uid ?? '');
      await manager.waitUnmounted(pod.metadata.uid ?? '', signal);
      manager.reopen(pod.metadata.uid ?? '');
    }),
  );
}
