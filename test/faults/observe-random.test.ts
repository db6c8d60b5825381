// Random lives of pods under random trouble on the way to the runtime: whatever happened, the cache ends as the truth.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { openCri } from '../../src/cri/connection.ts';
import { podUid } from '../../src/core/ids.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcCode } from '../../src/lib/grpc/status.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { Observer } from '../../src/observe/observer.ts';
import { FakeCri } from '../fakes/fake-cri.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { runPod, type BarePod } from '../harness/pods.ts';
import { CriProxy, type Fault } from './cri-proxy.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';

const forever = new AbortController().signal;
const SEEDS = (process.env['SEED'] ?? '1,2,3').split(',').map(Number);

/** Small and reproducible: the seed of a failure is in the test's name. */
function randomFrom(seed: number): (below: number) => number {
  let state = seed * 2654435761;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

const FAULTS: readonly Fault[] = [
  { do: 'error', code: GrpcCode.Internal, message: 'broken' },
  { do: 'error', code: GrpcCode.ResourceExhausted, message: 'too large' },
  { do: 'error', code: GrpcCode.Unavailable, message: 'away' },
  { do: 'loseAnswer', code: GrpcCode.Unknown, message: 'lost' },
  { do: 'delay', ms: 40 },
  { do: 'hang' },
  { do: 'cut' },
];
const VERBS = ['ListContainers', 'ListPodSandbox', 'ContainerStatus', 'PodSandboxStatus', '*'];

describe('observer under random trouble', () => {
  for (const seed of SEEDS)
    it(`seed ${seed}`, async (t) => {
      const random = randomFrom(seed);
      const fake = new FakeCri();
      fake.state.addImage(BUSYBOX_IMAGE);
      await fake.start();
      const proxy = new CriProxy(fake.socketPath);
      await proxy.start();
      const cri = openCri(systemClock, { runtimeEndpoint: proxy.endpoint, imageEndpoint: '', timeoutMs: 1000 });
      const { runtime, channel } = cri;
      const observer = new Observer(
        { runtime, channel, clock: systemClock, log: silentLogger, registry: new Registry() },
        { readDeadlineMs: 100, withoutEventsMs: 50, idleMs: 100, idleMaxMs: 200 },
      );
      const deaths = new Map<string, number>();
      observer.cache.onChange((_, events) => {
        for (const e of events) if (e.type === 'ContainerDied') deaths.set(e.id, (deaths.get(e.id) ?? 0) + 1);
      });
      const stop = new AbortController();
      const running = observer.run(stop.signal);
      t.after(async () => {
        stop.abort();
        await running;
        cri.close();
        await proxy.stop();
        await fake.stop();
      });
      const pods: BarePod[] = [];
      for (let step = 0; step < 120; step++) {
        const pod = pods[random(Math.max(pods.length, 1))];
        const action = random(8);
        if (action < 2 && pods.length < 15) pods.push(await runPod(fake, `p${step}`, ['sleep', '1000']));
        else if (action === 2 && pod !== undefined) fake.state.exit(pod.containerId, random(3));
        else if (action === 3 && pod !== undefined) fake.state.stopSandbox(pod.sandboxId);
        else if (action === 4 && pod !== undefined) fake.state.removeSandbox(pod.sandboxId);
        else if (action === 5) proxy.events = (['duplicate', 'drop', undefined] as const)[random(3)];
        else if (action === 6 && pod !== undefined)
          void observer.cache.refresh(podUid(pod.uid), forever).catch(() => undefined);
        else {
          const [verb, fault] = [VERBS[random(VERBS.length)], FAULTS[random(FAULTS.length)]];
          if (verb !== undefined && fault !== undefined) proxy.inject({ verb, fault, times: 1 + random(3) });
        }
        await timePasses(random(15), 'another instant');
      }
      proxy.lift();
      proxy.events = undefined;
      const truth = (): string =>
        JSON.stringify(
          pods
            .filter((p) => fake.state.sandboxes.has(p.sandboxId))
            .map((p) => describeTruth(fake, p))
            .sort(),
        );
      const seen = (): string =>
        JSON.stringify(
          observer.cache
            .all()
            .map(
              (s) =>
                `${s.name} ${s.sandboxes[0]?.ready} ${s.containers.map((c) => `${c.state} ${c.exitCode}`).join()} ${s.partial ?? ''}`,
            )
            .sort(),
        );
      await until('the cache shows the truth', () => observer.cache.ready && seen() === truth());
      await untilSeen(
        'nobody is set aside',
        () => observer.cache.unreadable(),
        (seen) => seen.length === 0,
      );
      for (const [id, count] of deaths) assert.equal(count, 1, `${id} died ${count} times`);
    });
});

function describeTruth(fake: FakeCri, pod: BarePod): string {
  const states = ['created', 'running', 'exited', 'unknown'];
  const containers = fake.state.containersIn(pod.sandboxId).map((c) => `${states[c.state]} ${c.exitCode}`);
  return `${pod.name} ${fake.state.sandboxes.get(pod.sandboxId)?.ready} ${containers.join()} `;
}
