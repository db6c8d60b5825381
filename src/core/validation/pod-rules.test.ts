import { describe } from 'node:test';
import { problems, table, withContainer, withVolume, type Json } from './testing.ts';

describe('volumes and mounts', () => {
  const mount = (fields: Json): readonly string[] =>
    withContainer(
      { volumeMounts: [{ name: 'v', mountPath: '/v', ...fields }] },
      { volumes: [{ name: 'v', emptyDir: {} }] },
    );
  table([
    [
      'name twice',
      () => problems({ volumes: [{ name: 'v' }, { name: 'v' }] }),
      ['spec.volumes[1].name: Duplicate value: "v"'],
    ],
    [
      'two kinds',
      () => withVolume({ emptyDir: {}, hostPath: { path: '/x' } }),
      ['spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type'],
    ],
    [
      'up from the host path',
      () => withVolume({ hostPath: { path: '/a/../b' } }),
      ['spec.volumes[0].hostPath.path: Invalid value: "/a/../b": must not contain \'..\''],
    ],
    ['host path type', () => withVolume({ hostPath: { path: '/a', type: 'Dir' } }), [/type: Unsupported value: "Dir"/]],
    [
      'modes',
      () => withVolume({ secret: { secretName: 's', defaultMode: 512 } }),
      [/defaultMode: Invalid value: 512: must be a number between 0 and 0777/],
    ],
    [
      'reserved path',
      () => withVolume({ configMap: { name: 'm', items: [{ key: 'k', path: '..data' }] } }),
      [/path: Invalid value: "\.\.data": must not start with '\.\.'/],
    ],
    [
      'absolute item',
      () => withVolume({ configMap: { name: 'm', items: [{ key: 'k', path: '/etc' }] } }),
      [/must be a relative path/],
    ],
    [
      'size',
      () => withVolume({ emptyDir: { sizeLimit: 'big' } }),
      [/sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity/],
    ],
    [
      'projected twice',
      () =>
        withVolume({
          projected: {
            sources: [
              { configMap: { name: 'a', items: [{ key: 'k', path: 'p' }] } },
              { secret: { name: 'a', items: [{ key: 'k', path: 'p' }] } },
            ],
          },
        }),
      [/conflicting duplicate paths/],
    ],
    [
      'token without account',
      () => withVolume({ projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 5 } }] } }),
      [/may not specify a duration less than 10 minutes/, /must not be specified when serviceAccountName is not set/],
    ],
    ['image without reference', () => withVolume({ image: {} }), ['spec.volumes[0].image.reference: Required value']],
    [
      'mount of nothing',
      () => withContainer({ volumeMounts: [{ name: 'x', mountPath: '/x' }] }),
      ['spec.containers[0].volumeMounts[0].name: Not found: "x"'],
    ],
    [
      'mount of a bad volume',
      () =>
        withContainer({ volumeMounts: [{ name: 'v', mountPath: '/x' }] }, { volumes: [{ name: 'v', hostPath: {} }] }),
      ['spec.volumes[0].hostPath.path: Required value', 'spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ],
    ['sub path up', () => mount({ subPath: 'a/../../b' }), [/subPath: Invalid value: .* must not contain '\.\.'/]],
    [
      'both sub paths',
      () => mount({ subPath: 'a', subPathExpr: '/$(B)' }),
      [/mutually exclusive/, /must be a relative path/],
    ],
    [
      'propagation',
      () => mount({ mountPropagation: 'Bidirectional' }),
      [/Bidirectional mount propagation is available only to privileged/],
    ],
    ['recursive', () => mount({ recursiveReadOnly: 'Enabled' }), [/may only be specified when readOnly is true/]],
  ]);
});

