// The recorded scenarios that are more than "create, wait, delete": a static pod with its mirror, an ephemeral container
// with two resizes, and pods the node rejects.
// runs: gate
// shows: static pods from files and URLs, mirror pods
// shows: in-place resize of CPU and memory: containers, init containers, pod-level resources
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Pod, PodSpec } from '../../src/core/pod.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { assertSameCalls, assertSameEvents, placesOf } from '../golden/compare.ts';
import { createGoldenNamespace } from '../golden/namespace.ts';
import { CallLedger, normalisedStatus } from '../golden/observed.ts';
import { recording, type RecordedEvent } from '../golden/recording.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { until, untilSeen } from '../harness/until.ts';

const STATUSES = join(import.meta.dirname, '..', 'golden', 'statuses');
const never = new AbortController().signal;
const namespace = 'golden';
const readJson = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(join(STATUSES, `${name}.json`), 'utf8')) as Record<string, unknown>;

let node: TestNode;
const ledger = new CallLedger();

const read = (name: string): Promise<Pod> => node.client.get(PODS, { namespace, name }, never);
const eventsOf = async (uid: string): Promise<readonly KubeEvent[]> =>
  (await node.client.list(EVENTS, { namespace, query: { fieldSelector: `involvedObject.uid=${uid}` } }, never)).items;
const gone = (name: string): Promise<boolean> =>
  read(name).then(
    () => false,
    () => true,
  );

async function comesTo(name: string, want: unknown): Promise<void> {
  let seen: unknown;
  const check = async (): Promise<boolean> => {
    seen = normalisedStatus((await read(name)).status);
    try {
      assert.deepEqual(seen, normalisedStatus(want));
      return true;
    } catch {
      return false;
    }
  };
  await until(`${name} looks as recorded`, check).catch(() => assert.deepEqual(seen, normalisedStatus(want)));
}

before(async () => {
  node = await startNode({ containerd: '2.1' });
  node.cri.observe = (call) => ledger.add(call);
  await createGoldenNamespace(node);
});

after(async () => {
  await node?.stop();
});

describe('static pod', () => {
  const name = 'static-n1';
  const file = (): string => join(node.manifests, 'static.yaml');
  let uid = '';
  let mirror: Pod;

  it('runs and is mirrored as recorded', async () => {
    writeFileSync(
      file(),
      `apiVersion: v1
kind: Pod
metadata: {name: static, namespace: golden, labels: {a: b}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - {name: c, image: localhost/busybox:latest, imagePullPolicy: Never, command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]}
`,
    );
    await until('the mirror exists', () => read(name));
    await comesTo(name, readJson('static')['status']);
    mirror = await read(name);
    const annotations = mirror.metadata.annotations ?? {};
    uid = annotations['kubernetes.io/config.hash'] ?? '';
    assert.match(uid, /^[0-9a-f]{32}$/);
    assert.equal(annotations['kubernetes.io/config.mirror'], uid);
    assert.equal(annotations['kubernetes.io/config.source'], 'file');
    const [owner] = mirror.metadata.ownerReferences ?? [];
    assert.deepEqual({ ...owner, uid: '' }, { apiVersion: 'v1', kind: 'Node', name: 'n1', uid: '', controller: true });
  });

  it('keeps running and gets a new mirror when that is deleted', async () => {
    await node.client.delete(PODS, { namespace, name }, { gracePeriodSeconds: 0 }, never);
    const again = await until('a new mirror', async () => {
      const pod = await read(name);
      return pod.metadata.uid !== mirror.metadata.uid && pod;
    });
    assert.equal(again.metadata.annotations?.['kubernetes.io/config.mirror'], uid);
    await comesTo(name, readJson('static')['status']);
    assert.equal(ledger.of(uid).filter((c) => c.call === 'StopContainer').length, 0);
  });

  it('stops when its file goes, with the recorded requests and events', async () => {
    const last = await read(name);
    rmSync(file());
    await until('the mirror is gone', () => gone(name));
    const scenario = recording('static');
    const pod = { ...last, metadata: { ...last.metadata, uid } };
    await untilSeen(
      'the sandbox is stopped',
      () => ledger.of(uid),
      (seen) => seen.some((c) => c.call === 'StopPodSandbox'),
    );
    assertSameCalls(placesOf(node), ledger, pod, scenario);
    await untilSeen(
      'all events',
      () => eventsOf(uid),
      (seen) => seen.length >= scenario.events.length,
    ).catch(() => undefined);
    assertSameEvents(await eventsOf(uid), scenario.events);
  });
});

describe('ephemeral container and resize', () => {
  const scenario = recording('debug-and-resize');
  const name = scenario.pods.start.metadata.name;
  let pod: Pod;

  const patch = (subresource: string, spec: object): Promise<Pod> =>
    node.client.patch(PODS, { namespace, name, subresource }, { spec }, never);
  const resize = (resources: object): Promise<Pod> => patch('resize', { containers: [{ name: 'c', resources }] });
  const stage = (which: string): unknown => readJson('debug-and-resize')[which];

  it('starts a debug container in the running pod', async () => {
    const { ephemeralContainers, ...spec } = (scenario.pods['cpu'] ?? scenario.pods.start).spec;
    const start: PodSpec = { ...spec, containers: scenario.pods.start.spec.containers };
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: start } as Pod;
    pod = await node.client.create(PODS, { namespace }, body, never);
    await untilSeen(
      'it runs',
      async () => (await read(name)).status?.phase,
      (seen) => seen === 'Running',
    );
    await patch('ephemeralcontainers', { ephemeralContainers });
    await comesTo(name, stage('1-after-ephemeral'));
  });

  it('changes the CPU in place', async () => {
    await resize({ requests: { cpu: '150m', memory: '32Mi' }, limits: { cpu: '300m', memory: '64Mi' } });
    await comesTo(name, stage('2-after-cpu-resize'));
  });

  it('restarts the container for more memory', async () => {
    await resize({ requests: { cpu: '150m', memory: '32Mi' }, limits: { cpu: '300m', memory: '96Mi' } });
    await comesTo(name, stage('3-after-memory-resize'));
  });

  it('made the recorded requests and events', async () => {
    const last = await read(name);
    await node.client.delete(PODS, { namespace, name }, {}, never);
    await until('it is gone', () => gone(name));
    assertSameCalls(placesOf(node), ledger, last, scenario);
    const uid = pod.metadata.uid ?? '';
    await untilSeen(
      'all events',
      () => eventsOf(uid),
      (seen) => seen.length >= scenario.events.length,
    ).catch(() => undefined);
    assertSameEvents(await eventsOf(uid), scenario.events);
  });
});

for (const name of readdirSync(STATUSES)
  .map((f) => f.replace('.json', ''))
  .filter((f) => f.startsWith('rejected-'))) {
  it(`${name} is turned away as recorded`, async () => {
    const recorded = readJson(name);
    const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace }, spec: recorded['spec'] } as Pod;
    const pod = await node.client.create(PODS, { namespace }, body, never);
    await comesTo(name, recorded['status']);
    const uid = pod.metadata.uid ?? '';
    const events = recorded['events'] as RecordedEvent[];
    await untilSeen(
      'all events',
      () => eventsOf(uid),
      (seen) => seen.length >= events.length,
    ).catch(() => undefined);
    assertSameEvents(await eventsOf(uid), events);
    assert.equal(ledger.of(uid).length, 0);
  });
}
