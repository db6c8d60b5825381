// The embedded server under load, and killed in the middle of it.
// runs: alone
import { strict as assert } from 'node:assert';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort } from '../../harness/ports.ts';
import { untilSeen } from '../../harness/until.ts';
import { ApiClient, dig } from './client.ts';
import { podBody } from './scene.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const SERVER = join(import.meta.dirname, 'server-process.ts');

async function startProcess(dir: string, port = 0): Promise<{ child: ChildProcess; port: number; api: ApiClient }> {
  const child = spawn(process.execPath, [SERVER, dir, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  const config = await readFile(join(dir, 'admin.kubeconfig'), 'utf8');
  return { child, port: Number(chunk.toString()), api: ApiClient.fromKubeconfig(config) };
}

/** Runs `count` calls, `width` at a time. */
async function many(count: number, width: number, call: (i: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: width }, async () => {
      for (let i = next++; i < count; i = next++) await call(i);
    }),
  );
}

/** A watch whose bytes are only kept while the load runs: the clients must not be what is measured. */
class Watcher {
  readonly #chunks: Buffer[] = [];
  #bytes = 0;

  static async open(api: ApiClient, path: string): Promise<Watcher> {
    const watcher = new Watcher();
    const response = await api.open('GET', path);
    assert.equal(response.statusCode, 200);
    response.on('data', (chunk: Buffer) => {
      watcher.#chunks.push(chunk);
      watcher.#bytes += chunk.length;
    });
    return watcher;
  }

  get bytes(): number {
    return this.#bytes;
  }

  take(): string {
    this.#bytes = 0;
    return Buffer.concat(this.#chunks.splice(0)).toString();
  }
}

const PODS = '/api/v1/namespaces/default/pods';
const COUNT = 1000;
const WANTED = 500;

/** Creates, patches and deletes pods; the requests answered per second of wall time. */
async function load(api: ApiClient): Promise<number> {
  const started = performance.now();
  await many(COUNT, 16, async (i) =>
    assert.equal((await api.post(PODS, podBody(`p-${i}`, { nodeName: 'n1' }))).status, 201),
  );
  await many(COUNT, 16, async (i) =>
    assert.equal(
      (await api.strategic(`${PODS}/p-${i}/status`, { status: { phase: 'Running', podIP: '10.0.0.1' } })).status,
      200,
    ),
  );
  await many(COUNT, 16, async (i) =>
    assert.equal((await api.delete(`${PODS}/p-${i}`, { gracePeriodSeconds: 0 })).status, 200),
  );
  return (COUNT * 3) / ((performance.now() - started) / 1000);
}

/** All 20 have the same bytes, and they are every change of every pod in the order of the versions. */
async function checkWatchers(watchers: readonly Watcher[], lastVersion: number): Promise<void> {
  const [first] = watchers;
  assert.ok(first !== undefined);
  const done = `"resourceVersion":"${lastVersion}"`;
  let seen = '';
  await untilSeen(
    'the last change arrives',
    () => (seen += first.take()),
    (got) => got.includes(done),
  );
  await untilSeen(
    'all watchers have as much',
    () => watchers.filter((w) => w !== first).map((w) => w.bytes),
    (bytes) => bytes.every((count) => count >= seen.length),
  );
  for (const watcher of watchers)
    if (watcher !== first) assert.ok(watcher.take() === seen, 'every watcher sees the same');
  const events = seen
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line) as { type: string; object: unknown });
  const versions = events.map((e) => Number(dig(e.object, 'metadata', 'resourceVersion')));
  assert.ok(
    versions.every((v, i) => i === 0 || v > (versions[i - 1] ?? 0)),
    'in order',
  );
  const histories = new Map<string, string[]>();
  for (const { type, object } of events) {
    const name = String(dig(object, 'metadata', 'name'));
    histories.set(name, [...(histories.get(name) ?? []), type]);
  }
  assert.equal(histories.size, COUNT);
  for (const [name, types] of histories) assert.match(types.join(' '), /^ADDED( MODIFIED)+ DELETED$/, name);
}

test('1,000 pods created, patched and deleted before 20 watchers: every change in order, 500 requests a second', async (t) => {
  const dir = temporaryFolder('kts-load-');
  const { child, api } = await startProcess(dir);
  t.after(async () => {
    api.close();
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  const version = async (): Promise<number> => Number(dig((await api.get(PODS)).body, 'metadata', 'resourceVersion'));
  const from = await version();
  const watchers: Watcher[] = [];
  for (let i = 0; i < 20; i++)
    watchers.push(await Watcher.open(api, `/api/v1/pods?watch=true&resourceVersion=${from}`));
  const rates: number[] = [];
  // Something else may run on the machine for a moment: up to three rounds, each of which must lose nothing.
  while (rates.length < 3 && !rates.some((r) => r >= WANTED)) {
    rates.push(await load(api));
    await checkWatchers(watchers, await version());
  }
  t.diagnostic(`${rates.map(Math.round).join(', ')} requests/s of wall time with 20 watchers`);
  assert.ok(Math.max(...rates) >= WANTED, `${Math.round(Math.max(...rates))} requests/s`);
});

test('a killed server has lost nothing that it acknowledged, and its versions go on', async () => {
  const dir = temporaryFolder('kts-kill-');
  let { child, port, api } = await startProcess(dir, await freePort());
  const acknowledged = new Map<string, string>();
  const path = '/api/v1/namespaces/default/configmaps';
  let highest = 0;
  for (let round = 0; round < 3; round++) {
    const killAt = 100 + round * 70;
    let done = 0;
    await many(400, 8, async (i) => {
      const name = `r${round}-${i}`;
      try {
        const made = await api.post(path, { metadata: { name }, data: { n: name } });
        if (made.status !== 201) return;
        acknowledged.set(name, name);
        highest = Math.max(highest, Number(dig(made.body, 'metadata', 'resourceVersion')));
        if (i % 3 === 0 && (await api.delete(`${path}/${name}`)).status === 200) acknowledged.delete(name);
        if (++done === killAt) child.kill('SIGKILL');
      } catch {
        // Not acknowledged: it may be there or not.
        if (i % 3 === 0) acknowledged.delete(name);
      }
    });
    api.close();
    ({ child, port, api } = await startProcess(dir, port));
    const list = await api.get(path);
    const found = new Map(
      (list.body['items'] as { metadata: { name: string }; data?: { n: string } }[]).map((c) => [
        c.metadata.name,
        c.data?.n,
      ]),
    );
    for (const [name, value] of acknowledged) assert.equal(found.get(name), value, name);
    assert.ok(Number(dig(list.body, 'metadata', 'resourceVersion')) >= highest);
    const old = await api.watch(`${path}?watch=true&resourceVersion=${highest - 50}`);
    const [error] = await old.until((e) => e.length > 0);
    assert.equal(error?.type, 'ERROR');
    assert.equal(error?.object['code'], 410);
  }
  api.close();
  child.kill('SIGKILL');
});
