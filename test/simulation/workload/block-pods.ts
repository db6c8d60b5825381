// Pods with volumes that they get as devices, and with volumes that grow while they use them.
import type { Random } from '../engine/random.ts';
import type { Action } from './actions.ts';
import { container, POLITE, type PodKind } from './pods.ts';

export const BLOCK_CLAIMS: readonly string[] = Array.from({ length: 3 }, (_, i) => `block-${i}`);
export const GROWING_CLAIMS: readonly string[] = Array.from({ length: 2 }, (_, i) => `grow-${i}`);

const GROW_EVERY_MS = 60_000;

type Spec = Record<string, unknown>;

const volume = (name: string, claimName: string): Spec => ({ name, persistentVolumeClaim: { claimName } });
const device = { volumeDevices: [{ name: 'device', devicePath: '/dev/data' }] };
const directory = { volumeMounts: [{ name: 'data', mountPath: '/data' }] };

export const BLOCK_KINDS: Readonly<Record<string, PodKind>> = {
  block: {
    fate: 'runs',
    spec: (r) => ({
      volumes: [volume('device', r.pick(BLOCK_CLAIMS))],
      containers: [container('main', POLITE, device)],
    }),
  },
  'block-and-data': {
    fate: 'runs',
    spec: (r) => ({
      volumes: [volume('device', r.pick(BLOCK_CLAIMS)), volume('data', r.pick(GROWING_CLAIMS))],
      containers: [container('main', POLITE, { ...device, ...directory }), container('beside', POLITE, device)],
    }),
  },
  growing: {
    fate: 'runs',
    spec: (r) => ({
      volumes: [volume('data', r.pick(GROWING_CLAIMS))],
      containers: [container('main', POLITE, directory)],
    }),
  },
  'block-job': {
    fate: 'ends',
    spec: (r) => ({
      restartPolicy: 'Never',
      volumes: [volume('device', r.pick(BLOCK_CLAIMS))],
      containers: [container('main', `sleep ${r.int(1, 300)}; exit 0`, device)],
    }),
  },
};

/** Claims ask for more and more, devices as well as file systems. */
export function growths(random: Random, untilMs: number): Action[] {
  const actions: Action[] = [];
  const claims = [...BLOCK_CLAIMS, ...GROWING_CLAIMS];
  let gib = 1;
  for (let atMs = random.exponential(GROW_EVERY_MS); atMs < untilMs; atMs += random.exponential(GROW_EVERY_MS))
    actions.push({ atMs, do: 'grow-claim', claim: random.pick(claims), gib: ++gib });
  return actions;
}
