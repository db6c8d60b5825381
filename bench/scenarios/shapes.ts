// Pods with more to them, one by one: what volumes and probes cost on top of the plain pod.
import { setTimeout as sleep } from 'node:timers/promises';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resources.ts';
import { LIFE_MS, NAMESPACE, type Shape } from '../pods.ts';
import type { Row } from '../rows.ts';
import { median } from '../statistics.ts';
import type { World } from '../world.ts';
import type { Scenario } from './scenario.ts';

const { signal } = new AbortController();

/** The shapes take turns, so that all of them see the same machine. */
async function compare(
  world: World,
  prefix: string,
  shapes: Readonly<Record<string, Shape>>,
  rounds: number,
): Promise<Record<string, number>> {
  const seen: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round++)
    for (const [kind, shape] of Object.entries(shapes)) {
      const name = `${prefix}-${kind}-${round}`;
      await world.pods.create(name, shape);
      await world.pods.ready([name], 30_000);
      (seen[kind] ??= []).push(world.pods.startMs(name));
      await sleep(LIFE_MS);
      await world.pods.remove([name]);
    }
  return Object.fromEntries(Object.entries(seen).map(([kind, times]) => [kind, median(times)]));
}

const NO_TOKEN: Shape = { spec: { automountServiceAccountToken: false } };
const ALL_VOLUMES: Shape = {
  spec: {
    volumes: [
      { name: 'config', configMap: { name: 'bench' } },
      { name: 'secret', secret: { secretName: 'bench' } },
      { name: 'scratch', emptyDir: {} },
    ],
  },
  container: {
    volumeMounts: [
      { name: 'config', mountPath: '/config' },
      { name: 'secret', mountPath: '/secret' },
      { name: 'scratch', mountPath: '/scratch' },
    ],
  },
};

export const volumes: Scenario = {
  name: 'volumes',
  asks: 'token, config map, secret and empty dir against no volumes at all',
  async run(world, { quick }) {
    const where = { namespace: NAMESPACE };
    const metadata = { name: 'bench', namespace: NAMESPACE };
    const data = Object.fromEntries(
      Array.from({ length: 8 }, (_, i) => [`key-${i}`, Buffer.from(`value ${i}`).toString('base64')]),
    );
    await world.client.create(CONFIG_MAPS, where, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, signal);
    await world.client.create(SECRETS, where, { apiVersion: 'v1', kind: 'Secret', metadata, data }, signal);
    const shapes = { none: NO_TOKEN, token: {}, all: ALL_VOLUMES };
    const times = await compare(world, 'volumes', shapes, quick ? 3 : 10);
    const row = (kind: string, what: string): Row => ({
      key: `volumes.${kind}`,
      what,
      value: times[kind] ?? Number.NaN,
      unit: 'ms',
      floor: times['none'] ?? Number.NaN,
      note: 'the floor here is the same pod without any volume',
    });
    return [
      row('all', 'token + config map + secret + empty dir, created to Ready p50'),
      row('token', 'token only, created to Ready p50'),
    ];
  },
};

const probe = { exec: { command: ['/bin/true'] }, periodSeconds: 1 };

export const probes: Scenario = {
  name: 'probes',
  asks: 'startup, readiness and liveness probes against none',
  async run(world, { quick }) {
    const shapes = {
      none: {},
      readiness: { container: { readinessProbe: probe } },
      three: { container: { readinessProbe: probe, livenessProbe: probe, startupProbe: probe } },
    };
    const times = await compare(world, 'probes', shapes, quick ? 2 : 6);
    const row = (kind: string, what: string): Row => ({
      key: `probes.${kind}`,
      what,
      value: times[kind] ?? Number.NaN,
      unit: 'ms',
      floor: times['none'] ?? Number.NaN,
      note: 'the floor here is the same pod without probes',
    });
    return [
      row('readiness', 'exec readiness probe, created to Ready p50'),
      row('three', 'startup, readiness and liveness probe, created to Ready p50'),
    ];
  },
};
