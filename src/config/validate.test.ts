import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_FIELDS } from './config-fields.ts';
import { completeConfig, withField } from './convert.ts';
import { decodeFields } from './decode.ts';
import { FeatureGates } from './feature-gates.ts';
import { kubeletFlags, parseFlags } from './flags.ts';
import type { JsonObject } from './schema.ts';
import { settleConfig } from './start-checks.ts';
import { applyFlags, legacyDefaults } from './load.ts';
import { isAllowedNodeLabel, parseNodeIps, validateFlags, validateTogether } from './validate-flags.ts';
import { validateConfig } from './validate.ts';

const IC = 'invalid configuration: ';
const ENA = 'enforceNodeAllocatable (--enforce-node-allocatable)';

function problems(wire: JsonObject, overrides: Record<string, unknown> = {}, cgroupVersion: 1 | 2 = 2): string[] {
  const decoded = decodeFields(CONFIG_FIELDS, wire, () => undefined);
  assert.deepEqual([...decoded.errors, ...decoded.unknown], []);
  let config = completeConfig(decoded.value);
  for (const [path, value] of Object.entries(overrides)) config = withField(config, path, value);
  return validateConfig(config, FeatureGates.fromKnown(config.featureGates), { cgroupVersion });
}

test('defaults are valid', () => assert.deepEqual(problems({}), []));

