import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readCommand, type Configuration } from './configure.ts';
import { toVersionedJson } from './convert.ts';
import { maskUrl } from '../lib/http/mask-url.ts';
import { maskConfig } from './mask.ts';
import { mergePatch } from './merge-patch.ts';
import { applyLive, diffConfig } from './reload.ts';

const HEAD = 'apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n';
const dir = mkdtempSync(join(tmpdir(), 'kubelet-config-'));
after(() => rmSync(dir, { recursive: true }));
let count = 0;

function file(body: string, head = HEAD): string {
  const path = join(dir, `config-${count++}.yaml`);
  writeFileSync(path, head + body);
  return path;
}

const machine = { cgroupVersion: 2 as const, onlineCpus: () => new Set([0, 1]) };

async function load(...argv: string[]): Promise<Configuration> {
  const command = await readCommand(argv, machine);
  assert.ok(command.do === 'run');
  return command.configuration;
}

test('the recorded configuration of a real kubelet prints as it printed', async () => {
  const golden = JSON.parse(readFileSync(join(import.meta.dirname, 'testdata/configz.json'), 'utf8')) as {
    kubeletconfig: Record<string, unknown>;
  };
  const path = file(JSON.stringify(golden.kubeletconfig), '');
  const { published, warnings } = await load(`--config=${path}`);
  assert.deepEqual(warnings, []);
  assert.equal(JSON.stringify(toVersionedJson(published)), JSON.stringify(golden.kubeletconfig));
});

test('a file says little, defaults say the rest; without a file older defaults hold', async () => {
  const withFile = await load(`--config=${file('')}`);
  assert.equal(withFile.config.authentication.anonymous.enabled, false);
  assert.equal(withFile.config.authentication.webhook.enabled, true);
  assert.equal(withFile.config.authorization.mode, 'Webhook');
  assert.equal(withFile.config.readOnlyPort, 0);
  assert.equal(withFile.config.evictionHard['imagefs.inodesFree'], '5%');
  const without = await load();
  assert.equal(without.config.authentication.anonymous.enabled, true);
  assert.equal(without.config.authentication.webhook.enabled, false);
  assert.equal(without.config.authorization.mode, 'AlwaysAllow');
  assert.equal(without.config.readOnlyPort, 10255);
  assert.deepEqual(without.config.evictionHard, {});
});

test('flags win over drop-ins, drop-ins over the file, the file over defaults', async () => {
  const drops = join(dir, 'drops');
  mkdirSync(join(drops, '20-sub'), { recursive: true });
  writeFileSync(join(drops, '10.conf'), `${HEAD}maxPods: 20\npodsPerCore: 2\nsyncFrequency: 20s\n`);
  writeFileSync(
    join(drops, '20-sub', 'a.conf'),
    `${HEAD}podsPerCore: 3\nclusterDNS: [9.9.9.9]\nevictionHard: {memory.available: 1Gi}\n`,
  );
  writeFileSync(
    join(drops, '30.conf'),
    JSON.stringify({ apiVersion: 'kubelet.config.k8s.io/v1beta1', kind: 'KubeletConfiguration', syncFrequency: null }),
  );
  writeFileSync(join(drops, 'ignored.yaml'), 'nonsense: [');
  const path = file(
    'maxPods: 10\npodsPerCore: 1\nregistryBurst: 7\nsyncFrequency: 10s\nclusterDNS: [1.1.1.1, 2.2.2.2]\nfeatureGates: {MemoryQoS: true, EventedPLEG: true}\n',
  );
  const { config } = await load(
    `--config=${path}`,
    `--config-dir=${drops}`,
    '--max-pods=30',
    '--feature-gates=EventedPLEG=false',
  );
  assert.equal(config.maxPods, 30);
  assert.equal(config.podsPerCore, 3);
  assert.equal(config.registryBurst, 7);
  assert.equal(config.syncFrequencyMs, 60_000, 'null deletes, the default comes back');
  assert.deepEqual(config.clusterDNS, ['9.9.9.9'], 'lists replace');
  assert.equal(config.evictionHard['memory.available'], '1Gi');
  assert.equal(config.evictionHard['nodefs.available'], '10%', 'maps merge over what the loader injected');
  assert.deepEqual(config.featureGates, { MemoryQoS: true, EventedPLEG: false }, 'gates join key by key');
});

