// The embedded server under load, and killed in the middle of it.
import { strict as assert } from 'node:assert';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { ApiClient, dig, type Watch } from './client.ts';
import { podBody } from './scene.ts';

const SERVER = join(import.meta.dirname, 'server-process.ts');

async function startProcess(dir: string, port = 0): Promise<{ child: ChildProcess; port: number; api: ApiClient }> {
  const child = spawn(process.execPath, [SERVER, dir, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [chunk] = (await once(child.stdout, 'data')) as [Buffer];
  const config = await readFile(join(dir, 'admin.kubeconfig'), 'utf8');
  return { child, port: Number(chunk.toString()), api: ApiClient.fromKubeconfig(config) };
}

/** User and system time of a process, from /proc/PID/stat in ticks of 10 ms. */
async function cpuSeconds(child: ChildProcess): Promise<number> {
  const stat = await readFile(`/proc/${child.pid}/stat`, 'utf8');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
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

test('1,000 pods created, patched and deleted before 20 watchers: every watcher sees every change in order', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'kts-load-'));
  const { child, api } = await startProcess(dir);
  t.after(async () => {
    api.close();
    child.kill('SIGKILL');
    await rm(dir, { recursive: true, force: true });
  });
  const pods = '/api/v1/namespaces/default/pods';
  const version = String(dig((await api.get(pods)).body, 'metadata', 'resourceVersion'));
  const watchers: Watch[] = [];
  for (let i = 0; i < 20; i++) watchers.push(await api.watch(`/api/v1/pods?watch=true&resourceVersion=${version}`));
  const COUNT = 1000;
  const started = performance.now();
  const cpuBefore = await cpuSeconds(child);
  await many(COUNT, 16, async (i) =>
    assert.equal((await api.post(pods, podBody(`p-${i}`, { nodeName: 'n1' }))).status, 201),
  );
  await many(COUNT, 16, async (i) =>
    assert.equal(
      (await api.strategic(`${pods}/p-${i}/status`, { status: { phase: 'Running', podIP: '10.0.0.1' } })).status,
      200,
    ),
  );
  await many(COUNT, 16, async (i) =>
    assert.equal((await api.delete(`${pods}/p-${i}`, { gracePeriodSeconds: 0 })).status, 200),
  );
  const seconds = (performance.now() - started) / 1000;
  const cpu = (await cpuSeconds(child)) - cpuBefore;
  const expected = COUNT * 4;
  for (const watch of watchers) await watch.until(() => watch.lines.length >= expected, `${expected} events`);
  const first = watchers[0]?.lines;
  const versions = (watchers[0]?.events ?? []).map((e) => Number(dig(e.object, 'metadata', 'resourceVersion')));
  assert.ok(
    versions.every((v, i) => i === 0 || v > (versions[i - 1] ?? 0)),
    'in order',
  );
  for (const watch of watchers) assert.deepEqual(watch.lines, first);
  const requests = COUNT * 3;
  t.diagnostic(
    `${Math.round(requests / seconds)} requests/s with 20 watchers, ${((cpu / requests) * 1000).toFixed(2)} ms of CPU each`,
  );
  // The machine may be busy with other things: what counts is that one core could serve 500 a second.
  assert.ok(requests / cpu > 500, `${Math.round(requests / cpu)} requests per second of CPU`);
});

test('a killed server has lost nothing that it acknowledged, and its versions go on', async (t) => {
  const dir = await mkdtemp(join(tmpdir(), 'kts-kill-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  let { child, port, api } = await startProcess(dir);
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
