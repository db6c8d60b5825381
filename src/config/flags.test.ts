import assert from 'node:assert/strict';
import { test } from 'node:test';
import { kubeletFlags, parseFlags, printFlags } from './flags.ts';

const given = (...argv: string[]): Record<string, unknown> => Object.fromEntries(parseFlags(argv).given);

test('values come after = or as the next argument, and _ counts as -', () => {
  assert.deepEqual(given('--max-pods=5'), { 'max-pods': 5 });
  assert.deepEqual(given('--max_pods', '5'), { 'max-pods': 5 });
  assert.deepEqual(given('--config='), { config: '' });
  assert.deepEqual(given('--config', '--max-pods=5'), { config: '--max-pods=5' });
  assert.deepEqual(given('--hostname-override', 'a_b'), { 'hostname-override': 'a_b' });
});

test('booleans need no value and take none from the next argument', () => {
  assert.deepEqual(given('--enable-server'), { 'enable-server': true });
  for (const no of ['false', '0', 'f', 'F', 'FALSE', 'False'])
    assert.deepEqual(given(`--enable-server=${no}`), { 'enable-server': false });
  assert.throws(() => given('--enable-server', 'false'), /unknown command "false"/);
  assert.throws(() => given('--enable-server=no'), /invalid argument "no" for "--enable-server" flag/);
});

test('shorthands', () => {
  for (const argv of [['-v=4'], ['-v4'], ['-v', '4'], ['--v', '4'], ['--v=4']])
    assert.deepEqual(given(...argv), { v: 4 });
  assert.deepEqual(given('-h', 'anything', '--at-all'), { help: true });
  assert.throws(() => given('-x'), /unknown shorthand flag: 'x' in -x/);
  assert.throws(() => given('-config=x'), /unknown shorthand flag: 'c' in -config=x \(did you mean --config\?\)/);
  assert.throws(() => given('-v'), /flag needs an argument: 'v' in -v/);
});

test('numbers are read in the bases Go reads', () => {
  for (const [text, value] of [
    ['0x10', 16],
    ['010', 8],
    ['0o17', 15],
    ['0b11', 3],
    ['1_000', 1000],
    ['+5', 5],
    ['-5', -5],
    ['0', 0],
  ] as const)
    assert.deepEqual(given(`--max-pods=${text}`), { 'max-pods': value }, text);
  for (const text of ['', ' ', '1.5', '08', '1__0', '2147483648', '-2147483649', '1e3', 'ten'])
    assert.throws(() => given(`--max-pods=${text}`), /invalid argument/, text);
  assert.deepEqual(given('--pod-max-pids=2147483648'), { 'pod-max-pids': 2147483648 });
  assert.throws(() => given('-v=-1'), /out of range/);
});

test('lists and maps replace on the first occurrence and grow on the next', () => {
  assert.deepEqual(given('--cluster-dns=1.1.1.1,2.2.2.2', '--cluster-dns', '3.3.3.3'), {
    'cluster-dns': ['1.1.1.1', '2.2.2.2', '3.3.3.3'],
  });
  assert.deepEqual(given('--tls-cipher-suites="a,b",c'), { 'tls-cipher-suites': ['a,b', 'c'] });
  assert.deepEqual(given('--cluster-dns='), { 'cluster-dns': [] });
  assert.deepEqual(given('--system-reserved=cpu=1,memory=1Gi', '--system-reserved=cpu=2'), {
    'system-reserved': { cpu: '2', memory: '1Gi' },
  });
  assert.deepEqual(given('--feature-gates=MemoryQoS=true,EventedPLEG=false'), {
    'feature-gates': { MemoryQoS: true, EventedPLEG: false },
  });
  assert.deepEqual(given('--eviction-hard=memory.available<5%,nodefs.available<1Gi'), {
    'eviction-hard': { 'memory.available': '5%', 'nodefs.available': '1Gi' },
  });
  assert.deepEqual(given('--cpu-manager-policy-options=a=b,c'), { 'cpu-manager-policy-options': { a: 'b,c' } });
  assert.deepEqual(given('--node-labels=a=b,c,d=e=f'), { 'node-labels': { a: 'b', c: '', d: 'e=f' } });
  assert.deepEqual(given('--manifest-url-header=A:1,A:2', '--manifest-url-header=B:x:y'), {
    'manifest-url-header': { A: ['1', '2'], B: ['x:y'] },
  });
  assert.throws(() => given('--system-reserved=cpu'), /malformed pair/);
  assert.throws(() => given('--feature-gates=A=maybe'), /invalid value of A/);
});

