import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodSandboxStats } from '../cri/gen/cri.ts';
import { byPod, withRuntimeFigures } from './runtime-figures.ts';
import { Moment, type CpuFigures, type MemoryFigures, type PodFigures } from './summary-types.ts';

const time = new Moment(0);
const psi = { full: { total: 1, avg10: 0, avg60: 0, avg300: 0 }, some: { total: 2, avg10: 0, avg60: 0, avg300: 0 } };
const cpu: CpuFigures = { time, usageNanoCores: 7, usageCoreNanoSeconds: 8, psi };
const memory = { time, workingSetBytes: 9, psi } as MemoryFigures;
const figures = (more: Partial<PodFigures> = {}): PodFigures => ({
  podRef: { name: 'p', namespace: 'n', uid: 'u' },
  startTime: time,
  containers: [{ name: 'a', startTime: time, cpu, memory, io: undefined, swap: undefined }],
  cpu,
  memory,
  io: undefined,
  swap: undefined,
  ...more,
});
const value = (n: number) => ({ value: BigInt(n) });
const told = (linux: object | undefined, attempt = 0): PodSandboxStats =>
  ({ attributes: { metadata: { uid: 'u', attempt } }, linux }) as unknown as PodSandboxStats;
const used = { timestamp: 5_000_000n, usageCoreNanoSeconds: value(1) };

test('of several sandboxes the newest counts; one without a name is nobody’s', () => {
  const [old, now] = [told(undefined, 0), told(undefined, 1)];
  assert.deepEqual([...byPod([now, old, {} as PodSandboxStats])], [['u', now]]);
});

test('what the runtime does not tell is kept', () => {
  assert.equal(withRuntimeFigures(figures(), undefined).cpu, cpu);
  const kept = withRuntimeFigures(figures(), told({ containers: [{}] }));
  assert.deepEqual([kept.cpu, kept.memory, kept.containers[0]?.cpu], [cpu, memory, cpu]);
  assert.ok(!('network' in kept) && !('process_stats' in kept));
});

test('what it tells counts, with our own pressure and rate where it has none', () => {
  const container = {
    attributes: { metadata: { name: 'a' } },
    cpu: used,
    memory: { timestamp: 0n, rssBytes: value(3) },
  };
  const network = {
    timestamp: 0n,
    defaultInterface: undefined,
    interfaces: [{ name: 'eth0', rxBytes: value(4), rxErrors: undefined, txBytes: value(5), txErrors: undefined }],
  };
  const told1 = told({
    containers: [container],
    cpu: used,
    memory: { timestamp: 0n },
    network,
    process: { processCount: value(6) },
  });
  const own = { time, name: 'eth0', interfaces: [] };
  const seen = withRuntimeFigures(figures({ network: own, process_stats: { process_count: 1 } }), told1);
  assert.deepEqual(seen.cpu, { time: new Moment(5), usageNanoCores: 7, usageCoreNanoSeconds: 1, psi });
  assert.deepEqual([seen.containers[0]?.memory?.rssBytes, seen.memory?.psi], [3, psi]);
  assert.deepEqual(seen.network, { time, name: '', interfaces: [{ name: 'eth0', rxBytes: 4, txBytes: 5 }] });
  assert.deepEqual(seen.process_stats, { process_count: 6 });
  const bare = withRuntimeFigures(figures({ cpu: undefined, memory: undefined }), told1);
  assert.deepEqual([bare.cpu?.usageNanoCores, bare.cpu?.psi, bare.memory?.psi], [undefined, undefined, undefined]);
});