describe('resources', () => {
  const resources = (fields: Json): readonly string[] => withContainer({ resources: fields });
  table([
    [
      'no quantity',
      () => resources({ limits: { cpu: 'lots' } }),
      [/limits\[cpu\]: Invalid value: "lots": quantities must match/, /requests\[cpu\]/],
    ],
    [
      'negative',
      () => resources({ requests: { cpu: '-1' } }),
      [/requests\[cpu\]: Invalid value: "-1": must be greater than or equal to 0/],
    ],
    [
      'request over limit',
      () => resources({ limits: { cpu: '1' }, requests: { cpu: '2' } }),
      ['spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1'],
    ],
    [
      'unknown',
      () => resources({ requests: { gpus: '1' } }),
      [/must be a standard resource type/, /must be a standard resource for containers/],
    ],
    [
      'extended without limit',
      () => resources({ requests: { 'a.com/g': '1' } }),
      [/limits: Required value: Limit must be set for non overcommitable resources/],
    ],
    ['half a device', () => resources({ limits: { 'a.com/g': '500m' } }), [/must be an integer/, /must be an integer/]],
    [
      'huge pages alone',
      () => resources({ limits: { 'hugepages-2Mi': '3Mi' } }),
      [/is not positive integer multiple of hugepages-2Mi/, /is not positive/, /HugePages require cpu or memory/],
    ],
    [
      'claim of nobody',
      () => resources({ claims: [{ name: 'x' }] }),
      [/claims\[0\]: Not found: "x": must be one of the names in pod\.spec\.resourceClaims which is empty/],
    ],
    [
      'pod smaller than its containers',
      () =>
        problems({
          resources: { requests: { cpu: '1' } },
          containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '2' } } }],
        }),
      [
        'spec.resources.requests[cpu]: Invalid value: "1": must be greater than or equal to aggregate container requests of 2',
      ],
    ],
    [
      'not for pods',
      () => problems({ resources: { limits: { 'ephemeral-storage': '1' } } }),
      [/limits\[ephemeral-storage\]: Unsupported value/],
    ],
  ]);
});

describe('security', () => {
  const pod = (securityContext: Json, spec: Json = {}): readonly string[] => problems({ ...spec, securityContext });
  const one = (securityContext: Json, spec: Json = {}): readonly string[] => withContainer({ securityContext }, spec);
  table([
    [
      'sysctl name',
      () => pod({ sysctls: [{ name: 'kernel.a=b', value: '1' }] }),
      [/sysctls\[0\]\.name: Invalid value: "kernel\.a=b": must have at most 253 characters/],
    ],
    [
      'sysctl that sets another',
      () => pod({ sysctls: [{ name: 'kernel.shm_rmid_forced', value: '1+kernel.core_pattern=|/x' }] }),
      [/sysctls\[0\]\.value: Invalid value: .* must not contain '\+', '=' or control characters but tabs/],
    ],
    [
      'sysctl of two lines',
      () => pod({ sysctls: [{ name: 'net.ipv4.ip_local_port_range', value: '1\n2' }] }),
      [/sysctls\[0\]\.value: Invalid value/],
    ],
    [
      'sysctl as the kernel shows it',
      () => pod({ sysctls: [{ name: 'net.ipv4.ip_local_port_range', value: '32768\t60999' }] }),
      [],
    ],
    [
      'sysctl of the host',
      () => pod({ sysctls: [{ name: 'net/ipv4/tcp_fin_timeout', value: '1' }] }, { hostNetwork: true }),
      [/may not be specified when 'hostNetwork' is true/],
    ],
    [
      'seccomp without a name',
      () => one({ seccompProfile: { type: 'Localhost' } }),
      [/localhostProfile: Required value: must be set when seccomp type is Localhost/],
    ],
    [
      'seccomp with an empty name',
      () => one({ seccompProfile: { type: 'Localhost', localhostProfile: '' } }),
      [/localhostProfile: Required value/],
    ],
    [
      'seccomp outside',
      () => one({ seccompProfile: { type: 'Localhost', localhostProfile: '../x' } }),
      [/must not contain '\.\.'/],
    ],
    [
      'seccomp absolute',
      () => pod({ seccompProfile: { type: 'Localhost', localhostProfile: '/x' } }),
      [/must be a relative path/],
    ],
    [
      'AppArmor',
      () => one({ appArmorProfile: { type: 'Maybe' } }),
      [/appArmorProfile\.type: Unsupported value: "Maybe"/],
    ],
    [
      'user',
      () => one({ runAsUser: -1 }),
      [/runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive/],
    ],
    ['group', () => pod({ supplementalGroups: [2 ** 32] }), [/supplementalGroups\[0\]: Invalid value/]],
    [
      'no escalation but privileged',
      () => one({ privileged: true, allowPrivilegeEscalation: false }),
      [/cannot set `allowPrivilegeEscalation` to false and `privileged` to true/],
    ],
    ['proc', () => one({ procMount: 'Unmasked' }), [/`hostUsers` must be false to use `Unmasked`/]],
    ['proc with its own users', () => one({ procMount: 'Unmasked' }, { hostUsers: false }), []],
    [
      'own users and the host',
      () => problems({ hostUsers: false, hostPID: true }),
      ['spec.hostPID: Forbidden: when `hostUsers` is false'],
    ],
    [
      'process namespaces',
      () => problems({ hostPID: true, shareProcessNamespace: true }),
      [/ShareProcessNamespace and HostPID cannot both be enabled/],
    ],
  ]);
});