test('drop-ins alone keep the older defaults', async () => {
  const drops = mkdtempSync(join(dir, 'only-'));
  writeFileSync(join(drops, 'a.conf'), `${HEAD}maxPods: 3\n`);
  const { config } = await load(`--config-dir=${drops}`);
  assert.equal(config.maxPods, 3);
  assert.equal(config.readOnlyPort, 10255);
  assert.equal(config.authorization.mode, 'AlwaysAllow');
});

test('map and list flags replace what the file says', async () => {
  const path = file('clusterDNS: [1.1.1.1]\nsystemReserved: {cpu: "1", memory: 1Gi}\n');
  const { config } = await load(`--config=${path}`, '--cluster-dns=2.2.2.2', '--system-reserved=cpu=2');
  assert.deepEqual(config.clusterDNS, ['2.2.2.2']);
  assert.deepEqual(config.systemReserved, { cpu: '2' });
});

test('split streams of a file count with their gate only, those of a flag need it', async () => {
  const split = 'logging: {options: {json: {splitStream: true}, text: {splitStream: true}}}\n';
  const without = await load(`--config=${file(split)}`);
  assert.deepEqual([without.config.logging.options.json.splitStream, without.warnings.length], [false, 2]);
  const withGate = await load(`--config=${file(`${split}featureGates: {LoggingAlphaOptions: true}\n`)}`);
  assert.deepEqual([withGate.config.logging.options.json.splitStream, withGate.warnings.length], [true, 0]);
  await assert.rejects(load('--log-json-split-stream'), /json\.splitStream: Forbidden/);
});

test('eviction defaults', async () => {
  const hard = async (body: string): Promise<unknown> => (await load(`--config=${file(body)}`)).config.evictionHard;
  assert.deepEqual(await hard('evictionHard: {}\n'), {});
  assert.deepEqual(await hard('evictionHard: {memory.available: 2Gi}\n'), { 'memory.available': '2Gi' });
  assert.deepEqual(await hard('mergeDefaultEvictionSettings: true\nevictionHard: {memory.available: 2Gi}\n'), {
    'memory.available': '2Gi',
    'nodefs.available': '10%',
    'nodefs.inodesFree': '5%',
    'imagefs.available': '15%',
    'imagefs.inodesFree': '5%',
  });
  assert.equal(Object.keys((await hard('evictionHard: null\n')) as object).length, 5);
});

test('defaults that follow from other fields', async () => {
  const at = async (body: string): Promise<Configuration['config']> => (await load(`--config=${file(body)}`)).config;
  assert.equal((await at('nodeStatusUpdateFrequency: 7s\n')).nodeStatusReportFrequencyMs, 7000);
  assert.equal(
    (await at('nodeStatusReportFrequency: 9s\nnodeStatusUpdateFrequency: 7s\n')).nodeStatusReportFrequencyMs,
    9000,
  );
  assert.equal((await at('maxParallelImagePulls: 2\n')).serializeImagePulls, false);
  assert.equal((await at('maxParallelImagePulls: 1\n')).serializeImagePulls, true);
  assert.equal((await at('podPidsLimit: -5\n')).podPidsLimit, -1);
  assert.equal((await at('podPidsLimit: 0\n')).podPidsLimit, 0);
  assert.equal((await at('syncFrequency: 0s\nport: 0\naddress: ""\n')).syncFrequencyMs, 60_000);
  assert.equal((await at('oomScoreAdj: 0\nresolvConf: ""\n')).resolvConf, '');
  assert.deepEqual((await at('enforceNodeAllocatable: []\n')).enforceNodeAllocatable, []);
  assert.equal(
    (await at('featureGates: {KubeletCrashLoopBackOffMax: false}\n')).crashLoopBackOff.maxContainerRestartPeriodMs,
    undefined,
  );
  assert.equal((await at('logging: {flushFrequency: 2000000000}\n')).logging.flushFrequencyMs, 2000);
  assert.equal((await load('--seccomp-default')).config.seccompDefault, true);
});

