// Five hundred HTTP probes a second against a real server, none of them late.
// runs: alone
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { podUid } from '../../src/core/ids.ts';
import type { Pod, PodStatus } from '../../src/core/pod.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { ProbeManager } from '../../src/probes/probe-manager.ts';
import { ProbeMetrics } from '../../src/probes/probe-metrics.ts';
import { containerProber } from '../../src/probes/probers.ts';
import { timePasses } from '../harness/until.ts';

const PROBES = 500;
const SECONDS = 4;

test('500 probes a second keep their beat', async (t) => {
  let served = 0;
  const server = createServer((_, res) => {
    served++;
    res.end('ok');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', 1024, resolve));
  const { port } = server.address() as AddressInfo;
  const pods = new Map<string, Pod>();
  for (let i = 0; i < PROBES; i++)
    pods.set(`u${i}`, {
      metadata: { name: `p${i}`, namespace: 'n', uid: `u${i}` },
      spec: { containers: [{ name: 'c', readinessProbe: { httpGet: { port, path: '/' }, periodSeconds: 1 } }] },
    });
  const status = (uid: string): PodStatus => ({
    phase: 'Running',
    podIP: '127.0.0.1',
    containerStatuses: [
      {
        name: 'c',
        state: { running: { startedAt: '2026-01-01T00:00:00Z' } },
        lastState: {},
        ready: false,
        started: true,
        restartCount: 0,
        image: '',
        imageID: '',
        containerID: `containerd://${uid}`,
      },
    ],
  });
  const events: string[] = [];
  const manager = new ProbeManager({
    pods: { pod: (uid) => pods.get(uid), status },
    prober: containerProber(systemClock, () => Promise.reject(new Error('no exec here'))),
    onResult: () => undefined,
    events: { pod: (_, __, reason, message) => void events.push(`${reason} ${message}`), node: () => undefined },
    clock: systemClock,
    log: silentLogger,
    metrics: new ProbeMetrics(new Registry()),
  });
  const stop = new AbortController();
  const done = manager.run(stop.signal);
  for (const pod of pods.values()) manager.addPod(pod);
  await timePasses(1500, 'measuring');
  const [from, cpu, begin] = [served, process.cpuUsage(), performance.now()];
  await timePasses(SECONDS * 1000, 'measuring');
  const rate = ((served - from) * 1000) / (performance.now() - begin);
  const used = process.cpuUsage(cpu);
  const share = (used.user + used.system) / 1e3 / (performance.now() - begin);
  const gaps = [...pods.keys()].flatMap((uid) => {
    const runs = manager.history(podUid(uid))[0]?.runs ?? [];
    return runs.slice(1).map((run, i) => run.atMs - (runs[i]?.atMs ?? 0));
  });
  gaps.sort((a, b) => a - b);
  stop.abort();
  await done;
  server.closeAllConnections();
  server.close();
  const p99 = gaps[Math.floor(gaps.length * 0.99)] ?? 0;
  t.diagnostic(`${rate.toFixed(0)} probes/s, 99% of gaps ≤ ${p99} ms, ${share.toFixed(2)} cores with the server`);
  assert.deepEqual(events, []);
  assert.ok(rate > PROBES * 0.97 && rate < PROBES * 1.1, `${rate} probes/s`);
  // With a period of one second, two between runs of a probe would be a beat lost.
  assert.ok(gaps.length >= PROBES * (SECONDS - 1), `${gaps.length} gaps`);
  assert.ok((gaps.at(-1) ?? 0) < 1950, `${gaps.at(-1)} ms between two runs of a probe`);
});
