import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromMilli, fromUnits } from '../../core/quantity.ts';
import { chooseCpuPolicy, type CpuPolicyConfig } from './choose-policy.ts';

const MACHINE = {
  sockets: 2,
  nodes: [
    {
      id: 0,
      memoryBytes: 0,
      hugePages: [],
      distances: [],
      cores: [0, 1, 2, 3].map((n) => ({ socket: n % 2, threads: [n], uncoreCache: undefined })),
    },
  ],
};

const BASE: CpuPolicyConfig = {
  policy: 'static',
  options: {},
  gates: { alpha: false, beta: true },
  reservation: fromUnits(1),
  reservedCpus: new Set(),
  topologyPolicy: 'none',
  podLevelManagers: false,
};

const ALL_GATES = { alpha: true, beta: true };

const REFUSED: readonly (readonly [Partial<CpuPolicyConfig>, string])[] = [
  [{ policy: 'x' }, 'unknown policy: "x"'],
  [
    { policy: 'none', options: { b: '2', a: '1' } },
    'new none policy error: None policy: received unsupported options=map[a:1 b:2]',
  ],
  [{ reservation: undefined }, '[cpumanager] unable to determine reserved CPU resources for static policy'],
  [{ options: { x: 'true' } }, 'new static policy error: unknown CPU Manager Policy option: "x"'],
  [
    { options: { 'align-by-socket': 'true' } },
    'new static policy error: CPU Manager Policy Alpha-level Options not enabled, but option "align-by-socket" provided',
  ],
  [
    { options: { 'distribute-cpus-across-numa': 'true' }, gates: { alpha: true, beta: false } },
    'new static policy error: CPU Manager Policy Beta-level Options not enabled, but option "distribute-cpus-across-numa" provided',
  ],
  [
    { options: { 'full-pcpus-only': 'yes' } },
    'new static policy error: bad value for option "full-pcpus-only": strconv.ParseBool: parsing "yes": invalid syntax',
  ],
  [
    { options: { 'full-pcpus-only': 'true', 'distribute-cpus-across-cores': 'true' }, gates: ALL_GATES },
    'new static policy error: static policy options full-pcpus-only and distribute-cpus-across-cores can not be used at the same time',
  ],
  [
    { options: { 'align-by-socket': 'true' }, gates: ALL_GATES, topologyPolicy: 'single-numa-node' },
    'new static policy error: Topolgy manager single-numa-node policy is incompatible with CPUManager align-by-socket policy option',
  ],
  [
    { options: { 'align-by-socket': 'true' }, gates: ALL_GATES },
    'new static policy error: Align by socket is not compatible with hardware where number of sockets are more than number of NUMA',
  ],
  [
    { reservedCpus: new Set([0, 1]) },
    'new static policy error: [cpumanager] unable to reserve the required amount of CPUs (size of 0-1 did not equal 1)',
  ],
  [
    { reservedCpus: new Set([9]) },
    'new static policy error: [cpumanager] unable to build the reserved physical CPUs from the reserved set: unknown CPU ID: 9',
  ],
];

for (const [config, message] of REFUSED)
  test(`refused: ${message}`, () => {
    assert.throws(() => chooseCpuPolicy(MACHINE, { ...BASE, ...config }), { message });
  });

test('a fraction reserves a whole CPU; without CPUs there is no policy', () => {
  assert.equal(chooseCpuPolicy(MACHINE, { ...BASE, reservation: fromMilli(1100) })?.reserved.size, 2);
  assert.equal(chooseCpuPolicy(MACHINE, { ...BASE, policy: 'none' }), undefined);
  assert.throws(() => chooseCpuPolicy({ nodes: [], sockets: 0 }, BASE), {
    message: 'could not detect number of cpus',
  });
});