test('relative paths begin at the file, those of drop-ins stay', async () => {
  const path = file(
    'staticPodPath: manifests\ntlsCertFile: /abs/cert\nresolvConf: r.conf\nauthentication: {x509: {clientCAFile: ../ca.crt}}\npodLogsDir: logs\n',
  );
  const { config } = await load(`--config=${path}`);
  assert.equal(config.staticPodPath, join(dir, 'manifests'));
  assert.equal(config.tlsCertFile, '/abs/cert');
  assert.equal(config.resolvConf, join(dir, 'r.conf'));
  assert.equal(config.authentication.x509.clientCAFile, join(dir, '../ca.crt'));
  assert.equal(config.podLogsDir, join(dir, 'logs'));
  assert.equal(config.authentication.webhook.enabled, true);
});

test('unknown and repeated fields are reported with their place, and the file still counts', async () => {
  const path = file('maxPodz: 3\nauthentication:\n  x509:\n    clientCaFile: /x\nmaxPods: 5\nmaxPods: 6\n');
  const { config, warnings } = await load(`--config=${path}`);
  assert.equal(config.maxPods, 6);
  assert.deepEqual(warnings, [
    `${path}:3:1: unknown field "maxPodz", did you mean "maxPods"?`,
    `${path}:6:5: unknown field "authentication.x509.clientCaFile"`,
    `${path}:8:1: field "maxPods" is given more than once, the last one counts`,
  ]);
});

test('wrong types are fatal, all of them, with their place', async () => {
  const path = file(
    'maxPods: many\nclusterDNS: 10.0.0.1\nevictionHard:\n  memory.available: 100\nsyncFrequency: 5\nregisterWithTaints:\n- key: [a]\n',
  );
  await assert.rejects(load(`--config=${path}`), (err: Error) => {
    for (const part of [
      `failed to load kubelet config file, path: ${path}, error: failed to decode: `,
      `${path}:3:1: maxPods: expected a whole number, got the string "many"`,
      `${path}:4:1: clusterDNS: expected a list, got the string "10.0.0.1"`,
      `${path}:6:3: evictionHard.memory.available: expected a string, got the number 100`,
      `${path}:7:1: syncFrequency: expected a duration such as "1m30s", got the number 5`,
      `${path}:9:3: registerWithTaints[0].key: expected a string, got a list`,
    ])
      assert.ok(err.message.includes(part), `${part}\n${err.message}`);
    return true;
  });
});

test('the YAML of Go: 1.1 booleans, no base 60, no dates', async () => {
  const { config } = await load(
    `--config=${file('enableServer: no\nclusterDomain: 2026-11-15\nproviderID: 1:30\nregisterNode: on\n')}`,
  );
  assert.equal(config.enableServer, false);
  assert.equal(config.clusterDomain, '2026-11-15');
  assert.equal(config.providerID, '1:30');
});

test('anchors and merge keys work, bombs do not', async () => {
  const { config } = await load(
    `--config=${file('systemReserved: &r {cpu: "1", memory: 1Gi}\nkubeReserved:\n  <<: *r\n  cpu: "2"\n')}`,
  );
  assert.deepEqual(config.kubeReserved, { cpu: '2', memory: '1Gi' });
  const bomb = ['a: &a [x,x,x,x,x,x,x,x,x]'];
  for (let i = 1; i < 10; i++)
    bomb.push(
      `b${i}: &${String.fromCharCode(97 + i)} [${Array(9)
        .fill(`*${String.fromCharCode(96 + i)}`)
        .join(',')}]`,
    );
  await assert.rejects(load(`--config=${file(bomb.join('\n'))}`), /too many values/);
  await assert.rejects(load(`--config=${file(`a: ${'['.repeat(5000)}`)}`), /failed to load kubelet config file/);
  await assert.rejects(load(`--config=${file('__proto__: {polluted: true}\nmaxPods: x\n')}`), /maxPods/);
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined);
});

