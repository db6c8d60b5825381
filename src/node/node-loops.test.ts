// Registration, status, lease and CSINode against a client that records what it is asked.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { EventType } from '../core/events.ts';
import type { Lease, Node } from '../core/node.ts';
import { notFound, RecordingClient, unreachable, type Call } from '../kube/recording-client.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { CsiNodeInitializer } from './csi-node.ts';
import { KnownNode } from './known-node.ts';
import { NodeLease } from './lease.ts';
import type { NodeFacts } from './node-object.ts';
import { NodeStatusReporter, type NodeStatusListeners } from './node-status.ts';
import { NodeRegistration } from './registration.ts';
import { NODE_OPTIONS } from './node-options.fixture.ts';

const log = silentLogger;
const exists = (): KubeletError => new KubeletError('exists', 'exists', { detail: { status: 409 } });

const options = { ...NODE_OPTIONS, updateMs: 10_000, reportMs: 300_000 };
const facts = (notReady: readonly string[] = []): NodeFacts => ({
  host: {
    machineId: '',
    systemUuid: '',
    bootId: 'boot1',
    kernelVersion: '',
    osImage: '',
    architecture: 'amd64',
    swapBytes: 0,
  },
  capacity: { cpu: '2', memory: '1Ki', pods: '1', 'ephemeral-storage': '1' },
  allocatable: { cpu: '2', memory: '1Ki', pods: '1', 'ephemeral-storage': '1' },
  pressure: { memory: false, disk: false, pid: false },
  notReady,
  declaredFeatures: [],
});

/** A one-node API server, good enough to apply node status patches. */
class NodeServer {
  node: Node | undefined;
  version = 1;
  readonly patches: Record<string, unknown>[] = [];

  answer = (call: Call): unknown => {
    if (!call.target.startsWith('/api/v1/nodes')) return undefined;
    if (call.verb === 'POST') {
      if (this.node !== undefined) throw exists();
      return this.#store({ ...(call.body as Node), metadata: { ...(call.body as Node).metadata, uid: 'U' } });
    }
    if (this.node === undefined) throw notFound('node');
    if (call.verb !== 'PATCH') return this.node;
    const patch = call.body as { status?: { conditions?: { type: string }[] } };
    this.patches.push(patch as Record<string, unknown>);
    const conditions = (this.node.status?.conditions ?? []).map((c) => ({
      ...c,
      ...patch.status?.conditions?.find((p) => p.type === c.type),
    }));
    return this.#store({ ...this.node, status: { ...this.node.status, conditions } });
  };

  #store(node: Node): Node {
    this.node = { ...node, metadata: { ...node.metadata, resourceVersion: String(this.version++) } };
    return this.node;
  }
}

function openStatus(
  current: () => NodeFacts,
  server = new NodeServer(),
  listeners: NodeStatusListeners = {},
): {
  server: NodeServer;
  client: RecordingClient;
  clock: ManualClock;
  reported: string[];
  reporter: NodeStatusReporter;
  stop: () => Promise<void>;
} {
  const clock = new ManualClock(undefined, () => 0.5);
  const client = new RecordingClient((call) => server.answer(call));
  const reported: string[] = [];
  const events = { pod: () => undefined, node: (_t: EventType, reason: string) => void reported.push(reason) };
  const known = new KnownNode({ byName: () => undefined }, 'n1');
  const read = (): Promise<NodeFacts> => Promise.resolve(current());
  const registration = new NodeRegistration({ client, known, facts: read, events, clock, log }, options);
  const reporter = new NodeStatusReporter(
    { client, known, registration, facts: read, events, clock, log, listeners },
    options,
  );
  const end = new AbortController();
  const running = reporter.run(end.signal);
  const stop = async (): Promise<void> => {
    end.abort();
    await running;
    assert.equal(clock.pending, 0, 'no timer is left');
  };
  return { server, client, clock, reported, reporter, stop };
}