test('taints, reserved memory and module levels', () => {
  assert.deepEqual(given('--register-with-taints=a=b:NoSchedule,c:NoExecute')['register-with-taints'], [
    { key: 'a', value: 'b', effect: 'NoSchedule', timeAdded: undefined },
    { key: 'c', value: '', effect: 'NoExecute', timeAdded: undefined },
  ]);
  const keys = (...argv: string[]): string[] =>
    (given(...argv)['register-with-taints'] as { key: string }[]).map(({ key }) => key);
  assert.deepEqual(keys('--register-with-taints=a:NoSchedule', '--register-with-taints=b:NoSchedule'), ['b']);
  assert.deepEqual(keys('--register-with-taints=a:NoSchedule', '--register-with-taints='), []);
  assert.deepEqual(keys('--register-with-taints=a:NoSchedule-,b:NoSchedule,b:NoExecute'), ['b', 'b']);
  assert.throws(() => given('--register-with-taints=a=b:NoSchedule,a=c:NoSchedule'), /duplicated taints with the same/);
  for (const bad of [
    'a',
    'a=b',
    'a:NoSchedule,',
    'a=b:Never',
    '=b:NoSchedule',
    'a=b=c:NoSchedule',
    'a=-:NoSchedule',
    'a/b/c:NoExecute',
  ])
    assert.throws(() => given(`--register-with-taints=${bad}`), /invalid argument/, bad);
  assert.deepEqual(
    given('--reserved-memory=0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=1024Mi', '--reserved-memory', '2:memory=1k')[
      'reserved-memory'
    ],
    [
      { numaNode: 0, limits: { memory: '1Gi', 'hugepages-1Gi': '2Gi' } },
      { numaNode: 1, limits: { memory: '1Gi' } },
      { numaNode: 2, limits: { memory: '1k' } },
    ],
  );
  assert.equal(Object.hasOwn(given('--reserved-memory='), 'reserved-memory'), false);
  for (const bad of ['memory=1Gi', '0:disk=1', '0:memory=x', '-1:memory=1', ':memory=1', '0:memory=1:2'])
    assert.throws(() => given(`--reserved-memory=${bad}`), /invalid argument/, bad);
  const options = '--topology-manager-policy-options';
  assert.deepEqual(
    given(`${options}=prefer-closest-numa-nodes=true,max-allowable-numa-nodes=10`)['topology-manager-policy-options'],
    { 'prefer-closest-numa-nodes': 'true', 'max-allowable-numa-nodes': '10' },
  );
  assert.deepEqual(given(`${options}=`, `${options}=a=b`)['topology-manager-policy-options'], { a: 'b' });
  assert.deepEqual(given('--vmodule=pod*=4,server=2')['vmodule'], [
    { filePattern: 'pod*', verbosity: 4 },
    { filePattern: 'server', verbosity: 2 },
  ]);
});

test('unknown flags and words are refused, with the nearest match', () => {
  assert.throws(() => given('--confg=x'), /unknown flag: --confg \(did you mean --config\?\)/);
  assert.throws(() => given('--MaxPods=3'), /did you mean --max-pods/);
  assert.throws(
    () => given('--nothing-like-it-at-all'),
    (err: Error) => !err.message.includes('did you mean'),
  );
  assert.throws(() => given('run'), /unknown command "run"/);
  assert.throws(() => given('--', 'run'), /unknown command "run"/);
  assert.throws(() => given('---'), /bad flag syntax/);
  assert.throws(() => given('--=x'), /bad flag syntax/);
  assert.throws(() => given('--config'), /flag needs an argument: --config/);
  assert.throws(() => given('-'), /unknown command "-"/);
});

test('deprecated flags warn once', () => {
  const { warnings } = parseFlags(['--max-pods=1', '--max-pods=2', '--v=1', '--provider-id=x']);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0] ?? '', /^Flag --max-pods has been deprecated, /);
});

test('the values of headers and passwords are not shown', () => {
  const { given: flags } = parseFlags([
    '--manifest-url-header=Authorization:Bearer s3cret',
    '--storage-driver-password=s3cret',
  ]);
  assert.ok(![...printFlags(flags).values()].some((value) => value.includes('s3cret')));
  assert.throws(
    () => given('--manifest-url-header=s3cret'),
    (err: Error) => !err.message.includes('s3cret'),
  );
});

test('flags without a field have names in the process', () => {
  const flags = kubeletFlags(parseFlags(['--node-ip=1.2.3.4', '--minimum-container-ttl-duration=1m']).given);
  assert.equal(flags.nodeIp, '1.2.3.4');
  assert.equal(flags.minimumContainerTtlDurationMs, 60_000);
  assert.equal(flags.rootDir, '/var/lib/kubelet');
  assert.equal(flags.maximumDeadContainers, -1);
});
