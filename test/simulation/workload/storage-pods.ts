// Pods with persistent volumes and volumes of their own, all of one CSI driver.
import type { Random } from '../engine/random.ts';
import { container, POLITE, type PodKind } from './pods.ts';

export const CLAIMS: readonly string[] = Array.from({ length: 6 }, (_, i) => `claim-${i}`);

type Volume = Record<string, unknown>;

const claimed = (name: string, claimName: string): Volume => ({ name, persistentVolumeClaim: { claimName } });
const inline = (name: string): Volume => ({ name, csi: { driver: 'sim.csi' } });
const withVolumes = (...volumes: Volume[]): Record<string, unknown> => ({
  volumes,
  containers: [
    container('main', POLITE, { volumeMounts: volumes.map(({ name }) => ({ name, mountPath: `/${String(name)}` })) }),
  ],
});
const twoOf = (random: Random): [string, string] => {
  const first = random.int(0, CLAIMS.length - 1);
  const second = (first + random.int(1, CLAIMS.length - 1)) % CLAIMS.length;
  return [CLAIMS[first] as string, CLAIMS[second] as string];
};

export const STORAGE_KINDS: Readonly<Record<string, PodKind>> = {
  claim: { fate: 'runs', spec: (r) => withVolumes(claimed('data', r.pick(CLAIMS))) },
  claims: {
    fate: 'runs',
    spec: (r) => {
      const [first, second] = twoOf(r);
      return withVolumes(claimed('data', first), claimed('more', second), inline('own'));
    },
  },
  'claim-job': {
    fate: 'ends',
    spec: (r) => ({
      ...withVolumes(claimed('data', r.pick(CLAIMS))),
      restartPolicy: 'Never',
      containers: [
        container('main', `sleep ${r.int(1, 300)}; exit 0`, { volumeMounts: [{ name: 'data', mountPath: '/data' }] }),
      ],
    }),
  },
  inline: { fate: 'runs', spec: () => withVolumes(inline('own')) },
};
