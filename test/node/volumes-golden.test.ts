// The recorded `volumes` and `security` pods: the same files, modes, owners, links and markers as the Go kubelet left.
// runs: gate
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { Bench, listing, mountsBeneath } from './volumes-setup.ts';

const b64 = (text: string): string => Buffer.from(text).toString('base64');
const bench = new Bench();
before(() => {
  bench.configMaps.set('golden/vconf', {
    metadata: { name: 'vconf' },
    data: { 'a.txt': 'alpha', 'b.txt': 'beta' },
    binaryData: { bin: 'AAEC' },
  });
  bench.configMaps.set('golden/kube-root-ca.crt', { metadata: { name: 'ca' }, data: { 'ca.crt': 'PEM' } });
  bench.secrets.set('golden/vsec', { metadata: { name: 'vsec' }, data: { user: b64('root'), pass: b64('toor') } });
});
after(() => assert.deepEqual(bench.dispose(), [], 'nothing is left mounted'));

const here = import.meta.dirname;

/** Recorded lines of the parts this folder owns, with what differs from run to run replaced. */
function normal(lines: readonly string[]): string[] {
  return lines
    .filter((line) => !/ \.\/(containers|etc-hosts)\b/.test(line))
    .map((line) => line.replace(/ ->\s*$/, '').replaceAll(/\.\.\d{4}(_\d\d){5}\.\d+/g, '..STAMP'))
    .sort();
}

for (const name of ['volumes', 'security']) {
  test(`the ${name} pod's directory is as recorded`, async () => {
    const pod = JSON.parse(readFileSync(join(here, 'golden', `volumes-${name}-pod.json`), 'utf8')) as Pod;
    const host = pod.spec.volumes?.find((v) => v.hostPath !== undefined);
    const hostDir = join(bench.root, 'host');
    const volumes = pod.spec.volumes?.map((v) =>
      v === host ? { name: v.name, hostPath: { path: hostDir, type: 'DirectoryOrCreate' } } : v,
    );
    const changed: Pod = { ...pod, spec: { ...pod.spec, ...(volumes === undefined ? {} : { volumes }) } };
    const { manager, layout } = bench.open();
    const uid = pod.metadata.uid ?? '';
    await manager.waitMounted(changed, bench.signal);
    for (const container of changed.spec.containers) {
      for (const [index, mount] of (container.volumeMounts ?? []).entries()) {
        if (mount.subPath !== undefined) {
          await manager.prepareSubPath(changed, container, index, mount.subPath, bench.signal);
        }
      }
    }
    const recorded = readFileSync(join(here, 'golden', `volumes-${name}-files.txt`), 'utf8')
      .trimEnd()
      .split('\n');
    assert.deepEqual(normal(listing(layout.podDir(uid))), normal(recorded));
    if (host !== undefined) assert.ok(existsSync(hostDir), 'the host path was made');
    if (name === 'volumes') {
      const dir = (plugin: string, volume: string): string => layout.volumeDir(uid, `kubernetes.io/${plugin}`, volume);
      assert.equal(readFileSync(join(dir('configmap', 'conf'), 'bin')).toString('hex'), '000102');
      assert.equal(readFileSync(join(dir('secret', 'sec'), 'pass'), 'utf8'), 'toor');
      assert.equal(readFileSync(join(dir('downward-api', 'down'), 'labels'), 'utf8'), 'zone="z1"');
      assert.equal(readFileSync(join(dir('downward-api', 'down'), 'cpu'), 'utf8'), '100');
      assert.match(readFileSync(join(dir('projected', 'proj'), 'token'), 'utf8'), /^token-\d-for-vault$/);
      assert.equal(readFileSync(join(layout.volumeSubPathsDir(uid, 'conf'), 'c', '9'), 'utf8'), 'alpha');
      const mem = readFileSync('/proc/self/mounts', 'utf8')
        .split('\n')
        .find((l) => l.includes(dir('empty-dir', 'mem')));
      assert.match(mem ?? '', /^tmpfs .* tmpfs .*size=16384k/);
      const sec = readFileSync('/proc/self/mounts', 'utf8')
        .split('\n')
        .find((l) => l.includes(dir('secret', 'sec')));
      assert.match(sec ?? '', /size=65536k/, 'bounded by the memory limit of the pod');
    }
    manager.podRemoved(uid);
    await manager.waitUnmounted(uid, bench.signal);
    assert.deepEqual(mountsBeneath(layout.podDir(uid)), []);
    const left = listing(layout.podDir(uid)).map((line) => line.split(' ')[3]);
    const empty = readdirSync(layout.volumesDir(uid)).map((plugin) => `./volumes/${plugin}`);
    assert.deepEqual(
      left.toSorted((a = '', b = '') => (a < b ? -1 : 1)),
      ['.', './plugins', './plugins/kubernetes.io~empty-dir', './volumes', ...empty].sort(),
    );
    assert.deepEqual(bench.events, []);
  });
}
