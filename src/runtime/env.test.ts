// Variables: expansion and a container's environment.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, Pod, PodSpec } from '../core/pod.ts';
import { containerConfig } from './container-config.ts';
import { EnvFile } from './env-file.ts';
import { containerEnv, envReferences, type EnvObjects } from './env.ts';
import { containerBudget } from '../core/bounds.ts';
import { expand, expandStrictly } from '../lib/expansion.ts';
import { facts } from '../../test/golden/fixture.ts';

const podOf = (spec: Partial<PodSpec> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u', ...metadata },
  spec: { containers: [{ name: 'a' }], enableServiceLinks: true, ...spec },
});

describe('expansion', () => {
  const spending = { budget: containerBudget(), field: 'f' };
  const vars: Record<string, string> = { A: 'a', E: '' };
  for (const [text, want] of [
    ['$(A)', 'a'],
    ['x$(A)y$(A)', 'xaya'],
    ['$$(A)', '$(A)'],
    ['$$$(A)', '$a'],
    ['$(B)', '$(B)'],
    ['$(A', '$(A'],
    ['$A', '$A'],
    ['a$', 'a$'],
    ['$$', '$'],
    ['$(E)', ''],
    ['$($(A))', '$($(A))'],
    ['', ''],
  ] as const)
    it(JSON.stringify(text), () =>
      assert.equal(
        expand(text, (n) => vars[n], spending),
        want,
      ),
    );
  it('strict: unknown or empty is an error', () => {
    const missing = (names: string) => ({ message: `missing value for ${names}` });
    assert.throws(() => expandStrictly('$(B)', (n) => vars[n], spending), missing('B'));
    assert.throws(() => expandStrictly('$(E)/$(A)/$(C)/$(B)/$(E)', (n) => vars[n], spending), missing('B, C, E'));
    assert.equal(
      expandStrictly('x/$(A)', (n) => vars[n], spending),
      'x/a',
    );
  });
});

describe('what has to be read before', () => {
  it('config maps, secrets and files, by name', () => {
    const found = envReferences({
      name: 'a',
      envFrom: [
        { configMapRef: { name: 'c1' } },
        { secretRef: { name: 's1' } },
        { configMapRef: {} },
        { secretRef: {} },
        {},
      ],
      env: [
        { name: 'A', value: 'x' },
        { name: 'B', valueFrom: { configMapKeyRef: { name: 'c2', key: 'k' } } },
        { name: 'C', valueFrom: { secretKeyRef: { key: 'k' } } },
        { name: 'D', valueFrom: { fileKeyRef: { volumeName: 'v', path: 'f', key: 'k' } } },
        { name: 'E', valueFrom: { configMapKeyRef: { key: 'k' } } },
      ],
    });
    assert.deepEqual([...found.configMaps], ['c1', '', 'c2']);
    assert.deepEqual([...found.secrets], ['s1', '']);
    assert.deepEqual([...found.files.keys()], ['v/f']);
    assert.deepEqual(envReferences({ name: 'a' }), { configMaps: new Set(), secrets: new Set(), files: new Map() });
  });
});

