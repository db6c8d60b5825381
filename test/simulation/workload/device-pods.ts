// Pods with devices of a plugin, and with CPUs of their own.
import { container, POLITE, type PodKind } from './pods.ts';

const CARD = 'sim.test/card';

const limited = (limits: Record<string, string>): Record<string, unknown> => ({
  containers: [container('main', POLITE, { resources: { limits, requests: limits } })],
});
const crashing = (seconds: number, limits: Record<string, string>): Record<string, unknown> => ({
  containers: [container('main', `sleep ${seconds}; exit 1`, { resources: { limits, requests: limits } })],
});

export const DEVICE_KINDS: Readonly<Record<string, PodKind>> = {
  device: { fate: 'runs', spec: () => limited({ [CARD]: '1' }) },
  devices: { fate: 'runs', spec: () => limited({ [CARD]: '2', cpu: '100m', memory: '64Mi' }) },
  pinned: { fate: 'runs', spec: (r) => limited({ cpu: String(r.int(1, 2)), memory: '64Mi' }) },
  'device-crashing': {
    fate: 'unsteady',
    spec: (r) => crashing(r.int(5, 300), { [CARD]: '1', cpu: '1', memory: '64Mi' }),
  },
};