/** [wire fields, fields set as by a flag, messages without their prefix] */
const RULES: readonly [JsonObject, Record<string, unknown>, string[]][] = [
  [{ nodeLeaseDurationSeconds: -1 }, {}, ['nodeLeaseDurationSeconds must be greater than 0']],
  [
    { systemCgroups: '/s' },
    {},
    ['systemCgroups (--system-cgroups) was specified and cgroupRoot (--cgroup-root) was not specified'],
  ],
  [{ systemCgroups: '/s', cgroupRoot: '/' }, {}, []],
  [{ eventBurst: -1 }, {}, ['eventBurst (--event-burst) -1 must not be a negative number']],
  [{ eventRecordQPS: -1 }, {}, ['eventRecordQPS (--event-qps) -1 must not be a negative number']],
  [{ kubeAPIBurst: -1 }, {}, ['kubeAPIBurst (--kube-api-burst) -1 must not be a negative number']],
  [{ kubeAPIQPS: -1 }, {}, ['kubeAPIQPS (--kube-api-qps) -1 must not be a negative number']],
  [{ maxOpenFiles: -1 }, {}, ['maxOpenFiles (--max-open-files) -1 must not be a negative number']],
  [{ maxPods: -1 }, {}, ['maxPods (--max-pods) -1 must not be a negative number']],
  [{ podsPerCore: -1 }, {}, ['podsPerCore (--pods-per-core) -1 must not be a negative number']],
  [{ registryBurst: -1 }, {}, ['registryBurst (--registry-burst) -1 must not be a negative number']],
  [{ registryPullQPS: -1 }, {}, ['registryPullQPS (--registry-qps) -1 must not be a negative number']],
  [{ healthzPort: 65536 }, {}, ['healthzPort (--healthz-port) 65536 must be between 1 and 65535, inclusive']],
  [{ healthzPort: 0 }, {}, []],
  [{}, { port: 0 }, ['port (--port) 0 must be between 1 and 65535, inclusive']],
  [{ readOnlyPort: 70000 }, {}, ['readOnlyPort (--read-only-port) 70000 must be between 0 and 65535, inclusive']],
  [
    { cpuCFSQuotaPeriod: '2s' },
    {},
    ['cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {2s} must be between 1ms and 1sec, inclusive'],
  ],
  [
    { cpuCFSQuotaPeriod: '0s' },
    {},
    ['cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {0s} must be between 1ms and 1sec, inclusive'],
  ],
  [{ cpuCFSQuotaPeriod: '1ms' }, {}, []],
  [
    { cpuCFSQuotaPeriod: '50ms', featureGates: { CustomCPUCFSQuotaPeriod: false } },
    {},
    ['cpuCFSQuotaPeriod (--cpu-cfs-quota-period) {50ms} requires feature gate CustomCPUCFSQuotaPeriod'],
  ],
  [{ featureGates: { CustomCPUCFSQuotaPeriod: false } }, {}, []],
  [
    { imageGCHighThresholdPercent: 101 },
    {},
    ['imageGCHighThresholdPercent (--image-gc-high-threshold) 101 must be between 0 and 100, inclusive'],
  ],
  [
    { imageGCLowThresholdPercent: -1 },
    {},
    ['imageGCLowThresholdPercent (--image-gc-low-threshold) -1 must be between 0 and 100, inclusive'],
  ],
  [
    { imageGCLowThresholdPercent: 85 },
    {},
    [
      'imageGCLowThresholdPercent (--image-gc-low-threshold) 85 must be less than imageGCHighThresholdPercent (--image-gc-high-threshold) 85',
    ],
  ],
  [{ imageMinimumGCAge: '-1s' }, {}, ['imageMinimumGCAge -1s must not be negative']],
  [{ imageMaximumGCAge: '-1s' }, {}, ['imageMaximumGCAge -1s must not be negative']],
  [{ imageMaximumGCAge: '2m' }, {}, ['imageMaximumGCAge 2m0s must be greater than imageMinimumGCAge 2m0s']],
  [{ iptablesDropBit: 32 }, {}, ['iptablesDropBit (--iptables-drop-bit) 32 must be between 0 and 31, inclusive']],
  [
    { iptablesMasqueradeBit: -1 },
    {},
    ['iptablesMasqueradeBit (--iptables-masquerade-bit) -1 must be between 0 and 31, inclusive'],
  ],
  [{ nodeStatusMaxImages: -2 }, {}, ['nodeStatusMaxImages (--node-status-max-images) -2 must be -1 or greater']],
  [{ oomScoreAdj: 1001 }, {}, ['oomScoreAdj (--oom-score-adj) 1001 must be between -1000 and 1000, inclusive']],
  [{ maxParallelImagePulls: 0 }, {}, ['maxParallelImagePulls 0 must be a positive number']],
  [
    { maxParallelImagePulls: 4, serializeImagePulls: true },
    {},
    [
      'maxParallelImagePulls cannot be larger than 1 unless SerializeImagePulls (--serialize-image-pulls) is set to false',
    ],
  ],
  [{ maxParallelImagePulls: 4 }, {}, []],
  [
    { serverTLSBootstrap: true, featureGates: { RotateKubeletServerCertificate: false } },
    {},
    ['serverTLSBootstrap true requires feature gate RotateKubeletServerCertificate'],
  ],
  [{ runOnce: true }, {}, []],
  [
    { topologyManagerPolicy: 'x' },
    {},
    [
      'topologyManagerPolicy (--topology-manager-policy) "x" must be one of: ["none" "best-effort" "restricted" "single-numa-node"]',
    ],
  ],
  [
    { topologyManagerScope: 'x' },
    {},
    ['topologyManagerScope (--topology-manager-scope) "x" must be one of: "container", or "pod"'],
  ],
  [
    { shutdownGracePeriod: '10s', shutdownGracePeriodCriticalPods: '20s' },
    {},
    ['shutdownGracePeriodCriticalPods {20s} must be <= shutdownGracePeriod {10s}'],
  ],
  [{ shutdownGracePeriod: '500ms' }, {}, ['shutdownGracePeriod {500ms} must be either zero or otherwise >= 1 sec']],
  [
    { shutdownGracePeriod: '5s', shutdownGracePeriodCriticalPods: '1ms' },
    {},
    ['shutdownGracePeriodCriticalPods {1ms} must be either zero or otherwise >= 1 sec'],
  ],
  [
    { shutdownGracePeriod: '5s', shutdownGracePeriodByPodPriority: [{ priority: 1, shutdownGracePeriodSeconds: 1 }] },
    {},
    ['Cannot specify both shutdownGracePeriodByPodPriority and shutdownGracePeriod at the same time'],
  ],
  [
    { memorySwap: { swapBehavior: 'UnlimitedSwap' } },
    {},
    ['memorySwap.swapBehavior "UnlimitedSwap" must be one of: "", "LimitedSwap" or "NoSwap"'],
  ],
  [
    { crashLoopBackOff: { maxContainerRestartPeriod: '301s' } },
    {},
    ['CrashLoopBackOff.MaxContainerRestartPeriod (got: 301 seconds) must be set between 1s and 300s'],
  ],
  [
    { crashLoopBackOff: { maxContainerRestartPeriod: '0s' } },
    {},
    ['CrashLoopBackOff.MaxContainerRestartPeriod (got: 0 seconds) must be set between 1s and 300s'],
  ],
  [
    { crashLoopBackOff: { maxContainerRestartPeriod: '5s' }, featureGates: { KubeletCrashLoopBackOffMax: false } },
    {},
    ['FeatureGate KubeletCrashLoopBackOffMax not enabled, CrashLoopBackOff.MaxContainerRestartPeriod must not be set'],
  ],
  [
    { enforceNodeAllocatable: ['system-reserved', 'system-reserved-compressible'], systemReservedCgroup: '/s' },
    {},
    [`both "system-reserved" and "system-reserved-compressible" cannot be specified together in ${ENA}`],
  ],
  [{ enforceNodeAllocatable: ['pods', 'pods'] }, {}, [`duplicated enforcements "pods" in ${ENA}`]],
  [
    { enforceNodeAllocatable: ['system-reserved'] },
    {},
    [
      `systemReservedCgroup (--system-reserved-cgroup) must be specified when "system-reserved" or "system-reserved-compressible" included in ${ENA}`,
    ],
  ],
  [
    { enforceNodeAllocatable: ['kube-reserved-compressible'] },
    {},
    [
      `kubeReservedCgroup (--kube-reserved-cgroup) must be specified when "kube-reserved" or "kube-reserved-compressible" included in ${ENA}`,
    ],
  ],
  [
    { enforceNodeAllocatable: ['none', 'pods'] },
    {},
    [`${ENA} may not contain additional enforcements when "none" is specified`],
  ],
  [
    { enforceNodeAllocatable: ['x'] },
    {},
    [
      `option "x" specified for ${ENA}. Valid options are "pods", "system-reserved", "system-reserved-compressible", "kube-reserved", "kube-reserved-compressible" or "none"`,
    ],
  ],
  [
    { cgroupsPerQOS: false },
    {},
    [`cgroupsPerQOS (--cgroups-per-qos) must be set to true when "pods" contained in ${ENA}`],
  ],
  [{ cgroupsPerQOS: false, enforceNodeAllocatable: ['none'] }, {}, []],
  [{ cgroupsPerQOS: false, enforceNodeAllocatable: [] }, {}, []],
  [
    { hairpinMode: 'x' },
    {},
    [
      'option "x" specified for hairpinMode (--hairpin-mode). Valid options are "none", "hairpin-veth" or "promiscuous-bridge"',
    ],
  ],
  [
    { imagePullCredentialsVerificationPolicy: 'x' },
    {},
    [
      'option "x" specified for imagePullCredentialsVerificationPolicy. Valid options are "NeverVerify", "NeverVerifyPreloadedImages", "NeverVerifyAllowlistedImages" or "AlwaysVerify"',
    ],
  ],
  [
    { preloadedImagesVerificationAllowlist: ['registry.io/a'] },
    {},
    [
      'can\'t set `preloadedImagesVerificationAllowlist` if `imagePullCredentialsVertificationPolicy` is not "NeverVerifyAllowlistedImages"',
    ],
  ],
  [
    { reservedSystemCPUs: '0-1', systemReservedCgroup: '/s' },
    {},
    [
      "can't use reservedSystemCPUs (--reserved-cpus) with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
    ],
  ],
  [
    { reservedSystemCPUs: '1-0' },
    {},
    ['unable to parse reservedSystemCPUs (--reserved-cpus) 1-0, error: invalid range "1-0" (1 > 0)'],
  ],
  [
    { reservedSystemCPUs: '0,x' },
    {},
    ['unable to parse reservedSystemCPUs (--reserved-cpus) 0,x, error: strconv.Atoi: parsing "x": invalid syntax'],
  ],
  [
    { reservedMemory: [{ numaNode: 0, limits: { cpu: '1' } }] },
    {},
    ['the limit type "cpu" for NUMA node 0 is not supported, only [memory hugepages-<HugePageSize>] is accepted'],
  ],
  [
    { reservedMemory: [{ numaNode: 0, limits: { memory: '0' } }] },
    {},
    ['reserved memory may not be zero for NUMA node 0 and resource "memory"'],
  ],
  [
    {
      reservedMemory: [
        { numaNode: 0, limits: { memory: '1' } },
        { numaNode: 0, limits: { memory: '2' } },
      ],
    },
    {},
    ['the reserved memory has a duplicate value for NUMA node 0 and resource "memory"'],
  ],
  [
    { userNamespaces: { idsPerPod: 65535 } },
    {},
    ['userNamespaces.idsPerPod must not be less than 65536', 'userNamespaces.idsPerPod must be a multiple of 65536'],
  ],
  [{ userNamespaces: { idsPerPod: 65536 * 65536 } }, {}, ['userNamespaces.idsPerPod must not be more than 4294967295']],
  [{ userNamespaces: { idsPerPod: 131072 } }, {}, []],
  [
    { memoryThrottlingFactor: 0 },
    {},
    ['memoryThrottlingFactor 0 must be greater than 0 and less than or equal to 1.0'],
  ],
  [
    { memoryThrottlingFactor: 1.1 },
    {},
    ['memoryThrottlingFactor 1.1 must be greater than 0 and less than or equal to 1.0'],
  ],
  [
    { memoryReservationPolicy: 'TieredReservation' },
    {},
    ['memoryReservationPolicy "TieredReservation" requires MemoryQoS feature gate to be enabled'],
  ],
  [{ memoryReservationPolicy: 'TieredReservation', featureGates: { MemoryQoS: true } }, {}, []],
  [
    { memoryReservationPolicy: 'x' },
    {},
    ['option "x" specified for memoryReservationPolicy. Valid options are "None" or "TieredReservation"'],
  ],
  [{}, { containerRuntimeEndpoint: '' }, ['the containerRuntimeEndpoint was not specified or empty']],
  [
    { enableSystemLogQuery: true, enableSystemLogHandler: false },
    {},
    ['enableSystemLogHandler is required for enableSystemLogQuery'],
  ],
  [{ containerLogMaxWorkers: 0 }, {}, ['containerLogMaxWorkers must be greater than or equal to 1']],
  [
    { containerLogMonitorInterval: '2s' },
    {},
    ['containerLogMonitorInterval must be a positive time duration greater than or equal to 3s'],
  ],
  [{ containerLogMaxFiles: 1 }, {}, ['containerLogMaxFiles must be greater than 1']],
  [{}, { podLogsDir: '' }, ['podLogsDir was not specified']],
  [{ podLogsDir: 'var/log' }, {}, ['pod logs path "var/log" must be absolute path']],
  [{ podLogsDir: '/var/log/' }, {}, ['pod logs path "/var/log/" must be normalized']],
  [{ podLogsDir: '/var/../log' }, {}, ['pod logs path "/var/../log" must be normalized']],
  [{ podLogsDir: '/var/lög' }, {}, ['pod logs path "/var/lög" mut contains ASCII characters only']],
  [
    { registerWithTaints: [{ key: 'a', value: 'b', effect: 'NoSchedule', timeAdded: '2026-01-01T00:00:00Z' }] },
    {},
    ['taint.TimeAdded is not nil'],
  ],
];

