// Where the serving certificate comes from, and when it is shown.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { RecordingClient } from '../kube/recording-client.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger as log } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { newSelfSigned } from './self-signed-serving.ts';
import { openServing } from './serving-source.ts';

const START = Date.UTC(2026, 5, 1);
const HOUR = 3_600_000;
let root = '';
before(async () => void (root = await mkdtemp(join(tmpdir(), 'serving-'))));
after(() => rm(root, { recursive: true }));
const fresh = (): Promise<string> => mkdtemp(join(root, 'd-'));

describe('the serving certificate', () => {
  const options = { certFile: '', keyFile: '', bootstrap: false, allowDnsOnly: false, reload: true, nodeName: 'n1' };
  const nobody = { clock: systemClock, log, addresses: () => [], onChange: () => undefined };

  it('of the cluster: begins with the configured pair, and is not shown any more when it has run out', async () => {
    const certDir = await fresh();
    const [certFile, keyFile] = [join(certDir, 'c'), join(certDir, 'k')];
    const pair = await newSelfSigned('n1', START);
    await writeFile(certFile, pair.cert);
    await writeFile(keyFile, pair.key);
    const clock = new ManualClock(START);
    let changes = 0;
    const source = await openServing(
      { ...nobody, clock, client: () => new RecordingClient(() => ({})), onChange: () => void changes++ },
      { ...options, certDir, certFile, keyFile, bootstrap: true },
    );
    assert.equal(source.current()?.cert, pair.cert);
    const end = new AbortController();
    const running = Promise.all(source.parts.map((part) => part.run(end.signal)));
    await clock.advance(10_000);
    assert.equal(changes, 0);
    clock.jumpWall(366 * 24 * HOUR);
    await clock.advance(10_000);
    assert.equal(source.current(), undefined);
    assert.equal(changes, 1);
    end.abort();
    await running;
  });

  it('self-signed: its files are watched for others that somebody puts there', async () => {
    const certDir = await fresh();
    const source = await openServing(nobody, { ...options, certDir });
    assert.match(source.current()?.cert ?? '', /BEGIN CERTIFICATE/);
    assert.equal(source.parts.length, 1);
    assert.equal((await openServing(nobody, { ...options, certDir, reload: false })).parts.length, 0);
  });

  it('half a pair is none', async () => {
    const half = { ...options, certDir: await fresh(), certFile: '/c' };
    const source = await openServing(nobody, half);
    assert.deepEqual([source.current(), source.parts.length], [undefined, 0]);
  });
});
