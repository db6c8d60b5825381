import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { FileBudgets } from './file-budget.ts';
import { configMapFiles, commonUser, credentialFile, downwardFiles, DownwardValues, secretFiles } from './payload.ts';
import { modeForGroup, rootMatches } from './ownership.ts';
import { memorySize } from './plugins/empty-dir-backing.ts';
import { mediumOf } from './plugins/empty-dir.ts';

const shown = (files: ReadonlyMap<string, { data: Uint8Array; mode: number }>): Record<string, string> =>
  Object.fromEntries([...files].map(([path, f]) => [path, `${f.mode.toString(8)} ${Buffer.from(f.data).toString()}`]));

const budget = new FileBudgets().begin('u', 'v');
const valuesOf = (of: Pod, allocatable = {}): DownwardValues =>
  new DownwardValues(of, { podIPs: [], hostIPs: [] }, allocatable);

const all = { items: undefined, defaultMode: 0o644, optional: false };

test('keys of config maps and secrets become files', () => {
  const configMap = { metadata: { name: 'c' }, data: { a: 'é' }, binaryData: { b: 'AAEC' } };
  assert.deepEqual(shown(configMapFiles(configMap, all, budget)), { a: '644 é', b: '644 \u0000\u0001\u0002' });
  const items = [
    { key: 'a', path: 'x/y', mode: 0o400 },
    { key: 'b', path: 'b' },
  ];
  assert.deepEqual(shown(configMapFiles(configMap, { ...all, items }, budget)), {
    'x/y': '400 é',
    b: '644 \u0000\u0001\u0002',
  });
  const missing = { ...all, items: [{ key: 'zz', path: 'p' }] };
  assert.throws(() => configMapFiles(configMap, missing, budget), {
    message: 'configmap references non-existent config key: zz',
  });
  assert.deepEqual(shown(configMapFiles(configMap, { ...missing, optional: true }, budget)), {});
  assert.deepEqual(shown(configMapFiles(undefined, { ...all, optional: true }, budget)), {});
  const secret = { metadata: { name: 's' }, data: { k: 'dg==' } };
  assert.deepEqual(shown(secretFiles(secret, all, budget)), { k: '644 v' });
  assert.throws(() => secretFiles(secret, missing, budget), { message: 'references non-existent secret key: zz' });
});

const pod = (spec: Partial<Pod['spec']>): Pod => ({
  metadata: { name: 'p', namespace: 'ns', labels: { b: '2', a: '1' } },
  spec: { containers: [{ name: 'c', resources: { limits: { memory: '10Mi' } } }], ...spec },
});

test('downward files say what variables would', () => {
  const items = [
    { path: 'labels', fieldRef: { fieldPath: 'metadata.labels' }, mode: 0o400 },
    { path: 'mem', resourceFieldRef: { containerName: 'c', resource: 'limits.memory', divisor: '1Mi' } },
    { path: 'cpu', resourceFieldRef: { containerName: 'c', resource: 'limits.cpu' } },
  ];
  const files = downwardFiles(valuesOf(pod({}), { cpu: '4' }), items, 0o644, budget);
  assert.deepEqual(shown(files), { labels: '400 a="1"\nb="2"', mem: '644 10', cpu: '644 4' });
});

test('keys of a secret given as text, and downward files that refer to nothing', () => {
  const secret = { metadata: { name: 's' }, stringData: { k: 'v' } };
  assert.deepEqual(Object.keys(shown(secretFiles(secret, all, budget))), ['k']);
  const items = [
    { path: 'nothing' },
    { path: 'cpu', resourceFieldRef: { containerName: 'c', resource: 'limits.cpu' } },
  ];
  const own = pod({ containers: [{ name: 'c', resources: { limits: { cpu: '2' } } }] });
  assert.deepEqual(Object.keys(shown(downwardFiles(valuesOf(own), items, 0o644, budget))), ['cpu']);
  assert.throws(() =>
    downwardFiles(valuesOf(own), [{ path: 'x', resourceFieldRef: { resource: 'limits.cpu' } }], 0o644, budget),
  );
});