describe('environment', () => {
  const objects: EnvObjects = {
    configMaps: new Map([['cm', { metadata: { name: 'cm' }, data: { k: 'v', SHARED: 'cm' } }]]),
    secrets: new Map([['s', { metadata: { name: 's' }, data: { p: Buffer.from('pw').toString('base64') } }]]),
    files: new Map([['vol/f', "X='1'\n# c\nY='two words'\n"]]),
    services: [{ metadata: { name: 'db', namespace: 'ns' }, spec: { clusterIP: '10.0.0.9', ports: [{ port: 5432 }] } }],
  };
  const env = (container: Partial<Container>, pod = podOf(), given = objects): ReadonlyMap<string, string> =>
    containerEnv(pod, { name: 'a', ...container }, given, {
      podIPs: ['1.1.1.1'],
      hostIPs: ['2.2.2.2'],
      ipFamily: 4,
      allocatable: { cpu: '2' },
    });

  it('addresses as the status shows them, whatever the runtime’s order', () => {
    const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
    const container = { name: 'a', env: [field('IP', 'status.podIP'), field('IPS', 'status.podIPs')] };
    const rows: [podIPs: string[], ipFamily: 4 | 6, ip: string, ips: string][] = [
      [['10.0.0.1', 'fd00::1'], 4, '10.0.0.1', '10.0.0.1,fd00::1'],
      [['fd00::1', '10.0.0.1', '10.0.0.2'], 4, '10.0.0.1', '10.0.0.1,fd00::1'],
      [['10.0.0.1', 'fd00::1'], 6, 'fd00::1', 'fd00::1,10.0.0.1'],
      [['fd00::1'], 4, 'fd00::1', 'fd00::1'],
    ];
    for (const [podIPs, ipFamily, ip, ips] of rows) {
      const made = containerEnv(podOf(), container, objects, { podIPs, hostIPs: [], allocatable: {}, ipFamily });
      assert.deepEqual([made.get('IP'), made.get('IPS')], [ip, ips]);
    }
  });

  it('sources without a name, and variables of other containers', () => {
    assert.throws(() => env({ envFrom: [{ configMapRef: {} }] }), /configmap "" not found/);
    assert.throws(() => env({ envFrom: [{ secretRef: {} }] }), /secret "" not found/);
    const empty = { ...objects, configMaps: new Map([['e', { metadata: { name: 'e' } }]]) };
    assert.equal(env({ envFrom: [{ configMapRef: { name: 'e' } }, {}] }, podOf(), empty).has('k'), false);
    const optional = env({
      envFrom: [{ configMapRef: { name: 'no', optional: true } }, { secretRef: { name: 'no', optional: true } }],
      env: [
        { name: 'A', valueFrom: { configMapKeyRef: { name: 'no', key: 'k', optional: true } } },
        { name: 'B', valueFrom: { secretKeyRef: { name: 's', key: 'no', optional: true } } },
        { name: 'C', valueFrom: {} },
        { name: 'D', valueFrom: { resourceFieldRef: { containerName: 'a', resource: 'limits.cpu' } } },
      ],
    });
    assert.deepEqual(
      [optional.has('A'), optional.has('B'), optional.get('C'), optional.get('D')],
      [false, false, '', '2'],
    );
  });

  it('envFrom, then env, then services that nothing hides', () => {
    const got = env({
      envFrom: [{ configMapRef: { name: 'cm' } }, { prefix: 'S_', secretRef: { name: 's' } }],
      env: [
        { name: 'SHARED', value: 'own' },
        { name: 'DB_SERVICE_HOST', value: 'hidden' },
      ],
    });
    assert.equal(got.get('k'), 'v');
    assert.equal(got.get('S_p'), 'pw');
    assert.equal(got.get('SHARED'), 'own');
    assert.equal(got.get('DB_SERVICE_HOST'), 'hidden');
    assert.equal(got.get('DB_PORT'), 'tcp://10.0.0.9:5432');
  });
  it('a Secret that is no text gets to its container as it is, also as a part of another variable', () => {
    const key = Buffer.from([0x61, 0x80, 0xff, 0xc3, 0xbc, 0x62]);
    const secrets = new Map([['s', { metadata: { name: 's' }, data: { key: key.toString('base64') } }]]);
    const container = {
      name: 'a',
      envFrom: [{ prefix: 'ALL_', secretRef: { name: 's' } }],
      env: [
        { name: 'KEY', valueFrom: { secretKeyRef: { name: 's', key: 'key' } } },
        { name: 'URL', value: 'x:$(KEY)' },
      ],
    };
    const config = containerConfig(
      {
        pod: podOf(),
        container,
        restartCount: 0,
        imageRef: 'i',
        imageUser: { username: '' },
        env: env(container, podOf({ enableServiceLinks: false }), { ...objects, secrets }),
        volumes: new Map(),
        volumeMounts: [],
        hostsFile: undefined,
        terminationLog: undefined,
        additions: {},
        userns: undefined,
      },
      facts('/r'),
    );
    assert.deepEqual(config.envs, [
      { key: 'ALL_key', value: key },
      { key: 'KEY', value: key },
      { key: 'URL', value: Buffer.concat([Buffer.from('x:'), key]) },
    ]);
  });
  it('only variables defined before are expanded, and services', () => {
    const got = env({
      env: [
        { name: 'A', value: '$(B) $(DB_SERVICE_PORT)' },
        { name: 'B', value: 'b' },
        { name: 'C', value: '$(B)' },
      ],
    });
    assert.equal(got.get('A'), '$(B) 5432');
    assert.equal(got.get('C'), 'b');
  });
  it('references', () => {
    const got = env({
      env: [
        { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
        { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
        { name: 'F', valueFrom: { fileKeyRef: { volumeName: 'vol', path: 'f', key: 'Y' } } },
        { name: 'OPT', valueFrom: { secretKeyRef: { name: 'gone', key: 'k', optional: true } } },
      ],
    });
    assert.deepEqual(
      [got.get('IP'), got.get('CPU'), got.get('F'), got.has('OPT')],
      ['1.1.1.1', '2', 'two words', false],
    );
  });
  for (const [what, container, problem] of [
    ['no config map', { envFrom: [{ configMapRef: { name: 'x' } }] }, 'configmap "x" not found'],
    [
      'no secret',
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 'x', key: 'k' } } }] },
      'secret "x" not found',
    ],
    [
      'no key in config map',
      { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'cm', key: 'x' } } }] },
      "couldn't find key x in ConfigMap ns/cm",
    ],
    [
      'no key in secret',
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'x' } } }] },
      "couldn't find key x in Secret ns/s",
    ],
    [
      'no key in config map by a name that objects have',
      { env: [{ name: 'A', valueFrom: { configMapKeyRef: { name: 'cm', key: 'constructor' } } }] },
      "couldn't find key constructor in ConfigMap ns/cm",
    ],
    [
      'no key in secret by a name that objects have',
      { env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'toString' } } }] },
      "couldn't find key toString in Secret ns/s",
    ],
    [
      'no key in file',
      { env: [{ name: 'A', valueFrom: { fileKeyRef: { volumeName: 'vol', path: 'f', key: 'Q' } } }] },
      'environment variable key "Q" not found in file "f"',
    ],
  ] as const)
    it(what, () => assert.throws(() => env(container), { message: problem }));
  it('services not read yet: only static pods may start', () => {
    const none = { ...objects, services: undefined };
    assert.throws(
      () => env({}, podOf(), none),
      /services have not yet been read at least once, cannot construct envvars/,
    );
    assert.equal(env({}, podOf({}, { annotations: { 'kubernetes.io/config.source': 'file' } }), none).size, 0);
  });
  it('links not decided', () => {
    const { enableServiceLinks: _, ...spec } = podOf().spec;
    assert.throws(() => env({}, { ...podOf(), spec }), /nil pod\.spec\.enableServiceLinks encountered/);
  });
  it('links not wanted: only the API server', () =>
    assert.equal(env({}, podOf({ enableServiceLinks: false })).size, 0));
  it('environment files', () => {
    const file = "# c\n\n  A='1 # x' # comment\nM='one\n two\n'\nA='2'\nE= 'not this'\n$ID='a=b'\n";
    const rows: [string, string | undefined][] = [
      ['A', '1 # x'],
      ['M', 'one\n two\n'],
      ['E', ''],
      ['$ID', 'a=b'],
      ['none', undefined],
    ];
    for (const [key, value] of rows) assert.equal(new EnvFile(file, 'f').value(key), value);
  });
  it('bad environment files', () => {
    const rows: [string, RegExp][] = [
      ['A=1', /^couldn't parse env file "f": line 1: the value is not in single quotes/],
      ['\nB', /line 2: missing '='/],
      ["='1'", /line 1: empty variable name/],
      ["B ='1'", /line 1: whitespace before '='/],
      ["B='1\n2\n", /line 1: the single quote is not closed/],
      ["B='1\n2'3", /line 2: text behind the closing quote/],
    ];
    for (const [text, message] of rows) assert.throws(() => new EnvFile(text, 'f').value('A'), { message });
    assert.equal(new EnvFile("A='1'\nrubbish", 'f').value('A'), '1', 'what stands behind it does not matter');
  });
});

describe('the budget of a container', () => {
  const made = (container: Partial<Container>) =>
    containerEnv(
      podOf({ enableServiceLinks: false }),
      { name: 'a', ...container },
      { configMaps: new Map(), secrets: new Map(), files: new Map(), services: [] },
      { podIPs: [], hostIPs: [], allocatable: {}, ipFamily: 4 },
    );
  const MIB = 1024 * 1024;

  it('has room for what Linux passes to a program', () => {
    const env = Array.from({ length: 48 }, (_, i) => ({ name: `V${i}`, value: 'x'.repeat(MIB / 8) }));
    assert.equal([...made({ env }).values()].join('').length, 6 * MIB);
  });
  it('ends with the variable that passes it', () => {
    const env = [
      { name: 'A', value: 'x'.repeat(MIB) },
      { name: 'B', value: '$(A)$(A)$(A)$(A)' },
      { name: 'C', value: '$(A)$(A)$(A)$(A)' },
    ];
    assert.throws(() => made({ env }), {
      kind: 'invalid',
      message:
        'environment, command, arguments and sub paths of the container are larger than 8 MiB together (reached at environment variable C)',
    });
  });
});