test('each rule in its own words', () => {
  for (const [wire, overrides, wanted] of RULES)
    assert.deepEqual(
      problems(wire, overrides),
      wanted.map((message) => IC + message),
      JSON.stringify([wire, overrides]),
    );
});

test('rules without the prefix', () => {
  assert.deepEqual(problems({ showHiddenMetricsForVersion: '1.35' }), []);
  assert.deepEqual(problems({ showHiddenMetricsForVersion: '1.30' }), [
    `invalid showHiddenMetricsForVersion: showHiddenMetricsForVersion: Invalid value: "1.30": must be omitted or have the value '1.35'; only the previous minor version is allowed`,
  ]);
  const table: [JsonObject, string[]][] = [
    [{ registerWithTaints: [{ key: '', value: '-', effect: 'X' }] }, ['invalid taint: { - X <nil>}']],
    [
      { logging: { flushFrequency: '-1s' } },
      ['logging.flushFrequency: Invalid value: "-1s": Must be greater than zero'],
    ],
    [{ logging: { format: 'xml' } }, ['logging.format: Invalid value: "xml": Unsupported log format']],
    [
      { logging: { format: 'json', vmodule: [{ filePattern: 'a', verbosity: 1 }] } },
      ['logging.vmodule: Forbidden: Only supported for text log format'],
    ],
    [
      { logging: { vmodule: [{ filePattern: '', verbosity: 1 }] } },
      ['logging.vmodule[0]: Required value: File pattern must not be empty'],
    ],
    [
      { logging: { vmodule: [{ filePattern: 'a=b', verbosity: 1 }] } },
      ['logging.vmodule[0]: Invalid value: "a=b": File pattern must not contain equal sign or comma'],
    ],
    [
      { logging: { options: { json: { splitStream: true } } } },
      ['logging.options.json.splitStream: Forbidden: Feature LoggingAlphaOptions is disabled'],
    ],
    [
      {
        logging: { options: { json: { splitStream: true, infoBufferSize: '1Ki' } } },
        featureGates: { LoggingAlphaOptions: true },
      },
      [],
    ],
    [
      { tracing: { samplingRatePerMillion: -1 } },
      ['tracing.samplingRatePerMillion: Invalid value: -1: sampling rate must be positive'],
    ],
    [
      { tracing: { samplingRatePerMillion: 1000001 } },
      [
        'tracing.samplingRatePerMillion: Invalid value: 1000001: sampling rate per million must be less than or equal to one million',
      ],
    ],
    [
      { tracing: { endpoint: 'http://localhost:4317' } },
      [
        'tracing.endpoint: Invalid value: "http://localhost:4317": unsupported scheme: http.  Options are none, dns, unix, or unix-abstract',
      ],
    ],
    [{ tracing: { endpoint: 'localhost:4317' } }, []],
    [{ tracing: { endpoint: 'unix:///x.sock' } }, []],
  ];
  for (const [wire, wanted] of table) assert.deepEqual(problems(wire), wanted, JSON.stringify(wire));
});

