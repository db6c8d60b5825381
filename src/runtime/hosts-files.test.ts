// The hosts files of pods that run when the agent begins: whole again where a write was cut off, untouched otherwise.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { HostsFiles } from './hosts-files.ts';
import { PodFiles } from './pod-files.ts';

let root = '';
let path = '';
let hosts: HostsFiles;
const pod = { metadata: { name: 'p', uid: 'u' }, spec: { containers: [{ name: 'c' }] } } as unknown as Pod;
const onHost = { ...pod, spec: { ...pod.spec, hostNetwork: true } };
const seen = (state: string): PodSnapshot =>
  ({ ips: ['10.0.0.2'], sandboxes: [], containers: [{ name: 'c', state }] }) as unknown as PodSnapshot;
const begin = (): HostsFiles => {
  const files = new PodFiles(systemClock, root);
  return new HostsFiles({ files, log: silentLogger }, { clusterDomain: '', nodeHostsFile: join(root, 'node') });
};
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'kts-hosts-'));
  path = join(root, 'pods', 'u', 'etc-hosts');
  mkdirSync(join(root, 'pods', 'u'), { recursive: true });
  writeFileSync(join(root, 'node'), '127.0.0.1 node\n');
  hosts = begin();
});
afterEach(() => rmSync(root, { recursive: true }));

describe('hosts files when the agent begins', () => {
  for (const [what, of] of [
    ['a pod', pod],
    ['a pod on the network of the node', onHost],
  ] as const)
    it(`are written again for ${what} where they were cut off`, async () => {
      assert.equal(await hosts.write(of, ['10.0.0.2']), path);
      const whole = readFileSync(path, 'utf8');
      const { ino } = statSync(path);
      for (const length of [0, 1, whole.length - 1]) {
        writeFileSync(path, whole.slice(0, length));
        await begin().repairOnce(of, seen('running'));
        assert.deepEqual([readFileSync(path, 'utf8'), statSync(path).ino], [whole, ino]);
      }
    });

  it('stay as a container made them', async () => {
    await hosts.write(pod, ['10.0.0.2']);
    for (const change of ['10.0.0.9 added\n', '\n# not ours']) {
      const text = readFileSync(path, 'utf8') + change;
      writeFileSync(path, text);
      await begin().repairOnce(pod, seen('running'));
      assert.equal(readFileSync(path, 'utf8'), text);
    }
    writeFileSync(path, 'all mine\n');
    await begin().repairOnce(pod, seen('running'));
    assert.equal(readFileSync(path, 'utf8'), 'all mine\n');
  });

  it('are looked at once, and only where a container runs', async () => {
    writeFileSync(path, '');
    await hosts.repairOnce(pod, seen('exited'));
    assert.equal(readFileSync(path, 'utf8'), '');
    await hosts.repairOnce(pod, seen('running'));
    assert.match(readFileSync(path, 'utf8'), /10\.0\.0\.2/);
    writeFileSync(path, '');
    await hosts.repairOnce(pod, seen('running'));
    assert.equal(readFileSync(path, 'utf8'), '');
    hosts.forget('u');
    await hosts.repairOnce(pod, seen('running'));
    assert.match(readFileSync(path, 'utf8'), /10\.0\.0\.2/);
  });

  it('are looked at again where that failed', async () => {
    writeFileSync(path, '');
    rmSync(join(root, 'node'));
    await hosts.repairOnce(onHost, seen('running'));
    assert.equal(readFileSync(path, 'utf8'), '');
    writeFileSync(join(root, 'node'), '127.0.0.1 node\n');
    await hosts.repairOnce(onHost, seen('running'));
    assert.match(readFileSync(path, 'utf8'), /127\.0\.0\.1 node/);
  });
});
