// The kubelet's API side against the embedded API server: what the server stores is what upstream's would be.
// runs: gate
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { podUid, type PodUid } from '../../../src/core/ids.ts';
import type { KubeEvent } from '../../../src/core/node.ts';
import { CONFIG_HASH, CONFIG_SOURCE, type Pod, type PodStatus } from '../../../src/core/pod.ts';
import { startApiServer, type RunningApiServer } from '../../../src/devcluster/start-api-server.ts';
import { connectApi, type ApiConnection } from '../../../src/kube/connect.ts';
import { ApiEventRecorder } from '../../../src/kube/events.ts';
import { resolveKubeconfig } from '../../../src/kube/kubeconfig.ts';
import { ObjectCache } from '../../../src/kube/object-cache.ts';
import { PodFeed } from '../../../src/kube/pod-feed.ts';
import { secretsOf } from '../../../src/kube/pod-references.ts';
import { Reflector } from '../../../src/kube/reflector.ts';
import { CSI_NODES, EVENTS, LEASES, NODES, PODS, SECRETS } from '../../../src/kube/resources.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { isFault } from '../../../src/lib/errors.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import type { Runnable } from '../../../src/lib/supervise.ts';
import { CsiNodeInitializer } from '../../../src/node/csi-node.ts';
import { KnownNode } from '../../../src/node/known-node.ts';
import { NodeLease } from '../../../src/node/lease.ts';
import type { NodeFacts } from '../../../src/node/node-object.ts';
import { NodeStatusReporter } from '../../../src/node/node-status.ts';
import { NodeRegistration } from '../../../src/node/registration.ts';
import { MirrorPods } from '../../../src/pods/mirror-pods.ts';
import { StatusSync } from '../../../src/status/status-sync.ts';
import { freePort } from '../../harness/ports.ts';
import { timePasses, until, untilSeen } from '../../harness/until.ts';
import { NODE_OPTIONS } from '../../../src/node/node-options.fixture.ts';
import { temporaryFolder } from '../../harness/temporary-folder.ts';

const clock = systemClock;
const log = silentLogger;
const signal = new AbortController().signal;
const NAME = 'n1';
const options = { ...NODE_OPTIONS, nodeLabels: { zone: 'z' }, updateMs: 3_600_000, reportMs: 3_600_000 };
let notReady: string[] = ['CSINode is not yet initialized'];
const facts = (): Promise<NodeFacts> =>
  Promise.resolve({
    host: {
      machineId: 'm',
      systemUuid: 's',
      bootId: 'b',
      kernelVersion: 'k',
      osImage: 'o',
      architecture: 'amd64',
      swapBytes: 0,
    },
    capacity: { cpu: '2', memory: '1Gi', pods: '110', 'ephemeral-storage': '10Gi' },
    allocatable: { cpu: '2', memory: '1Gi', pods: '110', 'ephemeral-storage': '10Gi' },
    addresses: [
      { type: 'InternalIP', address: '127.0.0.1' },
      { type: 'Hostname', address: NAME },
    ],
    pressure: { memory: false, disk: false, pid: false },
    notReady,
    declaredFeatures: [],
  });

let dir = '';
let server: RunningApiServer;
let admin: ApiConnection;
let node: ApiConnection;
const stop = new AbortController();
const running: Promise<void>[] = [];
const start = (...parts: Runnable[]): void => void running.push(...parts.map((p) => p.run(stop.signal)));
const connect = async (config: string): Promise<ApiConnection> =>
  connectApi({ clock, log }, await resolveKubeconfig(config, '/kubeconfig'), {
    version: 'v1.36.4',
    architecture: 'amd64',
    qps: 50,
    burst: 100,
    eventQps: 50,
    eventBurst: 100,
    leaseDurationSeconds: 40,
    statusUpdateMs: 10_000,
  });

before(async () => {
  dir = temporaryFolder('embedded-');
  server = await startApiServer({ dir, controllers: false, port: await freePort() });
  admin = await connect(server.kubeconfig('kubernetes-admin', ['system:masters']));
  node = await connect(server.nodeKubeconfig(NAME));
});
after(async () => {
  stop.abort();
  await Promise.all(running);
  node.transport.resetConnections();
  admin.transport.resetConnections();
  await server.stop();
});

