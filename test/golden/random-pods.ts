// Arbitrary pods and what a runtime may show of them, valid and odd alike.
import fc from 'fast-check';
import { podUid, sandboxId } from '../../src/core/ids.ts';
import type { Container, Pod, PodSpec } from '../../src/core/pod.ts';
import { containersOf } from '../../src/core/pod.ts';
import { observedContainer } from '../../src/core/snapshot.fixture.ts';
import type { ObservedContainer, PodSnapshot } from '../../src/core/snapshot.ts';
import { containerHash } from '../../src/runtime/container-hash.ts';

type Loose = Record<string, unknown>;

/** Any subset of the fields. */
const some = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Loose> =>
  fc.record(fields, { requiredKeys: [] });

const word = fc.constantFrom('a', 'web', 'x-1', 'UPPER', 'ünï', '', 'a b', '$(A)', '$$', 'ab'.repeat(40));
const text = fc.oneof(word, fc.string({ maxLength: 12 }));
const port = fc.constantFrom(0, 1, 80, 443, 65_535);
const id = fc.constantFrom(0, 1, 1000, 65_534, 2 ** 31 - 1);
const strings = fc.dictionary(word, text, { maxKeys: 3 });
const amount = fc.constantFrom('0', '1', '1m', '100m', '1.5', '64Mi', '1Gi', '3e3', '9Ei', '0.1', '1n', '20Gi');
const list = fc.dictionary(
  fc.constantFrom('cpu', 'memory', 'ephemeral-storage', 'hugepages-2Mi', 'hugepages-1Gi', 'x.y/gpu'),
  amount,
  { maxKeys: 4 },
);
const resources = some({ limits: list, requests: list });
const seccomp = fc.record({
  type: fc.constantFrom('Unconfined', 'RuntimeDefault', 'Localhost'),
  localhostProfile: text,
});
const seLinux = some({ user: text, role: text, type: text, level: text });
const probe = some({ tcpSocket: fc.record({ port }), terminationGracePeriodSeconds: fc.nat(60) });
const handler = some({
  exec: some({ command: fc.array(text, { maxLength: 3 }) }),
  httpGet: fc.record({ port: fc.oneof(port, word), path: text }),
  sleep: fc.record({ seconds: fc.nat(60) }),
});

const security = some({
  capabilities: some({ add: fc.array(text), drop: fc.array(text) }),
  privileged: fc.boolean(),
  seLinuxOptions: seLinux,
  runAsUser: id,
  runAsGroup: id,
  readOnlyRootFilesystem: fc.boolean(),
  allowPrivilegeEscalation: fc.boolean(),
  procMount: fc.constantFrom('Default', 'Unmasked'),
  seccompProfile: seccomp,
  appArmorProfile: seccomp,
});

const envVar = fc.record({ name: text, value: text }, { requiredKeys: ['name'] });
const VOLUMES = ['v1', 'v2', 'v3'];
const volumeMount = fc.record(
  {
    name: fc.constantFrom(...VOLUMES),
    mountPath: fc.constantFrom('/m', 'relative', '/etc/hosts', '/a/../b', '/'),
    readOnly: fc.boolean(),
    mountPropagation: fc.constantFrom('None', 'HostToContainer', 'Bidirectional'),
    recursiveReadOnly: fc.constantFrom('Disabled', 'IfPossible', 'Enabled'),
  },
  { requiredKeys: ['name', 'mountPath'] },
);

const container = fc
  .tuple(
    fc.constantFrom('img', 'localhost/x:1', ''),
    some({
      command: fc.array(text, { maxLength: 3 }),
      args: fc.array(text, { maxLength: 3 }),
      workingDir: text,
      ports: fc.array(
        fc.record(
          {
            name: word,
            containerPort: port,
            hostPort: port,
            protocol: fc.constantFrom('TCP', 'UDP', 'SCTP'),
            hostIP: fc.constantFrom('', '127.0.0.1', '::1'),
          },
          { requiredKeys: ['containerPort'] },
        ),
        { maxLength: 4 },
      ),
      env: fc.array(envVar, { maxLength: 4 }),
      resources,
      resizePolicy: fc.array(
        fc.record({
          resourceName: fc.constantFrom('cpu', 'memory'),
          restartPolicy: fc.constantFrom('NotRequired', 'RestartContainer'),
        }),
      ),
      restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
      restartPolicyRules: fc.array(
        fc.record({
          action: fc.constantFrom('Restart', 'RestartAllContainers'),
          exitCodes: fc.record({
            operator: fc.constantFrom('In', 'NotIn'),
            values: fc.array(fc.constantFrom(0, 1, 3, 137)),
          }),
        }),
        { maxLength: 2 },
      ),
      volumeMounts: fc.array(volumeMount, { maxLength: 4 }),
      livenessProbe: probe,
      startupProbe: probe,
      lifecycle: some({
        preStop: handler,
        postStart: handler,
        stopSignal: fc.constantFrom('SIGTERM', 'SIGRTMIN+1', 'NOPE'),
      }),
      terminationMessagePath: fc.constantFrom('', '/dev/termination-log'),
      terminationMessagePolicy: fc.constantFrom('File', 'FallbackToLogsOnError'),
      securityContext: security,
      stdin: fc.boolean(),
      stdinOnce: fc.boolean(),
      tty: fc.boolean(),
    }),
  )
  .map(([image, rest]) => ({ ...rest, image }));

