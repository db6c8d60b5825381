// Random devices, pods and plugins, 20,000 steps: whatever comes and goes, no device has two owners, and all come back.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { uidOf, type Container, type Pod } from '../core/pod.ts';
import { isFault } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { randomFrom, type Random } from '../lib/random.fixture.ts';
import { mergeHints } from '../resources/topology/merge.ts';
import type { Device } from './device.ts';
import { DeviceManager, type DevicePluginCalls } from './device-manager.ts';
import { randomRuns } from '../../test/harness/random-runs.ts';

const STEPS = randomRuns(20_000);
const STEPS_PER_NODE = 1000;
const RESOURCES = ['example.com/card', 'example.com/port'];
const HINTS = { policy: 'best-effort', nodes: [0, 1, 2, 3], distances: undefined } as const;
const { signal } = new AbortController();

/** Fewer than before now and then, some of them broken, on one NUMA node, on two or on none. */
function randomDevices(random: Random): Map<string, Device> {
  const nodes = [[], [0], [1], [2], [3], [0, 1]];
  return new Map(
    Array.from({ length: random(13) }, (_, i) => {
      const device = { id: `d${i}`, health: random(8) === 0 ? 'Unhealthy' : 'Healthy', nodes: nodes[random(6)] ?? [] };
      return [device.id, device];
    }),
  );
}

function randomPod(random: Random, uid: string): Pod {
  const container = (name: string): Container => {
    const limits = Object.fromEntries(RESOURCES.filter(() => random(2) === 0).map((r) => [r, String(1 + random(3))]));
    return { name, resources: { limits, requests: limits } };
  };
  const init = Array.from({ length: random(3) }, (_, i) => ({
    ...container(`i${i}`),
    ...(random(3) === 0 && { restartPolicy: 'Always' as const }),
  }));
  return {
    metadata: { name: uid, uid },
    spec: { initContainers: init, containers: Array.from({ length: 1 + random(2) }, (_, i) => container(`c${i}`)) },
  };
}

class Node {
  readonly live = new Map<string, Pod>();
  readonly lists = new Map<string, ReadonlyMap<string, Device>>();
  readonly manager: DeviceManager;
  /** Plugins that refuse now and then, and prefer what they like. */
  readonly #random: Random;

  constructor(random: Random, checkpoint: string) {
    this.#random = random;
    this.manager = new DeviceManager(
      {
        clock: new ManualClock(),
        log: silentLogger,
        plugins: { get: (resource) => this.#plugin(resource) },
        pods: { alive: () => [...this.live.values()], sourcesReady: () => true, isRunning: () => false },
        numaNodes: () => HINTS.nodes,
        onHealthChange: () => undefined,
        onAmounts: () => undefined,
        durations: new Registry().histogram('d', 'd', ['resource_name']),
      },
      { checkpoint },
    );
  }

  #plugin(resource: string): DevicePluginCalls {
    const random = this.#random;
    return {
      resource,
      options: { preStartRequired: false, getPreferredAllocationAvailable: random(2) === 0 },
      preferred: ({ availableDeviceIDs }) => Promise.resolve(availableDeviceIDs.filter(() => random(2) === 0)),
      preStart: () => Promise.resolve(),
      allocate: () =>
        random(50) === 0
          ? Promise.reject(new Error('refused'))
          : Promise.resolve({ envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [] }),
    };
  }

  list(resource: string): void {
    const devices = randomDevices(this.#random);
    this.lists.set(resource, devices);
    this.manager.connected(resource);
    this.manager.listed(resource, devices);
  }

  /** As admission does: all containers in their order, none of them if one cannot have what it asks for. */
  async admit(pod: Pod): Promise<boolean> {
    this.live.set(uidOf(pod), pod);
    try {
      for (const container of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        const { hint } = mergeHints([this.manager.hints(pod, container)], HINTS);
        await this.manager.allocate(pod, container, hint, signal);
        this.checkContainer(pod, container);
      }
      return true;
    } catch (err) {
      if (err instanceof assert.AssertionError) throw err;
      assert.ok(isFault(err, 'exhausted', 'unavailable') || (err as Error).message === 'refused', String(err));
      this.live.delete(uidOf(pod));
      return false;
    }
  }

  checkContainer(pod: Pod, container: Container): void {
    const held = this.manager.devicesOf(uidOf(pod), container.name);
    for (const resource of RESOURCES) {
      const ids = new Set(held.filter((d) => d.resource === resource).map((d) => d.id));
      const wanted = Number(container.resources?.limits?.[resource] ?? 0);
      assert.equal(ids.size, this.lists.has(resource) ? wanted : 0, 'as many as were asked for');
    }
  }

  held(pod: Pod, container: string): string[] {
    const devices = this.manager.devicesOf(uidOf(pod), container);
    return devices.map(({ resource, id, node }) => `${resource} ${id} ${node}`).sort();
  }

  /** Containers that run together share nothing, and neither do pods. */
  check(): void {
    const owners = new Map<string, string>();
    for (const [uid, pod] of this.live) {
      const together = [
        ...(pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === 'Always'),
        ...pod.spec.containers,
      ];
      const own = new Set<string>();
      for (const { name } of [...(pod.spec.initContainers ?? []), ...pod.spec.containers]) {
        const ids = new Set(this.manager.devicesOf(uidOf(pod), name).map(({ resource, id }) => `${resource} ${id}`));
        for (const id of ids) {
          assert.equal(owners.get(id) ?? uid, uid, `${id} has one pod`);
          owners.set(id, uid);
          if (!together.some((c) => c.name === name)) continue;
          assert.ok(!own.has(id), `${id} has one container of those that run together`);
          own.add(id);
        }
      }
    }
  }
}

test('devices: none has two owners, sums are right, all come back', async (t) => {
  const dir = mkdtempSync(join(tmpdir(), 'devices-random-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const random = randomFrom(23);
  let admitted = 0;
  for (let step = 0; step < STEPS;) {
    rmSync(join(dir, 'checkpoint'), { force: true });
    const node = new Node(random, join(dir, 'checkpoint'));
    await node.manager.load();
    for (const resource of RESOURCES) node.list(resource);
    const end = step + STEPS_PER_NODE;
    for (; step < end; step++) {
      const [first] = node.live.keys();
      const what = random(20);
      if (what === 0) node.list(RESOURCES[random(RESOURCES.length)] ?? '');
      else if (what < 9 && first !== undefined) node.live.delete(first);
      else if (await node.admit(randomPod(random, `p${step}`))) admitted++;
      node.check();
    }
    await node.manager.saved();
    const again = new Node(random, join(dir, 'checkpoint'));
    for (const [uid, pod] of node.live) again.live.set(uid, pod);
    await again.manager.load();
    for (const pod of node.live.values())
      for (const { name } of pod.spec.containers)
        assert.deepEqual(again.held(pod, name), node.held(pod, name), 'the file says it all');
    node.live.clear();
    for (const resource of RESOURCES) node.list(resource);
    for (const [resource, devices] of node.lists) {
      const healthy = [...devices.values()].filter((d) => d.health === 'Healthy').length;
      assert.equal(node.manager.amounts().allocatable.get(resource), healthy);
    }
    await node.manager.saved();
  }
  assert.ok(admitted > STEPS / 10, `${admitted} admissions are too few to mean anything`);
});
