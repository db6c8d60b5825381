// The pods of the crash test, the same in the killer and in the killed.
import type { Pod, Volume } from '../../src/core/pod.ts';
import { podNamed } from './volumes-setup.ts';

export const PODS = 10;
/** The first pods are wanted all the time: what they hold must survive. */
export const STEADY = 5;

const VOLUMES: Volume[] = [
  { name: 'disk', emptyDir: {} },
  { name: 'conf', configMap: { name: 'c' } },
  { name: 'sec', secret: { secretName: 's' } },
  { name: 'mem', emptyDir: { medium: 'Memory' } },
  {
    name: 'proj',
    projected: { sources: [{ serviceAccountToken: { path: 'token' } }, { configMap: { name: 'c' } }] },
  },
];

export const crashPod = (index: number): Pod =>
  podNamed(`crash-${index}`, {
    volumes: VOLUMES,
    securityContext: index % 2 === 0 ? { fsGroup: 2000 } : {},
    containers: [{ name: 'c', volumeMounts: VOLUMES.map((v) => ({ name: v.name, mountPath: `/${v.name}` })) }],
  });
