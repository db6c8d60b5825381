// A kubelet on a runtime in memory, whose network to the embedded API server freezes, breaks, is slow or narrow. Pods run soon
// after they are bound or the network is well, and the lease is in time while any way exists. The figures are printed.
// runs: alone
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it, type TestContext } from 'node:test';
import { startTestApiServer, type ServedRequest, type TestApiServer } from '../../harness/api-server.ts';
import { connectClient } from '../../harness/connect-client.ts';
import { makeNodeFolder, removeNodeFolder } from '../../harness/node-folder.ts';
import { timePasses, until } from '../../harness/until.ts';
import { randomFrom } from '../fleet.ts';
import { FrozenNode } from '../frozen/frozen-node.ts';
import { NetworkWire } from './network-wire.ts';

const SEED = Number(process.env['SEED'] ?? 1);
const LEASE_MS = 40_000;
const NAME = 'network';

describe('a network that lies', { skip: process.getuid?.() === 0 ? false : 'needs root' }, () => {
  let dir: string;
  let api: TestApiServer;
  let wire: NetworkWire;
  let node: FrozenNode;
  let pods = 0;

  before(async () => {
    dir = await makeNodeFolder();
    api = await startTestApiServer(join(dir, 'api'));
    const client = await connectClient(api.adminKubeconfigPath);
    wire = new NetworkWire(api.port);
    await wire.start();
    const home = join(dir, 'n');
    mkdirSync(home);
    const flags = ['--node-status-update-frequency=10s'];
    node = new FrozenNode({ name: NAME, dir: home, api, client, apiPort: wire.port, flags });
    await node.start();
    await ready([await create()]);
  });

  after(async () => {
    await node?.stop();
    await wire?.stop();
    await api?.stop();
    await removeNodeFolder(dir);
  });

  beforeEach(async () => {
    await ready([await create()]);
  });

  const create = async (): Promise<string> => {
    const name = `p${++pods}`;
    await node.create(node.pod(name));
    return name;
  };
  /** Milliseconds until all are, by what the API server says. */
  const ready = async (names: readonly string[]): Promise<number> => {
    const from = performance.now();
    for (const name of names)
      await until(`${name} is ready`, async () =>
        (await node.shown(name))?.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'),
      );
    return performance.now() - from;
  };
  const several = async (count: number): Promise<string[]> => await Promise.all(Array.from({ length: count }, create));
  const served = async (sinceMs: number): Promise<readonly ServedRequest[]> =>
    (await api.served()).filter(({ atMs, user }) => atMs >= sinceMs && user === `system:node:${NAME}`);
  /** The longest time without a renewal since then. */
  const leaseGap = async (sinceMs: number): Promise<number> => {
    // The first one is a POST, which a young node sends after it has registered.
    const path = `/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases`;
    const isRenewal = (r: ServedRequest): boolean => ['POST', 'PUT'].includes(r.method) && r.url.startsWith(path);
    const at = (await api.served()).filter(isRenewal).map((r) => r.atMs);
    const last = at.filter((ms) => ms < sinceMs).at(-1) ?? sinceMs;
    const all = [last, ...at.filter((ms) => ms >= sinceMs), Date.now()];
    return Math.max(...all.slice(1).map((ms, i) => ms - (all[i] ?? ms)));
  };
  const say = (t: TestContext, what: string, ms: number): void => t.diagnostic(`${what}: ${(ms / 1000).toFixed(2)} s`);

  it('all connections freeze, new ones work', async (t) => {
    const from = Date.now();
    wire.freeze('standing');
    const podMs = await ready([await create()]);
    await timePasses(15_000, 'measuring');
    const gapMs = await leaseGap(from);
    say(t, 'a pod bound then is Ready after', podMs);
    say(t, 'longest gap of the lease', gapMs);
    assert.ok(podMs <= 6000);
    assert.ok(gapMs <= 15_000);
  });

  it('nothing passes for a while, then all is well', async (t) => {
    wire.freeze('all');
    await timePasses(Number(process.env['FAULT_AWAY_MS'] ?? 20_000), 'an outage');
    const name = await create();
    wire.thaw();
    const podMs = await ready([name]);
    say(t, 'a waiting pod is Ready after', podMs);
    assert.ok(podMs <= 3000);
  });

  for (const [what, cut] of [
    ['reset', () => wire.resetAll()],
    ['half-closed', () => wire.halfClose()],
  ] as const)
    it(`every connection is ${what}`, async (t) => {
      const took: number[] = [];
      for (let i = 0; i < 5; i++) {
        cut();
        took.push(await ready([await create()]));
      }
      const median = took.toSorted((a, b) => a - b)[2] ?? Infinity;
      say(t, 'the next pod is Ready after', median);
      assert.ok(median <= 1500, took.join());
    });

  it('a random connection is reset every 50 to 450 ms', async (t) => {
    const random = randomFrom(SEED);
    const from = Date.now();
    let isOver = false;
    const resets = (async () => {
      while (!isOver) {
        wire.resetOne(random(1000) / 1000);
        await timePasses(50 + random(400), 'another instant');
      }
    })();
    const names: string[] = [];
    const start = performance.now();
    for (let i = 0; i < 20; i++) {
      names.push(await create());
      await timePasses(500, 'another instant');
    }
    await ready(names);
    const allMs = performance.now() - start;
    isOver = true;
    await resets;
    const nextMs = await ready([await create()]);
    const perMinute = ((await served(from)).length / (Date.now() - from)) * 60_000;
    say(t, '20 pods in 10 s, all Ready after', allMs);
    say(t, 'right after it the next pod is Ready after', nextMs);
    t.diagnostic(`requests a minute: ${perMinute.toFixed(0)}`);
    assert.ok(nextMs <= 1500);
    assert.ok((await leaseGap(from)) < LEASE_MS);
    assert.ok(perMinute < 2000);
  });

  it('every byte takes 150 ms more each way', async (t) => {
    wire.delayMs = 150;
    try {
      const podMs = await ready([await create()]);
      say(t, 'a pod is Ready after', podMs);
      assert.ok(podMs <= 3000);
    } finally {
      wire.delayMs = 0;
    }
  });

  it('20 kB/s for all connections together', async (t) => {
    const from = Date.now();
    wire.bytesPerSecond = 20_000;
    try {
      const names = await several(10);
      say(t, '10 pods are Ready after', await ready(names));
      assert.ok((await leaseGap(from)) < LEASE_MS);
    } finally {
      wire.bytesPerSecond = Infinity;
    }
  });
});