test('control groups v1', () => {
  assert.match(problems({}, {}, 1).join(), /^kubelet is configured to not run on a host using cgroup v1\. /);
  assert.deepEqual(problems({ failCgroupV1: false }, {}, 1), []);
  assert.deepEqual(problems({ failCgroupV1: false, singleProcessOOMKill: false }, {}, 1), [
    `${IC}singleProcessOOMKill must not be explicitly set to false when using cgroup v1`,
  ]);
  assert.deepEqual(problems({ singleProcessOOMKill: false }, {}, 2), []);
});

test('everything wrong is said at once', () => {
  assert.equal(problems({ maxPods: -1, podsPerCore: -1, hairpinMode: 'x', logging: { format: 'x' } }).length, 4);
});

test('node labels, node addresses, cloud provider, lock file', () => {
  const why = (...argv: string[]): string => {
    const { given } = parseFlags(argv);
    return validateFlags(kubeletFlags(given), given).join('|');
  };
  assert.equal(why('--node-labels=a=b,node.kubernetes.io/x=1,x.node.kubernetes.io/y=,kubernetes.io/os=linux'), '');
  assert.match(
    why('--node-labels=kubernetes.io/x=1,k8s.io/b='),
    /labels specified with --node-labels: \[k8s.io\/b kubernetes.io\/x\]\n--node-labels in the/,
  );
  assert.match(why('--node-labels=a b=c'), /^invalid node labels: 'a b' - name part must consist of/);
  assert.match(why('--node-labels=a=-'), /^invalid node labels: 'a' - a valid label must be/);
  assert.equal(isAllowedNodeLabel('notkubernetes.io/x'), true);
  assert.equal(isAllowedNodeLabel('sub.k8s.io/x'), false);
  assert.equal(why('--node-ip=1.2.3.4,::1'), '');
  assert.equal(why('--node-ip=0.0.0.0'), '');
  assert.match(
    why('--node-ip=1.2.3.4,1.2.3.5'),
    /bad --node-ip "1.2.3.4,1.2.3.5": must contain either a single IP or a dual-stack pair of IPs/,
  );
  assert.match(why('--node-ip=1.2.3.4,::1,::2'), /dual-stack pair/);
  assert.match(why('--node-ip=0.0.0.0,::1'), /cannot include '0.0.0.0' or '::'/);
  assert.deepEqual(parseNodeIps('x, 1.2.3.4,'), { ips: ['1.2.3.4'], ignored: ['x'] });
  assert.equal(why('--cloud-provider=external'), '');
  assert.match(why('--cloud-provider=aws'), /unknown cloud provider "aws"/);
  assert.match(why('--exit-on-lock-contention'), /cannot exit on lock file contention: no lock file specified/);
  assert.match(why('--hostname-override= '), /empty hostname is invalid/);
});