describe('node status', () => {
  it('does not call a Ready node not ready while a restarted kubelet settles in, but does soon', async () => {
    const server = new NodeServer();
    const first = openStatus(() => facts(), server);
    await first.clock.advance(150);
    await first.stop();
    assert.equal(server.node?.status?.conditions?.[3]?.status, 'True');
    const second = openStatus(() => facts(['runtime not asked yet']), server);
    await second.clock.advance(1900);
    assert.equal(server.node?.status?.conditions?.[3]?.status, 'True');
    await second.clock.advance(200);
    assert.equal(server.node?.status?.conditions?.[3]?.status, 'False');
    await second.stop();
  });

  it('registers, reports at once, turns Ready in the fast loop, then only every report period', async () => {
    let now = facts(['CSINode is not yet initialized']);
    const t = openStatus(() => now);
    await t.clock.advance(150);
    assert.deepEqual(t.client.log, ['POST /api/v1/nodes', 'PATCH /api/v1/nodes/n1/status']);
    assert.deepEqual(t.server.patches[0], {}, 'the first report is always sent');
    now = facts();
    await t.clock.advance(150);
    assert.equal(t.server.node?.status?.conditions?.[3]?.status, 'True');
    assert.equal(t.client.calls.length, 3);
    await t.clock.advance(290_000);
    assert.equal(t.client.calls.length, 3, 'nothing changed: no request');
    await t.clock.advance(30_000);
    assert.equal(t.client.calls.length, 4, 'the report period is over');
    assert.deepEqual(t.reported, [
      'NodeHasSufficientMemory',
      'NodeHasNoDiskPressure',
      'NodeHasSufficientPID',
      'NodeReady',
    ]);
    await t.stop();
  });

  it('a wake reports a change at once', async () => {
    let now = facts();
    const t = openStatus(() => now);
    await t.clock.advance(1000);
    const before = t.client.calls.length;
    now = facts(['node is shutting down']);
    t.reporter.wake();
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, before + 1);
    assert.equal(t.server.node?.status?.conditions?.[3]?.message, 'node is shutting down');
    assert.equal(t.reported.at(-1), 'NodeNotReady');
    await t.stop();
  });

  it('its own report, seen in the watch, causes no further one, however its words change; a cordon does', async () => {
    let looks = 0;
    const t = openStatus(() => facts([`last seen ${++looks} s ago`]));
    await t.clock.advance(125_000);
    const before = t.server.patches.length;
    for (let i = 0; i < 20; i++) {
      t.reporter.nodeSeen(t.server.node);
      await t.clock.advance(1);
    }
    assert.ok(t.server.patches.length <= before + 1, `${t.server.patches.length - before} reports in 20 ms`);
    const node = t.server.node as Node;
    const seen = t.server.patches.length;
    t.server.node = { ...node, spec: { ...node.spec, unschedulable: true } };
    t.reporter.nodeSeen(t.server.node);
    await t.clock.advance(1);
    assert.equal(t.server.patches.length, seen + 1);
    await t.stop();
  });

  it('a wake while a round is under way is not lost', async () => {
    let now = facts();
    let during: (() => void) | undefined;
    const t = openStatus(() => {
      const read = now;
      during?.();
      return read;
    });
    await t.clock.advance(1000);
    during = () => {
      during = undefined;
      now = facts(['container runtime is down']);
      t.reporter.wake();
    };
    t.reporter.wake();
    await t.clock.advance(0);
    assert.equal(t.server.node?.status?.conditions?.[3]?.message, 'container runtime is down');
    await t.stop();
  });

  it('an existing node is reconciled, a reboot and cordon are told once', async () => {
    const server = new NodeServer();
    server.node = {
      metadata: { name: 'n1', uid: 'old', labels: {} },
      spec: { unschedulable: true, podCIDRs: ['10.1.0.0/24', 'fd00::/64'] },
      status: { nodeInfo: { bootID: 'boot0' } as NonNullable<NonNullable<Node['status']>['nodeInfo']> },
    };
    const cidrs: string[] = [];
    const t = openStatus(() => facts(), server, { onPodCidr: (cidr) => cidrs.push(cidr) });
    await t.clock.advance(60_000);
    assert.deepEqual(t.client.log.slice(0, 3), [
      'POST /api/v1/nodes',
      'GET /api/v1/nodes/n1',
      'PATCH /api/v1/nodes/n1/status',
    ]);
    assert.equal(t.reported.filter((r) => r === 'Rebooted').length, 1);
    assert.equal(t.reported.filter((r) => r === 'NodeNotSchedulable').length, 1);
    assert.deepEqual(cidrs, ['10.1.0.0/24,fd00::/64']);
    await t.stop();
  });

  it('registration goes on until the server answers', async () => {
    const server = new NodeServer();
    let down = true;
    const real = server.answer;
    server.answer = (call) => {
      if (down) throw unreachable();
      return real(call);
    };
    const t = openStatus(() => facts(), server);
    await t.clock.advance(30_000);
    assert.ok(t.client.calls.length >= 7 && t.client.calls.length < 15, String(t.client.calls.length));
    down = false;
    await t.clock.advance(7500);
    assert.equal(t.reporter.registered, true);
    const told = ['NodeHasSufficientMemory', 'NodeHasNoDiskPressure', 'NodeHasSufficientPID'];
    assert.deepEqual(t.reported, told, 'once, however many attempts it took');
    await t.stop();
  });

  it('a change during an outage is told once, a change back again', async () => {
    let now = facts();
    const server = new NodeServer();
    const t = openStatus(() => now, server);
    await t.clock.advance(1000);
    const before = t.reported.length;
    const real = server.answer;
    server.answer = () => {
      throw unreachable();
    };
    now = facts(['container runtime is down']);
    await t.clock.advance(60_000);
    assert.deepEqual(t.reported.slice(before), ['NodeNotReady']);
    server.answer = real;
    await t.clock.advance(11_000);
    now = facts();
    await t.clock.advance(11_000);
    now = facts(['container runtime is down']);
    await t.clock.advance(11_000);
    assert.deepEqual(t.reported.slice(before), ['NodeNotReady', 'NodeReady', 'NodeNotReady']);
    await t.stop();
  });

  it('a failing report is tried five times, reading first, and dead connections are dropped', async () => {
    let resets = 0;
    const server = new NodeServer();
    const t = openStatus(() => facts(), server, { onRepeatedFailure: () => resets++ });
    await t.clock.advance(1000);
    server.answer = () => {
      throw unreachable();
    };
    const before = t.client.calls.length;
    await t.clock.advance(320_000);
    assert.equal(t.client.log[before], 'PATCH /api/v1/nodes/n1/status');
    assert.equal(t.client.log[before + 1], 'GET /api/v1/nodes/n1');
    assert.ok(resets >= 4);
    await t.stop();
  });

  it('a deleted node stays deleted, one created again is reported to', async () => {
    const t = openStatus(() => facts());
    await t.clock.advance(1000);
    t.server.node = undefined;
    await t.clock.advance(320_000);
    assert.equal(t.client.log.filter((l) => l.startsWith('POST')).length, 1);
    t.server.node = { metadata: { name: 'n1', uid: 'new' } };
    await t.clock.advance(11_000);
    assert.ok(t.client.log.at(-1)?.startsWith('PATCH'));
    await t.stop();
  });
});