test('what is no configuration file', async () => {
  const table: [string, RegExp][] = [
    [join(dir, 'missing'), /open .*missing: no such file or directory/],
    [dir, /is a directory/],
    [file('', ''), /kubelet config file ".*" was empty/],
    [file('a: [', ''), /:1:5?:?/],
    [file('- a\n', ''), /expected a map of fields at the top/],
    [file('just text', ''), /expected a map/],
    [file('maxPods: 3\n', ''), /Object 'Kind' is missing and Object 'apiVersion' is missing/],
    [file('kind: KubeletConfiguration\n', ''), /Object 'apiVersion' is missing/],
    [file('kind: Pod\napiVersion: v1\n', ''), /no kind "Pod" is registered for version "v1"/],
    [
      file('kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1\n', ''),
      /expected KubeletConfiguration of/,
    ],
  ];
  for (const [path, wanted] of table) {
    await assert.rejects(load(`--config=${path}`), (err: Error) => {
      assert.match(err.message, /^failed to load kubelet config file, path: /);
      assert.match(err.message, wanted);
      return true;
    });
  }
  await assert.rejects(
    load('--config-dir=/nowhere/at/all'),
    /^KubeletError: failed to merge kubelet configs: .*no such file/,
  );
});

test('merge patch as in the examples of its RFC', () => {
  const table: [string, string, string][] = [
    ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
    ['{"a":"b"}', '{"a":null}', '{}'],
    ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
    ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
    ['["a","b"]', '["c","d"]', '["c","d"]'],
    ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
    ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
  ];
  for (const [target, patch, wanted] of table)
    assert.equal(JSON.stringify(mergePatch(JSON.parse(target), JSON.parse(patch))), wanted);
});

test('secrets are masked', async () => {
  const path = file(
    'staticPodURL: https://user:s3cret@host/path?token=s3cret\nstaticPodURLHeader: {Authorization: [Bearer s3cret, more s3cret]}\n',
  );
  const { published } = await load(`--config=${path}`);
  const masked = JSON.stringify(maskConfig(toVersionedJson(published)));
  assert.ok(!masked.includes('s3cret'), masked);
  assert.ok(masked.includes('"staticPodURLHeader":{"Authorization":["<masked>"]}'), masked);
  assert.equal(maskUrl('https://host/path'), 'https://host/path');
  assert.equal(maskUrl('http://u@host:8080/?a=b#c'), 'http://<masked>@host:8080/?<masked>#c');
});

test('a changed configuration says what takes effect and what waits', async () => {
  const before = (await load(`--config=${file('maxPods: 5\nlogging: {verbosity: 1}\n')}`)).config;
  const after = (
    await load(
      `--config=${file('maxPods: 6\nimageGCHighThresholdPercent: 90\nlogging: {verbosity: 4, format: json}\n')}`,
    )
  ).config;
  assert.deepEqual(diffConfig(before, after), {
    live: ['imageGCHighThresholdPercent', 'logging.verbosity'],
    needRestart: ['maxPods', 'logging.format'],
  });
  assert.deepEqual(diffConfig(before, before), { live: [], needRestart: [] });
  const live = applyLive(before, after, diffConfig(before, after).live);
  assert.equal(live.logging.verbosity, 4);
  assert.equal(live.logging.format, 'text');
  assert.equal(live.maxPods, 5);
  assert.equal(live.imageGCHighThresholdPercent, 90);
});

test('what follows from reserved CPUs', async () => {
  const { config, published } = await load(
    `--config=${file('reservedSystemCPUs: 0-1\nkubeReserved: {cpu: "3", memory: 1Gi}\n')}`,
  );
  assert.deepEqual(config.systemReserved, { cpu: '2' });
  assert.deepEqual(config.kubeReserved, { memory: '1Gi' });
  assert.equal(config.cgroupRoot, '/');
  assert.equal(published.cgroupRoot, '');
  await assert.rejects(load('--reserved-cpus=0-3'), /reserved-cpus: 0-3 is not a subset of online-cpus: 0-1/);
});