describe('on the embedded API server', () => {
  const recorder = (): ApiEventRecorder =>
    new ApiEventRecorder({ client: node.events, clock, log }, { nodeName: NAME });

  it('the node registers, becomes Ready long before its next report is due, gets lease and CSINode', async () => {
    const watch = new Reflector(
      { client: node.main, clock, log },
      { name: 'node', resource: NODES, fieldSelector: `metadata.name=${NAME}` },
    );
    const known = new KnownNode(watch.store, NAME);
    const events = recorder();
    const registration = new NodeRegistration({ client: node.main, known, facts, events, clock, log }, options);
    const reporter = new NodeStatusReporter(
      { client: node.heartbeat, known, registration, facts, events, clock, log },
      options,
    );
    const csi = new CsiNodeInitializer(
      { client: node.main, clock, log, onReady: () => ((notReady = []), reporter.wake()) },
      { nodeName: NAME },
    );
    start(watch, events, reporter, csi);
    const ready = await until('node Ready', async () => {
      const got = await admin.main.get(NODES, { name: NAME }, signal);
      return got.status?.conditions?.find((c) => c.type === 'Ready')?.status === 'True' ? got : undefined;
    });
    assert.equal(ready.metadata.labels?.['zone'], 'z');
    assert.equal(ready.status?.nodeInfo?.kubeletVersion, 'v1.36.4');
    const csiNode = await admin.main.get(CSI_NODES, { name: NAME }, signal);
    assert.equal(csiNode.metadata.ownerReferences?.[0]?.uid, ready.metadata.uid);
    start(new NodeLease({ client: node.heartbeat, clock, log }, { nodeName: NAME, durationSeconds: 40 }));
    const lease = await until('lease', () =>
      admin.main.get(LEASES, { namespace: 'kube-node-lease', name: NAME }, signal),
    );
    assert.match(lease.spec?.renewTime ?? '', /\.\d{6}Z$/);
    assert.equal(lease.spec?.holderIdentity, NAME);
    const reported = await until('events', async () => {
      const list = await admin.main.list(EVENTS, { namespace: 'default' }, signal);
      return list.items.some((e) => e.reason === 'NodeReady') ? list.items : undefined;
    });
    assert.ok(reported.some((e: KubeEvent) => e.reason === 'NodeHasSufficientMemory' && e.source?.host === NAME));
  });

  it('pods come in, statuses go out, deletion ends with the object gone', async () => {
    const statuses = new Map<PodUid, { pod: Pod; status: PodStatus; version: number; finished: boolean }>();
    const sets: number[] = [];
    const onPods = (pods: readonly Pod[]): void => void sets.push(pods.length);
    const onPod = (): void => void sets.push(1);
    const feed = new PodFeed({ client: node.main, clock, log, onPods, onPod }, { nodeName: NAME });
    const desired = {
      get: (uid: PodUid) => statuses.get(uid),
      all: () => statuses.entries(),
      delete: (uid: PodUid) => void statuses.delete(uid),
    };
    const sync = new StatusSync({
      client: node.main,
      statuses: desired,
      watched: feed.reflector.store,
      mayBeRunning: () => false,
      clock,
      log,
    });
    feed.reflector.subscribe((changes) => changes.forEach((c) => c.after && sync.apiPodChanged(c.after)));
    start(feed, sync);
    const namespace = 'default';
    const spec = { nodeName: NAME, containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 1 };
    const made = await admin.main.create(PODS, { namespace }, { metadata: { name: 'p' }, spec }, signal);
    const uid = podUid(made.metadata.uid ?? '');
    const pod = await until('pod seen', () => feed.reflector.store.get(uid));
    const condition = {
      type: 'Ready',
      status: 'True' as const,
      lastProbeTime: null,
      lastTransitionTime: '2026-01-01T00:00:00Z',
    };
    const status: PodStatus = {
      phase: 'Running',
      conditions: [condition],
      podIP: '10.0.0.1',
      podIPs: [{ ip: '10.0.0.1' }],
    };
    statuses.set(uid, { pod, status, version: 1, finished: false });
    sync.wake(uid);
    await until('status shown', async () => {
      const got = await admin.main.get(PODS, { namespace, name: 'p' }, signal);
      return got.status?.phase === 'Running' && got.status.podIP === '10.0.0.1' ? got : undefined;
    });
    const gate = { type: 'Gate', status: 'True' };
    await admin.main.patch(
      PODS,
      { namespace, name: 'p', subresource: 'status' },
      { status: { conditions: [gate], phase: 'Failed' } },
      signal,
    );
    const healed = await until('our phase again, their condition kept', async () => {
      const got = await admin.main.get(PODS, { namespace, name: 'p' }, signal);
      return got.status?.phase === 'Running' ? got : undefined;
    });
    assert.ok(healed.status?.conditions?.some((c) => c.type === 'Gate'));
    await admin.main.delete(PODS, { namespace, name: 'p' }, {}, signal);
    const leaving = await until('deletion seen', () => {
      const now = feed.reflector.store.get(uid);
      return now?.metadata.deletionTimestamp === undefined ? undefined : now;
    });
    statuses.set(uid, { pod: leaving, status: { ...status, phase: 'Succeeded' }, version: 2, finished: true });
    sync.wake(uid);
    await until('object gone', () => (feed.reflector.store.get(uid) === undefined ? true : undefined));
    await assert.rejects(admin.main.get(PODS, { namespace, name: 'p' }, signal), (err) => isFault(err, 'notFound'));
    assert.ok(sets.length >= 4);
  });

  it('a mirror pod is accepted from its node and replaced when its static pod changed', async () => {
    const fixed = (hash: string): Pod => ({
      metadata: {
        name: `m-${NAME}`,
        namespace: 'default',
        uid: hash,
        annotations: { [CONFIG_HASH]: hash, [CONFIG_SOURCE]: 'file' },
      },
      spec: { nodeName: NAME, containers: [{ name: 'c', image: 'i' }] },
    });
    const owner = await admin.main.get(NODES, { name: NAME }, signal);
    let mirror: Pod | undefined;
    const read = async (): Promise<Pod> =>
      (mirror = await admin.main.get(PODS, { namespace: 'default', name: `m-${NAME}` }, signal));
    const mirrors = new MirrorPods({ client: node.main, mirrorOf: () => mirror, node: () => owner, log });
    await mirrors.reconcile(fixed('h1'), signal);
    const first = await read();
    assert.equal(first.metadata.annotations?.['kubernetes.io/config.mirror'], 'h1');
    await mirrors.reconcile(fixed('h2'), signal);
    const second = await read();
    assert.notEqual(second.metadata.uid, first.metadata.uid);
    await mirrors.removeAll([second], signal);
    await assert.rejects(read(), (err) => isFault(err, 'notFound'));
  });

  it('a changed Secret reaches the pods that use it at once', async () => {
    const heard: unknown[] = [];
    const cache = new ObjectCache(
      {
        client: node.main,
        clock,
        log,
        onChange: ({ object }) => heard.push(object?.data?.['k']),
      },
      { name: 'secrets', resource: SECRETS, strategy: 'Watch', namesOf: secretsOf },
    );
    start(cache);
    const where = { namespace: 'default' };
    await admin.main.create(SECRETS, where, { metadata: { name: 's' }, data: { k: 'MQ==' } }, signal);
    const spec = { nodeName: NAME, containers: [{ name: 'c', image: 'i' }], imagePullSecrets: [{ name: 's' }] };
    const pod = await admin.main.create(PODS, where, { metadata: { name: 'uses-s' }, spec }, signal);
    cache.register(pod);
    assert.equal((await cache.get('default', 's', signal)).data?.['k'], 'MQ==');
    await admin.main.patch(SECRETS, { ...where, name: 's' }, { data: { k: 'Mg==' } }, signal);
    await untilSeen(
      'the change is heard',
      () => heard,
      (values) => values.includes('Mg=='),
    );
    cache.unregister(podUid(pod.metadata.uid ?? ''));
  });

  it('ten restarts of the server: every pod created after its return is seen', async () => {
    const seen = new Reflector(
      { client: node.main, clock, log },
      { name: 'pods', resource: PODS, fieldSelector: `spec.nodeName=${NAME}`, scout: true },
    );
    start(seen);
    await seen.whenSynced(signal);
    const { port } = server;
    for (let i = 0; i < 10; i++) {
      await server.stop();
      await timePasses(50 + 30 * i, 'an outage');
      server = await startApiServer({ dir, controllers: false, port });
      const spec = { nodeName: NAME, containers: [{ name: 'c', image: 'i' }] };
      const made = await until('created', () =>
        admin.main.create(PODS, { namespace: 'default' }, { metadata: { name: `r${i}` }, spec }, signal),
      );
      await until('pod seen', () => seen.store.get(made.metadata.uid ?? ''));
    }
    const listed = await admin.main.list(PODS, { query: { fieldSelector: `spec.nodeName=${NAME}` } }, signal);
    const uids = (pods: Iterable<Pod>): Set<string> => new Set([...pods].map((p) => p.metadata.uid ?? ''));
    assert.deepEqual(uids(seen.store.values()), uids(listed.items));
  });
});