test('a manifest API that strangers could use', () => {
  const why = (anonymous: boolean, mode: string, ...argv: string[]): number => {
    const { given } = parseFlags(argv);
    const config = applyFlags(
      legacyDefaults(),
      parseFlags([`--anonymous-auth=${anonymous}`, `--authorization-mode=${mode}`]).given,
    );
    return validateTogether(kubeletFlags(given), config).length;
  };
  assert.equal(why(true, 'AlwaysAllow', '--enable-manifest-api'), 1);
  assert.equal(why(true, 'Webhook', '--enable-manifest-api'), 0);
  assert.equal(why(false, 'AlwaysAllow', '--enable-manifest-api'), 0);
  assert.equal(why(true, 'AlwaysAllow'), 0);
  assert.equal(validateTogether(kubeletFlags(parseFlags(['--enable-manifest-api']).given), legacyDefaults()).length, 1);
});

test('what is found only on this machine', () => {
  const machine = (cgroupVersion: 1 | 2) => ({ cgroupVersion, onlineCpus: () => new Set([0, 1, 2]) });
  const why = (wire: JsonObject, overrides: Record<string, unknown> = {}, version: 1 | 2 = 2): string => {
    let config = completeConfig(decodeFields(CONFIG_FIELDS, wire, () => undefined).value);
    for (const [path, value] of Object.entries(overrides)) config = withField(config, path, value);
    try {
      settleConfig(config, machine(version));
      return '';
    } catch (err) {
      return (err as Error).message;
    }
  };
  const table: [JsonObject, string][] = [
    [{ kubeReserved: { cpu: '1', pid: '10', 'ephemeral-storage': '1Gi' } }, ''],
    [{ kubeReserved: { gpu: '1' } }, '--kube-reserved value failed to parse: cannot reserve "gpu" resource'],
    [
      { systemReserved: { cpu: '-1' } },
      '--system-reserved value failed to parse: resource quantity for "cpu" cannot be negative: -1',
    ],
    [
      { systemReserved: { cpu: 'x' } },
      '--system-reserved value failed to parse: failed to parse quantity "x" for "cpu" resource',
    ],
    [{ reservedSystemCPUs: '2-3' }, 'reserved-cpus: 2-3 is not a subset of online-cpus: 0-2'],
    [{ evictionHard: { 'memory.available': '10%', 'pid.available': '100' } }, ''],
    [{ evictionHard: { memory: '10%' } }, 'evictionHard: unsupported eviction signal memory'],
    [{ evictionHard: { 'memory.available': '-1%' } }, 'evictionHard: eviction percentage threshold -1% must be >= 0%'],
    [{ evictionHard: { 'memory.available': '-1Mi' } }, 'evictionHard: eviction threshold -1Mi must be positive'],
    [{ evictionHard: { 'memory.available': '0' } }, 'evictionHard: eviction threshold 0 must be positive'],
    [{ evictionHard: { 'memory.available': '0%' }, evictionMinimumReclaim: { 'memory.available': '0' } }, ''],
    [{ evictionMinimumReclaim: { 'nodefs.available': '150%' } }, ''],
    [
      { evictionMinimumReclaim: { 'nodefs.available': '0%' } },
      'evictionMinimumReclaim: eviction percentage minimum reclaim 0% must be positive',
    ],
    [
      { evictionMinimumReclaim: { 'nodefs.available': '-1Mi' } },
      'evictionMinimumReclaim: negative eviction minimum reclaim specified: -1Mi',
    ],
    [
      { evictionMinimumReclaim: { 'nodefs.available': '%' } },
      'evictionMinimumReclaim: "%" is neither a quantity nor a percentage',
    ],
    [{ evictionHard: { 'memory.available': 'lots' } }, 'evictionHard: "lots" is neither a quantity nor a percentage'],
    [
      { evictionSoft: { 'memory.available': '1Gi' } },
      'grace period must be specified for the soft eviction threshold memory.available',
    ],
    [
      { evictionSoft: { 'memory.available': '1Gi' }, evictionSoftGracePeriod: { 'memory.available': '1x' } },
      'evictionSoftGracePeriod: time: invalid duration "1x"',
    ],
    [{ tlsMinVersion: 'TLS1.2' }, 'unknown tls version "TLS1.2"'],
    [{ authorization: { mode: 'Node' } }, 'unknown authorization mode Node'],
    [{ containerLogMaxSize: 'big' }, 'failed to parse container log max size "big"'],
    [{ configMapAndSecretChangeDetectionStrategy: 'Push' }, 'unknown configmap and secret manager mode: Push'],
    [{ qosReserved: { memory: '50%' } }, ''],
    [
      { qosReserved: { cpu: '50%' } },
      '--qos-reserved value failed to parse: cpu=50%: only memory, with a share of 0% to 100%',
    ],
  ];
  for (const [wire, wanted] of table) assert.equal(why(wire), wanted, JSON.stringify(wire));
  assert.equal(why({ memorySwap: { swapBehavior: 'LimitedSwap' } }), '');
  assert.match(why({ memorySwap: { swapBehavior: 'LimitedSwap' } }, {}, 1), /only supported with cgroupv2/);
  assert.equal(why({}, { syncFrequency: 0 }), 'invalid sync frequency 0');
});
