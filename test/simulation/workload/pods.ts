// Pods of every kind the workload makes, as a table: what the pod is, and what a healthy node makes of it in the end.
import { Random } from '../engine/random.ts';

type Spec = Record<string, unknown>;

/** `runs`: all its containers run for good. `ends`: it reaches a final phase. `unsteady`: it comes and goes. */
export type Fate = 'runs' | 'ends' | 'unsteady';

export type PodKind = {
  readonly fate: Fate;
  readonly spec: (random: Random) => Spec;
  /** Beside its name and labels. */
  readonly metadata?: Spec;
};

export const IMAGE = 'registry.test/app:1';
const FOREVER = 'sleep 1000000000';
export const POLITE = `trap 'exit 0' TERM; ${FOREVER}`;

export const container = (name: string, script: string, more: Spec = {}): Spec => ({
  name,
  image: IMAGE,
  command: ['sh', '-c', script],
  ...more,
});
const exec = (command: string, more: Spec = {}): Spec => ({ exec: { command: [command] }, ...more });

/** Answers well in some minutes, not in others. */
export const AT_TIMES = '/at-times';

export const KINDS: Readonly<Record<string, PodKind>> = {
  long: { fate: 'runs', spec: () => ({ containers: [container('main', POLITE)] }) },
  stubborn: { fate: 'runs', spec: () => ({ containers: [container('main', FOREVER)] }) },
  pair: { fate: 'runs', spec: () => ({ containers: [container('a', POLITE), container('b', FOREVER)] }) },
  crashing: {
    fate: 'unsteady',
    spec: (r) => ({ containers: [container('main', `sleep ${r.int(5, 900)}; exit 1`)] }),
  },
  job: {
    fate: 'ends',
    spec: (r) => ({
      restartPolicy: 'Never',
      containers: [container('main', `sleep ${r.int(1, 1200)}; exit ${r.int(0, 1)}`)],
    }),
  },
  retried: {
    fate: 'ends',
    spec: (r) => ({ restartPolicy: 'OnFailure', containers: [container('main', `sleep ${r.int(1, 600)}; exit 0`)] }),
  },
  prepared: {
    fate: 'runs',
    spec: (r) => ({
      initContainers: [container('first', `sleep ${r.int(0, 30)}`), container('second', `sleep ${r.int(0, 5)}`)],
      containers: [container('main', POLITE)],
    }),
  },
  sidecar: {
    fate: 'runs',
    spec: () => ({
      initContainers: [container('beside', POLITE, { restartPolicy: 'Always' }), container('init', 'sleep 1')],
      containers: [container('main', POLITE)],
    }),
  },
  'job-with-sidecar': {
    fate: 'ends',
    spec: (r) => ({
      restartPolicy: 'Never',
      initContainers: [container('beside', POLITE, { restartPolicy: 'Always' })],
      containers: [container('main', `sleep ${r.int(1, 600)}; exit 0`)],
    }),
  },
  probed: {
    fate: 'runs',
    spec: (r) => ({
      containers: [
        container('main', POLITE, {
          startupProbe: exec('true', { periodSeconds: r.int(1, 10) }),
          readinessProbe: exec('true', { periodSeconds: r.int(60, 300) }),
          livenessProbe: exec('true', { periodSeconds: r.int(60, 300) }),
        }),
      ],
    }),
  },
  unhealthy: {
    fate: 'unsteady',
    spec: (r) => ({
      containers: [
        container('main', POLITE, {
          livenessProbe: exec('false', { periodSeconds: r.int(30, 120), failureThreshold: 2 }),
        }),
      ],
    }),
  },
  hooked: {
    fate: 'runs',
    spec: () => ({
      containers: [container('main', POLITE, { lifecycle: { postStart: exec('true'), preStop: exec('true') } })],
    }),
  },
  volumes: {
    fate: 'runs',
    spec: () => ({
      volumes: [
        { name: 'scratch', emptyDir: {} },
        { name: 'memory', emptyDir: { medium: 'Memory' } },
        { name: 'settings', configMap: { name: 'settings' } },
        { name: 'keys', secret: { secretName: 'keys' } },
        {
          name: 'all',
          projected: {
            sources: [
              { configMap: { name: 'settings' } },
              { secret: { name: 'keys' } },
              { downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
            ],
          },
        },
      ],
      containers: [
        container('main', POLITE, {
          volumeMounts: ['scratch', 'memory', 'settings', 'keys', 'all'].map((name) => ({
            name,
            mountPath: `/${name}`,
          })),
          envFrom: [{ configMapRef: { name: 'settings' } }],
        }),
      ],
    }),
  },
  late: {
    fate: 'ends',
    spec: (r) => ({ activeDeadlineSeconds: r.int(30, 900), containers: [container('main', POLITE)] }),
  },
  'no-image': {
    fate: 'unsteady',
    spec: () => ({ containers: [container('main', POLITE, { image: 'registry.test/none:1' })] }),
  },
  web: {
    fate: 'runs',
    spec: () => ({
      containers: [
        container('main', POLITE, {
          readinessProbe: { httpGet: { path: '/ready', port: 8080 }, periodSeconds: 10 },
          livenessProbe: { httpGet: { path: '/live', port: 8080 }, periodSeconds: 10 },
        }),
      ],
    }),
  },
  'web-at-times': {
    fate: 'runs',
    spec: (r) => ({
      containers: [
        container('main', POLITE, {
          readinessProbe: { httpGet: { path: AT_TIMES, port: 8080 }, periodSeconds: r.int(5, 30), failureThreshold: 1 },
          livenessProbe: { tcpSocket: { port: 8080 }, periodSeconds: 10 },
        }),
      ],
    }),
  },
  hungry: {
    fate: 'unsteady',
    spec: (r) => ({
      containers: [container('main', POLITE, { resources: { requests: { cpu: String(r.int(1, 4)), memory: '1Gi' } } })],
    }),
  },
  resized: {
    fate: 'runs',
    spec: () => ({ containers: [container('main', POLITE, { resources: { requests: { cpu: '100m' } } })] }),
  },
  critical: {
    fate: 'unsteady',
    spec: (r) => ({
      priorityClassName: 'system-node-critical',
      containers: [container('main', POLITE, { resources: { requests: { cpu: String(r.int(1, 6)) } } })],
    }),
  },
};

/** Those of parts of the world, which no run has unless it is told to. */
const MORE: Record<string, PodKind> = {};
export const addKinds = (kinds: Readonly<Record<string, PodKind>>): void => void Object.assign(MORE, kinds);

export function kindOf(name: string): PodKind {
  const kind = KINDS[name] ?? MORE[name];
  if (kind === undefined) throw new Error(`no pod is of kind ${name}`);
  return kind;
}

export const podOf = (name: string, kind: string, seed: number): Record<string, unknown> => {
  const random = new Random(seed, name);
  const grace = random.pick([0, 1, 5, 30]);
  return {
    metadata: { name, namespace: 'default', labels: { kind }, ...kindOf(kind).metadata },
    spec: {
      nodeName: 'n1',
      terminationGracePeriodSeconds: grace,
      automountServiceAccountToken: false,
      enableServiceLinks: false,
      ...kindOf(kind).spec(random),
    },
  };
};
