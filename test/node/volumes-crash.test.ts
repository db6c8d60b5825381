// The agent killed at thirty random instants while ten pods with five volumes each come and go: no leaked mount, no lost
// data, no stuck pod.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { crashPod, PODS, STEADY } from './volumes-crash-pods.ts';
import { Bench, listing, mountsBeneath } from './volumes-setup.ts';
import { timePasses } from '../harness/until.ts';

const KILLS = 30;

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
  bench.configMaps.set('golden/c', { metadata: { name: 'c' }, data: { a: 'alpha', 'b.txt': 'beta' } });
  bench.secrets.set('golden/s', { metadata: { name: 's' }, data: { key: 'dmFsdWU=' } });
});
afterEach(() => assert.deepEqual(bench.dispose(), [], 'nothing is left mounted'));

/** Runs the victim until it says `until`, then `ms` longer, and kills it. */
async function killAfter(until: string, ms: number): Promise<void> {
  const child = spawn(process.execPath, ['--no-warnings', join(import.meta.dirname, 'volumes-victim.ts'), bench.root], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = new Promise((resolve) => child.once('exit', resolve));
  let text = '';
  await new Promise<void>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes(until)) resolve();
    });
  });
  await timePasses(ms, 'another instant');
  child.kill('SIGKILL');
  await gone;
}

test(`killed at ${KILLS} random instants`, async () => {
  const { layout } = bench.open();
  const data = (index: number, volume: string): string =>
    join(layout.volumeDir(`uid-crash-${index}`, 'kubernetes.io/empty-dir', volume), 'data');
  await killAfter('mounted', 0);
  for (let i = 0; i < STEADY; i++) for (const v of ['disk', 'mem']) writeFileSync(data(i, v), `${v}-${i}`);
  for (let kill = 0; kill < KILLS; kill++) await killAfter('started', Math.random() * 160);
  const { manager, podDirs } = bench.open();
  await manager.reconstruct(bench.signal);
  const steady = Array.from({ length: STEADY }, (_, i) => crashPod(i));
  await Promise.all(steady.map((pod) => manager.waitMounted(pod, bench.signal)));
  manager.removeUnknown(() => false);
  for (let i = STEADY; i < PODS; i++) await manager.waitUnmounted(`uid-crash-${i}`, bench.signal);
  for (let i = 0; i < STEADY; i++) {
    for (const v of ['disk', 'mem']) assert.equal(readFileSync(data(i, v), 'utf8'), `${v}-${i}`, 'no data is lost');
    const conf = layout.volumeDir(`uid-crash-${i}`, 'kubernetes.io/configmap', 'conf');
    assert.equal(readFileSync(join(conf, 'b.txt'), 'utf8'), 'beta');
    assert.equal(listing(conf).filter((l) => / \.\/\.\.20\S+\d$/.test(l.replace(/ ->\s*$/, ''))).length, 1);
    assert.ok(existsSync(join(layout.volumeDir(`uid-crash-${i}`, 'kubernetes.io/projected', 'proj'), 'token')));
  }
  assert.equal(mountsBeneath(bench.root).length, STEADY * 3, 'each in-memory volume is mounted once');
  for (const uid of await podDirs.list()) {
    const wanted = steady.some((pod) => pod.metadata.uid === uid);
    if (!wanted) await podDirs.removeOrphan(uid, bench.signal);
  }
  assert.equal((await podDirs.list()).length, STEADY);
  for (const pod of steady) {
    manager.podRemoved(pod.metadata.uid ?? '');
    await manager.waitUnmounted(pod.metadata.uid ?? '', bench.signal);
  }
});
