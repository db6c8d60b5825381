// Pods such as people write: every field we know, with values that fit, so that most of them pass validation.
import fc from 'fast-check';
import type { Container, EphemeralContainer, Pod, PodSpec } from '../../src/core/pod.ts';

type Loose = Record<string, unknown>;

const some = (fields: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Loose> =>
  fc.record(fields, { requiredKeys: [] });
const pick = fc.constantFrom;
const upTo = <T>(maxLength: number, of: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(of, { maxLength });

const id = pick(0, 1, 1000, 65_534, 2 ** 31 - 1);
const argument = pick('sh', '-c', 'sleep 1', '$(A)', '$$(A)', '$(NONE)', 'ü', '');
/** What is asked for never exceeds what is allowed. */
const resources = pick<Loose>(
  {},
  { requests: { cpu: '100m', memory: '64Mi' } },
  { limits: { cpu: '1', memory: '1Gi' } },
  { requests: { cpu: '1m', memory: '1Mi' }, limits: { cpu: '1m', memory: '20Gi' } },
  { requests: { cpu: '0.1', 'ephemeral-storage': '1Gi' }, limits: { memory: '3e8', 'hugepages-2Mi': '4Mi' } },
  { limits: { cpu: '500', 'example.com/gpu': '1' } },
);
const seccomp = pick<Loose>(
  { type: 'Unconfined' },
  { type: 'RuntimeDefault' },
  { type: 'Localhost', localhostProfile: 'profiles/a.json' },
);
const handler = pick<Loose>(
  { exec: { command: ['true'] } },
  { httpGet: { port: 80, path: '/x?y', scheme: 'HTTPS' } },
  { httpGet: { port: 'web', host: '127.0.0.1' } },
  { sleep: { seconds: 3 } },
);
const probe = pick<Loose>(
  { exec: { command: ['true'] } },
  { tcpSocket: { port: 80 }, terminationGracePeriodSeconds: 4 },
  { httpGet: { port: 'web' }, periodSeconds: 3 },
  { grpc: { port: 9000 } },
);
const seLinux = some({ user: pick('u'), role: pick('r'), type: pick('t'), level: pick('s0:c1,c2') });
const security = some({
  capabilities: some({ add: upTo(2, pick('NET_ADMIN', 'SYS_TIME', 'ALL')), drop: upTo(2, pick('ALL', 'CHOWN')) }),
  privileged: fc.boolean(),
  seLinuxOptions: seLinux,
  runAsUser: id,
  runAsGroup: id,
  runAsNonRoot: fc.boolean(),
  readOnlyRootFilesystem: fc.boolean(),
  allowPrivilegeEscalation: pick(true),
  seccompProfile: seccomp,
  appArmorProfile: seccomp,
});

const VOLUMES: readonly Loose[] = [
  { name: 'empty', emptyDir: {} },
  { name: 'memory', emptyDir: { medium: 'Memory', sizeLimit: '16Mi' } },
  { name: 'conf', configMap: { name: 'conf' } },
  { name: 'sec', secret: { secretName: 'sec' } },
  { name: 'down', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
  { name: 'host', hostPath: { path: '/srv' } },
  { name: 'picture', image: { reference: 'localhost/data:1', pullPolicy: 'IfNotPresent' } },
];
const volumeName = pick(...VOLUMES.map((v) => String(v['name'])));
const volumeMount = fc
  .tuple(
    volumeName,
    some({
      readOnly: fc.boolean(),
      mountPropagation: pick('None', 'HostToContainer'),
      subPath: pick('a', 'a/b'),
    }),
    fc.boolean(),
  )
  .map(([name, rest, expr]) => ({
    name,
    ...rest,
    ...(expr && rest['subPath'] !== undefined ? { subPath: undefined, subPathExpr: '$(A)/x' } : {}),
    ...(rest['readOnly'] === true && rest['mountPropagation'] !== 'HostToContainer'
      ? { recursiveReadOnly: 'IfPossible' }
      : {}),
  }));
/** Every mount at a place of its own. */
const volumeMounts = upTo(4, volumeMount).chain((mounts) =>
  fc
    .shuffledSubarray(['/m', 'relative/m', '/etc/hosts', '/a', '/b'], {
      minLength: mounts.length,
      maxLength: mounts.length,
    })
    .map((paths) => mounts.map((mount, i) => ({ ...mount, mountPath: paths[i] }))),
);
const envVar = fc.oneof(
  fc.record({ name: pick('A', 'B', 'C.d'), value: pick('', 'x', '$(A)y', '$(NONE)', '$$(A)') }),
  fc.record({
    name: pick('F', 'G'),
    valueFrom: pick<Loose>(
      { fieldRef: { fieldPath: 'status.podIP' } },
      { fieldRef: { fieldPath: "metadata.labels['app']" } },
      { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } },
      { resourceFieldRef: { resource: 'requests.memory' } },
      { configMapKeyRef: { name: 'conf', key: 'color' } },
      { configMapKeyRef: { name: 'none', key: 'x', optional: true } },
      { secretKeyRef: { name: 'sec', key: 'password' } },
    ),
  }),
);
const envFrom = pick<Loose>(
  { configMapRef: { name: 'conf' }, prefix: 'p-' },
  { secretRef: { name: 'sec' } },
  { configMapRef: { name: 'none', optional: true } },
);
const rules = upTo(
  2,
  fc.record({
    action: pick('Restart', 'RestartAllContainers'),
    exitCodes: fc.record({ operator: pick('In', 'NotIn'), values: pick([1, 3], [137]) }),
  }),
);

const basic = {
  image: pick('img', 'localhost/x:1', `localhost/y@sha256:${'0'.repeat(64)}`),
  imagePullPolicy: pick('Always', 'IfNotPresent', 'Never'),
};
const shared = {
  command: upTo(3, argument),
  args: upTo(3, argument),
  workingDir: pick('/w'),
  env: upTo(4, envVar),
  envFrom: upTo(2, envFrom),
  volumeMounts,
  terminationMessagePath: pick('/dev/termination-log', '/tmp/x'),
  terminationMessagePolicy: pick('File', 'FallbackToLogsOnError'),
  securityContext: security,
  stdin: fc.boolean(),
  stdinOnce: fc.boolean(),
  tty: fc.boolean(),
};
const lasting = {
  ports: pick<readonly Loose[]>(
    [],
    [{ name: 'web', containerPort: 80 }],
    [{ containerPort: 53, protocol: 'UDP' }, { containerPort: 53 }],
  ),
  livenessProbe: probe,
  readinessProbe: probe.filter((p) => p['terminationGracePeriodSeconds'] === undefined),
  startupProbe: probe,
  lifecycle: some({ preStop: handler, postStart: handler }),
  resizePolicy: pick<readonly Loose[]>([{ resourceName: 'cpu', restartPolicy: 'NotRequired' }]),
};
const made = (more: Record<string, fc.Arbitrary<unknown>>): fc.Arbitrary<Loose> =>
  fc.tuple(fc.record(basic), some({ ...shared, ...more })).map(([base, rest]) => ({ ...rest, ...base }));
/** Restart rules want a policy beside them. */
const withRules = fc
  .tuple(made({ ...lasting, resources }), pick('Always', 'OnFailure', 'Never'), rules, fc.boolean())
  .map(([c, restartPolicy, restartPolicyRules, ruled]) => (ruled ? { ...c, restartPolicy, restartPolicyRules } : c));
const init = fc.oneof(
  made({ resources }),
  made({ ...lasting, resources }).map((c) => ({ ...c, restartPolicy: 'Always' })),
);
const named = (prefix: string, min: number, of: fc.Arbitrary<Loose>): fc.Arbitrary<Container[]> =>
  fc
    .array(of, { minLength: min, maxLength: 3 })
    .map((all) => all.map((c, i) => ({ ...c, name: `${prefix}${i}` }) as Container));

const dns = pick<Loose>(
  {},
  { dnsPolicy: 'Default' },
  { dnsPolicy: 'None', dnsConfig: { nameservers: ['1.1.1.1', '::1'], searches: ['x.y'], options: [{ name: 'rotate' }] } },
  { dnsPolicy: 'ClusterFirst', dnsConfig: { searches: ['a.b'], options: [{ name: 'ndots', value: '2' }] } },
);
/** Which namespaces of the node it shares; its own users go with none of them. */
const sharing = pick<Loose>(
  {},
  { hostNetwork: true },
  { hostPID: true, hostIPC: true },
  { shareProcessNamespace: true },
  { hostUsers: false },
);
const hostname = pick<Loose>(
  {},
  { hostname: 'h', subdomain: 's', setHostnameAsFQDN: true },
  { subdomain: 's' },
);
const podSecurity = some({
  runAsUser: id,
  runAsGroup: id,
  fsGroup: id,
  supplementalGroups: upTo(2, id),
  supplementalGroupsPolicy: pick('Merge', 'Strict'),
  sysctls: pick<readonly Loose[]>([{ name: 'net.ipv4.tcp_syncookies', value: '1' }]),
  seLinuxOptions: seLinux,
  seccompProfile: seccomp,
});
const spec = fc
  .tuple(
    fc.record({ containers: named('m', 1, withRules), initContainers: named('i', 0, init) }),
    fc.tuple(dns, sharing, hostname),
    some({
      restartPolicy: pick('Always', 'OnFailure', 'Never'),
      terminationGracePeriodSeconds: fc.nat(60),
      activeDeadlineSeconds: fc.integer({ min: 1, max: 100 }),
      priority: pick(0, 1000, 2_000_000_000),
      enableServiceLinks: fc.boolean(),
      hostAliases: pick<readonly Loose[]>([{ ip: '10.1.2.3', hostnames: ['a', 'b.c'] }]),
      overhead: pick<Loose>({ cpu: '10m', memory: '8Mi' }),
      securityContext: podSecurity,
    }),
  )
  .map(([base, parts, rest]) => Object.assign({}, rest, ...parts, base, { volumes: VOLUMES }) as PodSpec);

/** Debug containers come later than the pod. */
export const debugContainers = named('e', 0, made({})).map((all) =>
  all.map((c) => ({ ...c, volumeMounts: [], targetContainerName: 'm0' }) as EphemeralContainer),
);

export const soundPod: fc.Arbitrary<Pod> = fc
  .tuple(spec, some({ labels: pick({ app: 'web' }), annotations: pick({ note: 'x y' }) }))
  .map(([podSpec, metadata]) => ({
    metadata: { ...metadata, name: 'sound', namespace: 'ns', uid: 'uid-1' },
    spec: podSpec,
  }));