describe('KnownNode', () => {
  it('is the newest copy, and nothing once the watch shows that it is deleted', () => {
    let watched: Node | undefined;
    const known = new KnownNode({ byName: () => watched }, 'n1');
    const copy = (uid: string, resourceVersion: string): Node => ({ metadata: { name: 'n1', uid, resourceVersion } });
    assert.equal(known.get(), undefined);
    known.answered(copy('U', '9'));
    assert.equal(known.get()?.metadata.resourceVersion, '9', 'the watch is behind');
    watched = copy('U', '8');
    assert.equal(known.get()?.metadata.resourceVersion, '9');
    watched = copy('U', '10');
    assert.equal(known.get()?.metadata.resourceVersion, '10');
    watched = undefined;
    assert.equal(known.get(), undefined);
    watched = copy('V', '3');
    assert.equal(known.get()?.metadata.uid, 'V');
  });
});

describe('node lease', () => {
  const PATH = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const open = (
    answer: (call: Call) => unknown,
    onRepeatedFailure?: () => void,
  ): { client: RecordingClient; clock: ManualClock; stop: () => Promise<void> } => {
    const clock = new ManualClock(Date.UTC(2026, 0, 1));
    const client = new RecordingClient(answer);
    const deps = { client, clock, log, ...(onRepeatedFailure === undefined ? {} : { onRepeatedFailure }) };
    const end = new AbortController();
    const running = new NodeLease(deps, { nodeName: 'n1', durationSeconds: 40 }).run(end.signal);
    const stop = async (): Promise<void> => {
      end.abort();
      await running;
    };
    return { client, clock, stop };
  };

  const owner = { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'U' };
  const OWNED = { metadata: { name: 'n1', ownerReferences: [owner] } };

  it('a lease that others made is renewed, and gets its node as owner as soon as that is known', async () => {
    let node: Node | undefined;
    let lease: Lease = { metadata: { name: 'n1' } };
    const t = open((call) => {
      if (call.target.startsWith('/api/v1/nodes')) return node;
      if (call.verb === 'PUT') lease = call.body as Lease;
      return lease;
    });
    await t.clock.advance(0);
    assert.deepEqual(t.client.log, [`GET ${PATH}/n1`, 'GET /api/v1/nodes/n1', `PUT ${PATH}/n1`]);
    assert.equal(lease.metadata.ownerReferences, undefined);
    node = { metadata: { name: 'n1', uid: 'U' } };
    await t.clock.advance(10_000);
    assert.deepEqual(lease.metadata.ownerReferences, [owner]);
    await t.clock.advance(10_000);
    assert.deepEqual(t.client.log.slice(3), ['GET /api/v1/nodes/n1', `PUT ${PATH}/n1`, `PUT ${PATH}/n1`]);
    await t.stop();
  });

  it('waits for the node, creates the lease, then renews without reading', async () => {
    let node: Node | undefined;
    let lease: Lease | undefined;
    const t = open((call) => {
      if (call.target.startsWith('/api/v1/nodes')) return node;
      if (call.verb === 'GET') return lease;
      lease = { ...(call.body as Lease), metadata: { ...(call.body as Lease).metadata, resourceVersion: '9' } };
      return lease;
    });
    await t.clock.advance(0);
    assert.deepEqual(t.client.log, [`GET ${PATH}/n1`, 'GET /api/v1/nodes/n1']);
    node = { metadata: { name: 'n1', uid: 'U' } };
    await t.clock.advance(10_000);
    assert.deepEqual(t.client.calls[4], {
      verb: 'POST',
      target: PATH,
      body: {
        kind: 'Lease',
        apiVersion: 'coordination.k8s.io/v1',
        metadata: {
          name: 'n1',
          namespace: 'kube-node-lease',
          ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'U' }],
        },
        spec: { holderIdentity: 'n1', leaseDurationSeconds: 40, renewTime: '2026-01-01T00:00:10.000000Z' },
      },
    });
    await t.clock.advance(20_000);
    assert.deepEqual(t.client.log.slice(5), [`PUT ${PATH}/n1`, `PUT ${PATH}/n1`]);
    assert.equal(t.client.body<Lease>(6).metadata.resourceVersion, '9');
    await t.stop();
  });

  it('a conflict is resolved by reading, a deleted lease is made again', async () => {
    let mode: 'ok' | 'conflict' | 'gone' = 'ok';
    const t = open((call) => {
      if (call.target.startsWith('/api/v1/nodes')) return { metadata: { name: 'n1', uid: 'U' } };
      if (call.verb === 'PUT' && mode === 'conflict') {
        mode = 'ok';
        throw new KubeletError('conflict', 'x', { detail: { status: 409 } });
      }
      if (mode === 'gone' && call.verb !== 'POST') throw notFound('lease');
      return OWNED;
    });
    await t.clock.advance(0);
    mode = 'conflict';
    await t.clock.advance(10_000);
    assert.deepEqual(t.client.log.slice(-3), [`PUT ${PATH}/n1`, `GET ${PATH}/n1`, `PUT ${PATH}/n1`]);
    mode = 'gone';
    await t.clock.advance(10_000);
    assert.deepEqual(t.client.log.slice(-4), [
      `PUT ${PATH}/n1`,
      `GET ${PATH}/n1`,
      'GET /api/v1/nodes/n1',
      `POST ${PATH}`,
    ]);
    await t.stop();
  });

  it('an outage: five tries, connections dropped from the second failure on, back by itself', async () => {
    let down = false;
    let resets = 0;
    const t = open(
      () => {
        if (down) throw unreachable();
        return { metadata: { name: 'n1' } };
      },
      () => resets++,
    );
    await t.clock.advance(0);
    down = true;
    await t.clock.advance(60_000);
    assert.equal(resets, 4);
    down = false;
    await t.clock.advance(7500);
    assert.ok(t.client.log.at(-1)?.startsWith('PUT'));
    await t.stop();
  });
});

