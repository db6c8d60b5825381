import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodCheckpoint } from './pod-checkpoint.ts';
import { PodFeed } from './pod-feed.ts';
import { RecordingClient, unreachable } from './recording-client.ts';

const log = silentLogger;
const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'U', resourceVersion: '3', managedFields: [{}] },
  spec: { containers: [] },
};
let dir = '';
before(async () => void (dir = await mkdtemp(join(tmpdir(), 'pod-feed-'))));
after(() => rm(dir, { recursive: true }));

describe('PodCheckpoint', () => {
  it('writes for root only, slim, and reads its own node’s file', async () => {
    const path = join(dir, 'pods.json');
    const checkpoint = new PodCheckpoint({ clock: systemClock, log }, { path, nodeName: 'n1' });
    assert.equal(await checkpoint.load(), undefined);
    const end = new AbortController();
    const running = checkpoint.run(end.signal);
    checkpoint.servicesChanged([{ metadata: { name: 'db', namespace: 'ns', managedFields: [{}] } }]);
    checkpoint.changed([pod]);
    end.abort(); // a change before the stop is still written
    await running;
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    assert.ok(!(await readFile(path, 'utf8')).includes('managedFields'));
    assert.equal((await checkpoint.load())?.[0]?.metadata.uid, 'U');
    const next = new PodCheckpoint({ clock: systemClock, log }, { path, nodeName: 'n1' });
    assert.equal(next.services, undefined);
    await next.load();
    assert.deepEqual(next.services, [{ metadata: { name: 'db', namespace: 'ns' } }]);
    const other = new PodCheckpoint({ clock: systemClock, log }, { path, nodeName: 'n2' });
    assert.equal(await other.load(), undefined);
    await writeFile(path, '{"version":1,');
    assert.equal(await checkpoint.load(), undefined, 'a damaged file is no reason to fail');
  });
});

it('keeps the pods of the file when only the services are known anew', async () => {
  const path = join(dir, 'services-first.json');
  await writeFile(path, JSON.stringify({ version: 1, node: 'n1', pods: [pod] }));
  const checkpoint = new PodCheckpoint({ clock: systemClock, log }, { path, nodeName: 'n1' });
  const end = new AbortController();
  const running = checkpoint.run(end.signal);
  checkpoint.servicesChanged([]);
  end.abort();
  await running;
  assert.equal((await checkpoint.load())?.length, 1);
});

describe('PodFeed', () => {
  it('falls back to the checkpoint and hands over to the API server', async () => {
    const path = join(dir, 'fallback.json');
    await writeFile(path, JSON.stringify({ version: 1, node: 'n1', pods: [pod] }));
    const clock = new ManualClock();
    let down = true;
    const client = new RecordingClient(() => {
      if (down) throw unreachable();
      const end = { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } };
      return [{ type: 'BOOKMARK', object: { metadata: end } }];
    });
    const heard: string[] = [];
    const checkpoint = new PodCheckpoint({ clock, log }, { path, nodeName: 'n1' });
    const onPods = (pods: readonly Pod[], origin: string): void => void heard.push(`${origin} ${pods.length}`);
    const feed = new PodFeed({ client, clock, log, checkpoint, onPods }, { nodeName: 'n1' });
    const end = new AbortController();
    const running = feed.run(end.signal);
    await clock.advance(6000);
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.deepEqual(heard, ['checkpoint 1']);
    down = false;
    await clock.advance(1000);
    assert.deepEqual(heard, ['checkpoint 1', 'api 0'], 'the API server’s word counts, also when it is “nothing”');
    assert.match(client.log[0] ?? '', /fieldSelector=spec.nodeName%3Dn1/);
    end.abort();
    await running;
  });
});
