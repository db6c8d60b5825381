// Pods that mean no good and pass validation: samples for `hostile-pods.test.ts`, which changes them at random.
import { NODE_NAME } from '../../bench/pods.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';

export const namespace = 'default';

export const podOf = (name: string, spec: object): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace },
  spec: { ...spec, nodeName: NODE_NAME },
});

const IMAGE = { image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent' };

const SERVE = ['sh', '-c', "trap 'exit 0' TERM; sleep 86400 & wait"];

const GOOD = {
  terminationGracePeriodSeconds: 1,
  automountServiceAccountToken: false,
  volumes: [{ name: 'v', emptyDir: {} }],
  containers: [{ name: 'c', ...IMAGE, command: SERVE, volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'a/b' }] }],
};

export const goodPod = (name: string): object => podOf(name, GOOD);

const main = { name: 'c', ...IMAGE, command: SERVE };
const ready = { readinessProbe: { exec: { command: ['true'] }, periodSeconds: 1 } };

/** What comes and goes on any node: servers with probes and sidecars, something to prepare first, jobs. */
export const ordinarySpecs = (): readonly object[] => [
  GOOD,
  simple(
    {},
    {
      containers: [
        { ...main, ...ready },
        { ...main, name: 'sidecar' },
      ],
    },
  ),
  simple({}, { initContainers: [{ name: 'i', ...IMAGE, command: ['true'] }], containers: [{ ...main, ...ready }] }),
  simple({ command: ['true'] }, { restartPolicy: 'Never' }),
];

/** Much of what a spec can say, most of it odd. */
const FULL = {
  restartPolicy: 'Always',
  terminationGracePeriodSeconds: 1,
  automountServiceAccountToken: false,
  hostAliases: [{ ip: '1.2.3.4', hostnames: ['a'] }],
  dnsConfig: { nameservers: ['1.2.3.4'], searches: ['x'], options: [{ name: 'ndots', value: '2' }] },
  securityContext: { fsGroup: 1, runAsUser: 0, supplementalGroups: [3] },
  activeDeadlineSeconds: 100,
  volumes: [{ name: 'v', emptyDir: {} }],
  initContainers: [{ name: 'i', ...IMAGE, restartPolicy: 'Always' }],
  containers: [
    {
      name: 'c',
      ...IMAGE,
      command: ['sh', '-c', 'echo $(A)'],
      args: ['x'],
      env: [
        { name: 'A', value: 'x' },
        { name: 'B', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      ],
      ports: [{ name: 'web', containerPort: 80, protocol: 'TCP' }],
      resources: { requests: { cpu: '1m', memory: '1Mi' } },
      readinessProbe: {
        httpGet: { path: '/', port: 'web', httpHeaders: [{ name: 'X', value: '€' }] },
        periodSeconds: 1,
        timeoutSeconds: 1,
      },
      livenessProbe: { exec: { command: ['true'] }, periodSeconds: 1, failureThreshold: 1 },
      lifecycle: {
        preStop: { httpGet: { port: 80, path: '/x', httpHeaders: [{ name: 'Y', value: 'z' }] } },
        postStart: { sleep: { seconds: 1 } },
      },
      terminationMessagePolicy: 'FallbackToLogsOnError',
      volumeMounts: [{ name: 'v', mountPath: '/v', subPath: 'a/b' }],
      securityContext: { capabilities: { add: ['NET_ADMIN'] }, seccompProfile: { type: 'RuntimeDefault' } },
    },
  ],
};

const simple = (container: object, spec: object = {}): object => ({
  terminationGracePeriodSeconds: 1,
  automountServiceAccountToken: false,
  containers: [{ name: 'c', ...IMAGE, command: SERVE, ...container }],
  ...spec,
});

/** Six levels of ten references each, then as many copies of the last. */
const powerOfTen = (i: number): string => (i === 0 ? 'xxxxxxxxxx' : i > 6 ? '$(V6)' : `$(V${i - 1})`.repeat(10));

/** `silentPort`: where somebody on the loopback interface takes connections and never answers. */
export function hostileSpecs(silentPort: number): readonly object[] {
  const silent = { httpGet: { host: '127.0.0.1', port: silentPort, path: '/' } };
  const probe = { periodSeconds: 1, timeoutSeconds: 1 };
  return [
    FULL,
    simple({ lifecycle: { postStart: silent } }),
    simple({ lifecycle: { postStart: { sleep: { seconds: 3600 } } } }),
    simple({ lifecycle: { preStop: silent } }, { terminationGracePeriodSeconds: 2 }),
    simple({ image: 'registry.invalid/absent:1' }),
    simple({ envFrom: [{ secretRef: { name: 'absent' } }] }),
    simple(
      { volumeMounts: [{ name: 'v', mountPath: '/v' }] },
      { volumes: [{ name: 'v', configMap: { name: 'absent' } }] },
    ),
    simple({ command: ['false'] }, { initContainers: [{ name: 'i', ...IMAGE, command: ['false'] }] }),
    simple({ livenessProbe: { ...silent, ...probe, failureThreshold: 1 }, readinessProbe: { ...silent, ...probe } }),
    simple({ startupProbe: { tcpSocket: { host: '127.0.0.1', port: 1 }, ...probe, failureThreshold: 1 } }),
    simple({ env: Array.from({ length: 300 }, (_, i) => ({ name: `V${i}`, value: `$(V${i - 1})`.repeat(20) })) }),
    simple({ env: Array.from({ length: 90 }, (_, i) => ({ name: `V${i}`, value: powerOfTen(i) })) }),
    simple({}, { containers: Array.from({ length: 8 }, (_, i) => ({ name: `c${i}`, ...IMAGE, command: ['false'] })) }),
  ];
}