describe('names, DNS and placement', () => {
  table([
    [
      'DNS none',
      () => problems({ dnsPolicy: 'None' }),
      ['spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None'],
    ],
    [
      'nameservers',
      () => problems({ dnsConfig: { nameservers: ['1.1.1.1', 'x', '::1', '2.2.2.2'] } }),
      [/must not have more than 3 nameservers/, /nameservers\[1\]: Invalid value: "x": must be a valid IP address/],
    ],
    ['search', () => problems({ dnsConfig: { searches: ['a b', '.'] } }), [/searches\[0\]: Invalid value: "a b"/]],
    [
      'option that adds a line',
      () => problems({ dnsConfig: { options: [{ name: 'ndots', value: '1\nnameserver 6.6.6.6' }] } }),
      [/must not contain white space/],
    ],
    [
      'alias',
      () => problems({ hostAliases: [{ ip: '1.2.3', hostnames: ['A'] }] }),
      [/hostAliases\[0\]\.ip/, /hostnames\[0\]/],
    ],
    [
      'host name',
      () => problems({ hostname: 'a.b', hostnameOverride: 'x'.repeat(65), setHostnameAsFQDN: true }),
      [/spec\.hostname: Invalid value/, /setHostnameAsFQDN is true/, /Too long: may not be more than 64 bytes/],
    ],
    [
      'toleration',
      () => problems({ tolerations: [{ key: 'a', operator: 'Exists', value: 'b' }, {}] }),
      [/value must be empty/, /operator must be Exists when `key` is empty/],
    ],
    [
      'node affinity',
      () =>
        problems({
          affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } },
        }),
      [/must have at least one node selector term/],
    ],
    [
      'pod affinity',
      () =>
        problems({
          affinity: {
            podAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 101, podAffinityTerm: {} }] },
          },
        }),
      [/must be in the range 1-100/, /topologyKey: Required value/, /topologyKey: Invalid value/, /topologyKey/],
    ],
    [
      'spread',
      () => problems({ topologySpreadConstraints: [{ maxSkew: 0, topologyKey: 'z', whenUnsatisfiable: 'X' }] }),
      [/maxSkew/, /whenUnsatisfiable: Unsupported value: "X"/],
    ],
    [
      'gates',
      () => problems({ nodeName: 'n', schedulingGates: [{ name: 'g' }] }),
      ['spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared'],
    ],
    [
      'deadline',
      () => problems({ activeDeadlineSeconds: 0 }),
      [/activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647/],
    ],
    [
      'os',
      () => problems({ os: { name: 'plan9' } }),
      ['spec.os.name: Unsupported value: "plan9": supported values: "linux", "windows"'],
    ],
    [
      'policy',
      () => problems({ restartPolicy: 'Sometimes' }),
      ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "OnFailure", "Never"'],
    ],
    ['overhead', () => problems({ overhead: { cpu: '-1' } }), [/spec\.overhead\[cpu\]/]],
    [
      'claims',
      () => problems({ resourceClaims: [{ name: 'a' }] }),
      [/must specify one of: `resourceClaimName`, `resourceClaimTemplateName`/],
    ],
  ]);
});
