// A pod with a claim: what the kubelet adds between the moment the volume is attached and the start of the container, over
// the driver's own calls and the runtime's.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Node } from '../../src/core/node.ts';
import { CONTAINER_NAME, POD_NAME } from '../../src/core/runtime-labels.ts';
import type { RecordedCall } from '../../src/devcluster/csi-hostpath/call-log.ts';
import { DRIVER_NAME } from '../../src/devcluster/csi-hostpath/driver-name.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { CSI_NODES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { LIFE_MS, NAMESPACE, NODE_NAME, type Shape } from '../pods.ts';
import { median } from '../statistics.ts';
import { ended, type World } from '../world.ts';
import type { Scenario } from './scenario.ts';

const { signal } = new AbortController();
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'devcluster', 'csi-hostpath', 'main.ts');
const WAIT_MS = 30_000;

const withClaim = (claimName: string): Shape => ({
  spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName } }] },
  container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
});

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  for (const end = performance.now() + WAIT_MS; performance.now() < end; await sleep(20)) {
    const found = await look().catch(() => undefined);
    if (found !== undefined) return found;
  }
  throw new Error(`not in time: ${what}`);
}

async function startDriver({ dir, client, atEnd }: World): Promise<string> {
  const record = join(dir, 'csi-calls.jsonl');
  const flags = {
    'node-id': NODE_NAME,
    directory: join(dir, 'csi-volumes'),
    endpoint: join(dir, 'csi.sock'),
    registry: join(dir, 'kubelet', 'plugins_registry'),
    record,
    backing: 'directory',
  };
  const args = Object.entries(flags).map(([name, value]) => `--${name}=${value}`);
  const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN, ...args], { stdio: 'ignore' });
  atEnd(() => ended(child, 'SIGTERM'));
  await until('the driver is registered', async () => {
    const { spec } = await client.get(CSI_NODES, { name: NODE_NAME }, signal);
    return spec.drivers?.some(({ name }) => name === DRIVER_NAME) === true ? true : undefined;
  });
  return record;
}

/** Makes a claim, waits until it is bound, and says what its volume is called where it is attached. */
async function bound({ client }: World, name: string): Promise<{ handle: string; attachedName: string }> {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '8Mi' } } };
  const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name, namespace: NAMESPACE }, spec };
  await client.create(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE }, claim, signal);
  const handle = await until(`${name} is bound`, async () => {
    const { spec: made, status } = await client.get(PERSISTENT_VOLUME_CLAIMS, { namespace: NAMESPACE, name }, signal);
    if (status?.phase !== 'Bound') return undefined;
    return (await client.get(PERSISTENT_VOLUMES, { name: made?.volumeName ?? '' }, signal)).spec.csi?.volumeHandle;
  });
  return { handle, attachedName: `kubernetes.io/csi/${DRIVER_NAME}^${handle}` };
}

/** When each volume was first seen as attached, by the wall clock. */
function watchAttached({ client, atEnd }: World): ReadonlyMap<string, number> {
  const seen = new Map<string, number>();
  const stop = new AbortController();
  const deps = { client, clock: systemClock, log: silentLogger };
  const reflector = new Reflector<Node>(deps, { name: 'bench-node', resource: NODES });
  reflector.subscribe((changes) => {
    for (const { after } of changes)
      for (const { name } of after?.status?.volumesAttached ?? []) if (!seen.has(name)) seen.set(name, Date.now());
  });
  const running = reflector.run(stop.signal);
  atEnd(async () => {
    stop.abort();
    await running;
  });
  return seen;
}

/** When the runtime says the pod's container started, in milliseconds. */
async function startedAt({ containerd: { runtime } }: World, pod: string): Promise<number> {
  const { containers } = await runtime.listContainers({}, signal);
  const own = containers.find(({ labels }) => labels[POD_NAME] === pod && labels[CONTAINER_NAME] === 'main');
  const { status } = await runtime.containerStatus({ containerId: own?.id ?? '' }, signal);
  return Number(status?.startedAt ?? 0) / 1e6;
}

type DriverWork = { readonly tookMs: number; readonly endedAt: number };

/** How long the driver worked on the volume for the pod, and when it was done. */
function driverWork(record: string, handle: string): DriverWork {
  const calls = readFileSync(record, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedCall)
    .filter(({ call, request }) => /^Node(Stage|Publish)/.test(call) && isAbout(request, handle));
  return {
    tookMs: calls.reduce((sum, { tookMs }) => sum + tookMs, 0),
    endedAt: Math.max(...calls.map(({ atMs, tookMs }) => atMs + tookMs)),
  };
}
const isAbout = (request: unknown, handle: string): boolean => (request as { volume_id?: string }).volume_id === handle;

/** All in milliseconds, one entry for each round. */
class Seen {
  readonly driver: number[] = [];
  readonly floor: number[] = [];
  /** From attached to published, without the driver's own calls. */
  readonly mounted: number[] = [];
  /** From attached to the start of the container, likewise. */
  readonly started: number[] = [];
  readonly claimed: number[] = [];
  readonly plain: number[] = [];
}

async function measure(world: World, rounds: number): Promise<Seen> {
  const { pods, floor } = world;
  const record = await startDriver(world);
  const attached = watchAttached(world);
  const seen = new Seen();
  for (let round = -1; round < rounds; round++) {
    const bare = await floor.start();
    await floor.stop(bare.pod);
    await floor.remove(bare.pod);
    const name = `csi-${round + 1}`;
    const { handle, attachedName } = await bound(world, name);
    await pods.create(`${name}-plain`);
    await pods.ready([`${name}-plain`], WAIT_MS);
    await pods.create(name, withClaim(name));
    await pods.ready([name], WAIT_MS);
    const started = await startedAt(world, name);
    await sleep(LIFE_MS);
    await pods.remove([name, `${name}-plain`]);
    if (round < 0) continue; // the first pod warms everybody up
    const work = driverWork(record, handle);
    const from = (attached.get(attachedName) ?? Number.NaN) + work.tookMs;
    seen.driver.push(work.tookMs);
    seen.floor.push(bare.ms);
    seen.mounted.push(work.endedAt - from);
    seen.started.push(started - from);
    seen.claimed.push(pods.startMs(name));
    seen.plain.push(pods.startMs(`${name}-plain`));
  }
  return seen;
}

export const csi: Scenario = {
  name: 'csi',
  asks: 'a pod with a claim: attached to container start, over the driver’s and the runtime’s own time',
  async run(world, { quick, say }) {
    const seen = await measure(world, quick ? 5 : 20);
    for (const [name, times] of Object.entries(seen)) say(`${name} ${(times as number[]).map(Math.round).join(' ')}`);
    const driver = `the driver's own calls took ${median(seen.driver).toFixed(1)} ms`;
    return [
      {
        key: 'csi.mounted.p50',
        what: 'claim attached to volume published, over the driver’s own calls, p50',
        value: median(seen.mounted),
        unit: 'ms',
        wanted: { atMost: 30 },
        note: driver,
      },
      {
        key: 'csi.over.p50',
        what: 'claim attached to container started, over driver and runtime, p50',
        value: median(seen.started) - median(seen.floor),
        unit: 'ms',
        wanted: { atMost: 30 },
        note: `${driver}, the runtime's as much as for a bare pod`,
      },
      {
        key: 'csi.ready.p50',
        what: 'one pod with a claim, created to Ready, p50',
        value: median(seen.claimed),
        unit: 'ms',
        floor: median(seen.plain),
        note: 'the floor here is the same pod without a claim; a controller attaches the volume meanwhile',
      },
    ];
  },
};