describe('CSINode', () => {
  it('is created once the node exists, as recorded', async () => {
    const clock = new ManualClock();
    let node: Node | undefined;
    const client = new RecordingClient((call) => {
      if (call.target.startsWith('/api/v1/nodes')) return node;
      return call.verb === 'POST' ? call.body : undefined;
    });
    const end = new AbortController();
    const part = new CsiNodeInitializer({ client, clock, log }, { nodeName: 'n1' });
    const running = part.run(end.signal);
    await clock.advance(100);
    assert.equal(client.log[0], 'GET /apis/storage.k8s.io/v1/csinodes/n1?resourceVersion=0');
    assert.equal(part.ready, false);
    node = { metadata: { name: 'n1', uid: 'U' } };
    await clock.advance(2000);
    assert.equal(part.ready, true);
    const body = client.calls.at(-1)?.body as { spec: unknown; metadata: { ownerReferences: unknown[] } };
    assert.deepEqual(body.spec, { drivers: null });
    assert.deepEqual(body.metadata.ownerReferences, [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'U' }]);
    end.abort();
    await running;
  });

  it('waits for the server for as long as it takes, but not for ever for a refusal', async () => {
    const clock = new ManualClock();
    let down = true;
    const client = new RecordingClient(() => {
      if (down) throw unreachable();
      throw new KubeletError('denied', 'no');
    });
    const part = new CsiNodeInitializer({ client, clock, log }, { nodeName: 'n1' });
    const running = part.run(new AbortController().signal);
    const failed = assert.rejects(running, /failed to initialize CSINode/);
    await clock.advance(60_000);
    down = false;
    await clock.advance(160_000);
    await failed;
  });

  it('waits as long for a server that goes away right after its first answer', async () => {
    const clock = new ManualClock();
    let answers = 1;
    const client = new RecordingClient((call) => {
      if (answers-- <= 0) throw unreachable();
      return call.body ?? { metadata: { name: 'n1', uid: 'U' } };
    });
    const part = new CsiNodeInitializer({ client, clock, log }, { nodeName: 'n1' });
    const end = new AbortController();
    const running = part.run(end.signal);
    await clock.advance(3_600_000);
    assert.equal(part.ready, false);
    answers = Infinity;
    await clock.advance(2000);
    assert.equal(part.ready, true);
    end.abort();
    await running;
  });

  it('is made soon after errors of the server end, up to two minutes', async () => {
    const clock = new ManualClock();
    let failing = true;
    const client = new RecordingClient((call) => {
      if (failing) throw new KubeletError('unavailable', 'etcd is down', { detail: { status: 503 } });
      return call.body ?? { metadata: { name: 'n1', uid: 'U' } };
    });
    const part = new CsiNodeInitializer({ client, clock, log }, { nodeName: 'n1' });
    const end = new AbortController();
    const running = part.run(end.signal);
    await clock.advance(120_000);
    assert.equal(part.ready, false);
    failing = false;
    await clock.advance(16_000);
    assert.equal(part.ready, true);
    end.abort();
    await running;
  });
});