test('credentials belong to the one user of the pod, or to its group', () => {
  const user = (n: number) => ({ securityContext: { runAsUser: n } });
  assert.equal(commonUser(pod({})), undefined);
  assert.equal(commonUser(pod({ securityContext: { runAsUser: 5 } })), 5);
  assert.equal(commonUser(pod({ containers: [{ name: 'c', ...user(7) }] })), 7);
  assert.equal(
    commonUser(pod({ containers: [{ name: 'c', ...user(7) }], initContainers: [{ name: 'i' }] })),
    undefined,
  );
  assert.equal(
    commonUser(
      pod({
        containers: [{ name: 'c', ...user(7) }],
        securityContext: { runAsUser: 7 },
        initContainers: [{ name: 'i' }],
      }),
    ),
    7,
  );
  assert.deepEqual(credentialFile(pod({}), { path: 'p', data: 't' }, 0o644, budget), {
    data: Buffer.from('t'),
    mode: 0o644,
  });
  assert.equal(
    credentialFile(pod({ securityContext: { fsGroup: 1 } }), { path: 'p', data: 't' }, 0o644, budget).mode,
    0o600,
  );
  assert.deepEqual(
    credentialFile(pod({ securityContext: { runAsUser: 5 } }), { path: 'p', data: 't' }, 0o644, budget),
    {
      data: Buffer.from('t'),
      mode: 0o600,
      uid: 5,
    },
  );
});

test('group ownership adds what the group needs', () => {
  const rows: [number, boolean, boolean, number][] = [
    [0o777, true, false, 0o2777],
    [0o1777, true, true, 0o3777],
    [0o755, true, true, 0o2755],
    [0o700, true, false, 0o2770],
    [0o600, false, true, 0o640],
    [0o600, false, false, 0o660],
    [0o4711, false, false, 0o4771],
  ];
  for (const [mode, isDirectory, readOnly, want] of rows) {
    assert.equal(modeForGroup(mode, isDirectory, readOnly), want, mode.toString(8));
  }
  const how = { gid: 5, readOnly: false, changePolicy: 'OnRootMismatch' } as const;
  assert.equal(rootMatches({ gid: 5, mode: 0o42777 }, how), true);
  assert.equal(rootMatches({ gid: 6, mode: 0o42777 }, how), false);
  assert.equal(rootMatches({ gid: 5, mode: 0o40777 }, how), false);
});

test('memory volumes are as large as the smallest bound', () => {
  assert.equal(memorySize(pod({}), 1 << 30, undefined), 10 * 2 ** 20);
  assert.equal(memorySize(pod({}), 1 << 20, undefined), 1 << 20);
  assert.equal(memorySize(pod({}), 1 << 30, '1Mi'), 1 << 20);
  assert.equal(memorySize(pod({ containers: [{ name: 'c' }] }), 0, undefined), undefined);
  // A container without a limit leaves the pod without one.
  const limited = { name: 'c', resources: { limits: { memory: '1Mi' } } };
  assert.equal(memorySize(pod({ containers: [limited, limited] }), 1 << 30, undefined), 2 << 20);
  assert.equal(memorySize(pod({ containers: [limited, { name: 'd' }] }), 1 << 30, undefined), 1 << 30);
  const whole = { containers: [limited, { name: 'd' }], resources: { limits: { memory: '3Mi' } } };
  assert.equal(memorySize(pod(whole), 1 << 30, undefined), 3 << 20);
});

test('the medium decides what an emptyDir is made of', () => {
  const huge = (...sizes: string[]): Pod =>
    pod({
      containers: [
        { name: 'c', resources: { limits: Object.fromEntries(sizes.map((s) => [`hugepages-${s}`, '4Mi'])) } },
      ],
    });
  assert.deepEqual(mediumOf(pod({}), {}, 0), { on: 'disk' });
  assert.deepEqual(mediumOf(huge('2Mi'), { medium: 'HugePages' }, 0), { on: 'hugepages', pageSize: '2Mi' });
  assert.deepEqual(mediumOf(huge('2Mi', '1Gi'), { medium: 'HugePages-1Gi' }, 0), { on: 'hugepages', pageSize: '1Gi' });
  assert.throws(
    () => mediumOf(huge('2Mi', '1Gi'), { medium: 'HugePages' }, 0),
    /can't be used if container requests multiple huge page sizes$/,
  );
  assert.throws(
    () => mediumOf(pod({}), { medium: 'HugePages' }, 0),
    /^KubeletError: medium HugePages: hugePages storage requested/,
  );
  assert.throws(
    () => mediumOf(huge('2Mi'), { medium: 'HugePages-1Gi' }, 0),
    /medium HugePages-1Gi: .* there is no resource request for huge pages$/,
  );
  assert.throws(() => mediumOf(pod({}), { medium: 'Tape' }, 0), /unknown storage medium/);
});
