// A pod hides a large file behind empty ones, so that a count that stops at some number of entries never meets it.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { EvictionManager } from '../eviction/eviction-manager.ts';
import type { PodFigures } from '../eviction/figures.ts';
import { fs, nodeFigures, podFigures } from '../eviction/testing.ts';
import { MountTable } from '../host/mounts/mount-table.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { VolumeMeasuring } from '../stats/volume-figures.ts';
import { DirectorySizes } from './directory-sizes.ts';
import { usageOf } from './volume-stats.ts';

const never = new AbortController().signal;
const limits = { 'ephemeral-storage': '1Mi' };
const podWith = (name: string, sizeLimit: string | undefined, container: object): Pod =>
  ({
    metadata: { name, namespace: 'ns', uid: name },
    spec: { containers: [{ name: 'c', ...container }], volumes: [{ name: 'v', emptyDir: { sizeLimit } }] },
  }) as unknown as Pod;

async function evictedOf(pods: readonly Pod[], path: string): Promise<readonly string[]> {
  const infra = { clock: systemClock, log: silentLogger, registry: new Registry() };
  const sizes = new DirectorySizes(infra, { largeEntries: 500, waitMs: 60_000 });
  const measuring = new VolumeMeasuring(
    {
      ...infra,
      pods: () => pods,
      async *measure(uids, signal) {
        for (const uid of uids) {
          const usage = await usageOf(path, await sizes.of(path, new MountTable([]), signal), 'du');
          yield { uid, volumes: new Map([['v', { ...usage, tookMs: 1 }]]) };
        }
      },
      durations: infra.registry.histogram('d', 'h', ['metric_source']),
    },
    { periodMs: 60_000 },
  );
  await measuring.measureDue(never);
  const figures = pods.map(({ metadata }): PodFigures =>
    podFigures(metadata.name, { volume: [...measuring.all()].find(([uid]) => uid === metadata.uid)?.[1].ephemeral }),
  );
  const evicted: string[] = [];
  const manager = new EvictionManager(
    {
      pods: {
        active: () => pods,
        allocated: (pod) => pod,
        evict: async (pod) => void evicted.push(pod.metadata.name),
        gone: () => true,
      },
      figures: {
        node: async () => nodeFigures({ fs: fs({}) }),
        pods: async () => figures,
        measuredPods: async () => ({ figures, unmeasured: new Set() }),
      },
      layout: async () => 'shared',
      reclaim: { unusedContainers: async () => undefined, unusedImages: async () => undefined },
      events: { pod: () => undefined, node: () => undefined },
      onPressure: () => undefined,
      infra,
    },
    { thresholds: [], transitionMs: 0, maxPodGraceSeconds: 0, localStorageLimits: true },
  );
  await manager.lookOnce(never);
  return evicted.sort();
}

it('a pod with a large file behind empty ones is evicted for what it uses', async () => {
  const path = mkdtempSync(join(tmpdir(), 'kts-evading-'));
  try {
    mkdirSync(join(path, 'sub'));
    for (let i = 0; i < 1_000; i++) writeFileSync(join(path, 'sub', `${i}`), '');
    const last = readdirSync(join(path, 'sub')).at(-1) ?? '';
    const pods = [
      podWith('sizeLimit', '1Mi', {}),
      podWith('limits', undefined, { resources: { limits } }),
      podWith('none', undefined, {}),
    ];
    assert.deepEqual(await evictedOf(pods, path), []);
    writeFileSync(join(path, 'sub', last), Buffer.alloc(2 ** 21, 1));
    assert.deepEqual(await evictedOf(pods, path), ['limits', 'sizeLimit']);
  } finally {
    rmSync(path, { recursive: true });
  }
});