const containers = (prefix: string, min: number): fc.Arbitrary<Container[]> =>
  fc
    .array(container, { minLength: min, maxLength: 3 })
    .map((all) => all.map((c, i) => ({ ...c, name: `${prefix}${i}` }) as Container));

const ephemeral = fc
  .tuple(containers('e', 0), fc.option(fc.constantFrom('m0', 'nobody'), { nil: undefined }))
  .map(([all, target]) => all.map((c) => (target === undefined ? c : { ...c, targetContainerName: target })));

const spec = fc
  .tuple(
    fc.record({
      containers: containers('m', 1),
      initContainers: containers('i', 0),
      ephemeralContainers: ephemeral,
      enableServiceLinks: fc.boolean(),
    }),
    some({
      restartPolicy: fc.constantFrom('Always', 'OnFailure', 'Never'),
      terminationGracePeriodSeconds: fc.nat(60),
      dnsPolicy: fc.constantFrom('ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None', 'What'),
      dnsConfig: some({
        nameservers: fc.array(text),
        searches: fc.array(text),
        options: fc.array(some({ name: text, value: text })),
      }),
      hostNetwork: fc.boolean(),
      hostPID: fc.boolean(),
      hostIPC: fc.boolean(),
      shareProcessNamespace: fc.boolean(),
      hostname: text,
      subdomain: text,
      hostnameOverride: text,
      priority: fc.constantFrom(0, 1000, 2_000_000_000, 2_000_001_000),
      overhead: list,
      resources,
      hostAliases: fc.array(some({ ip: text, hostnames: fc.array(text) })),
      securityContext: some({
        runAsUser: id,
        runAsGroup: id,
        fsGroup: id,
        supplementalGroups: fc.array(id),
        supplementalGroupsPolicy: fc.constantFrom('Merge', 'Strict'),
        sysctls: fc.array(fc.record({ name: text, value: text })),
        seLinuxOptions: seLinux,
        seccompProfile: seccomp,
        appArmorProfile: seccomp,
      }),
    }),
  )
  .map(
    ([base, rest]) =>
      ({ ...rest, ...base, volumes: VOLUMES.map((name) => ({ name, emptyDir: {} })) }) as unknown as PodSpec,
  );

export const randomPod: fc.Arbitrary<Pod> = fc
  .tuple(spec, some({ labels: strings, annotations: strings, deletionGracePeriodSeconds: fc.nat(60) }), fc.boolean())
  .map(([podSpec, metadata, deleted]) => ({
    metadata: {
      ...metadata,
      name: 'random',
      namespace: 'ns',
      uid: 'uid-1',
      ...(deleted ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: podSpec,
  }));

const instance = fc.record({
  state: fc.constantFrom<ObservedContainer['state']>('created', 'running', 'exited', 'unknown'),
  exitCode: fc.constantFrom(0, 1, 3, 137),
  reason: fc.constantFrom('', 'OOMKilled'),
  changed: fc.boolean(),
});

/** Up to two instances of each container, some of which the runtime may not know. */
export const randomSnapshot = (pod: Pod): fc.Arbitrary<PodSnapshot> => {
  const all = [...containersOf(pod)].map((entry) => entry.container);
  const sandbox = fc.record({
    attempt: fc.nat(3),
    ready: fc.boolean(),
    hostNetwork: fc.boolean(),
    ips: fc.constantFrom<readonly string[]>([], ['10.0.0.1']),
  });
  return fc
    .tuple(fc.array(sandbox, { maxLength: 2 }), fc.tuple(...all.map(() => fc.array(instance, { maxLength: 2 }))))
    .map(([sandboxes, instances]) => ({
      uid: podUid('uid-1'),
      name: 'random',
      namespace: 'ns',
      sandboxes: sandboxes.map((s, i) => ({ ...s, id: sandboxId(`s${i}`), createdAt: 1n, runtimeHandler: '' })),
      containers: all.flatMap((c, i) => (instances[i] ?? []).map((seen, n) => observed(c, seen, n))),
      ips: [],
      version: 1,
    }));
};

const observed = (
  { name, image = '' }: Container,
  { changed, ...seen }: Pick<ObservedContainer, 'state' | 'exitCode' | 'reason'> & { changed: boolean },
  n: number,
): ObservedContainer =>
  observedContainer(name, {
    ...seen,
    id: `${name}-${n}`,
    sandboxId: sandboxId('s0'),
    attempt: 1 - n,
    createdAt: BigInt(10 - n),
    startedAt: 1n,
    finishedAt: 2n,
    annotations: { 'io.kubernetes.container.hash': changed ? '0' : containerHash({ name, image }) },
  });
