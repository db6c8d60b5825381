// Random pods on a scripted runtime whose containers end as they like: syncs never throw, never run a container twice,
// never start a main container before initialisation is over, come to rest, and a kill leaves nothing running.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import fc from 'fast-check';
import { isSidecar, type Pod } from '../core/pod.ts';
import { newestOf, type PodSnapshot } from '../core/snapshot.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import {
  facts,
  fakeCluster,
  fakeInfra,
  mountsFromSpec,
  recordingEvents,
  removerOn,
} from '../../test/golden/fixture.ts';
import { randomPod } from '../../test/golden/random-pods.ts';
import { ScriptedRuntime } from '../../test/golden/scripted-runtime.ts';
import { PodRuntime } from './pod-runtime.ts';
import { randomRuns } from '../../test/harness/random-runs.ts';

const RUNS = randomRuns(150);
const MAX_SYNCS = 60;
const signal = new AbortController().signal;
let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kts-converge-'));
  await writeFile(join(root, 'resolv.conf'), '');
  await writeFile(join(root, 'hosts'), '');
});
after(() => rm(root, { recursive: true, force: true }));

/** Lets time pass while the work goes on. */
async function settled<T>(clock: ManualClock, work: Promise<T>): Promise<T> {
  let done = false;
  const watched = work.finally(() => (done = true));
  while (!done) {
    if (clock.pending > 0) await clock.advance(1000);
    else await new Promise<void>((resolve) => setImmediate(resolve));
  }
  return watched;
}

function checkState(pod: Pod, snapshot: PodSnapshot): void {
  const running = snapshot.containers.filter((c) => c.state === 'running').map((c) => c.name);
  assert.equal(new Set(running).size, running.length, `twice running: ${running.join(' ')}`);
  assert.ok(snapshot.sandboxes.filter((s) => s.ready).length <= 1, 'more than one sandbox');
  const mainStarted = pod.spec.containers.some((c) => newestOf(snapshot, c.name) !== undefined);
  for (const init of mainStarted ? (pod.spec.initContainers ?? []) : []) {
    const seen = newestOf(snapshot, init.name);
    if (isSidecar(init)) assert.ok(seen !== undefined, `${init.name} was skipped`);
    else assert.ok(seen?.state === 'exited' && seen.exitCode === 0, `${init.name} was not done`);
  }
}

type Case = { readonly pod: Pod; readonly exits: Readonly<Record<string, number>> };
const cases: fc.Arbitrary<Case> = fc.record({
  pod: randomPod.map((pod) => {
    const { deletionTimestamp: _, ...metadata } = pod.metadata;
    return { ...pod, metadata };
  }),
  exits: fc.dictionary(fc.constantFrom('m0', 'm1', 'i0', 'i1', 'i2', 'e0'), fc.constantFrom(0, 0, 1, 3)),
});

async function converge({ pod, exits }: Case): Promise<void> {
  const clock = new ManualClock();
  const scripted = new ScriptedRuntime({ podIp: '10.0.0.1', exits }, clock);
  const runtime = new PodRuntime(
    {
      cri: scripted.cri,
      images: { ensure: async () => ({ imageRef: 'sha' }) },
      volumes: mountsFromSpec(root, pod),
      resources: { cgroupParentOf: () => '/x' },
      remover: removerOn(scripted.cri, root),
      cluster: fakeCluster(),
      events: recordingEvents([]),
      infra: fakeInfra(clock, root),
    },
    facts(root),
  );
  const look = (): PodSnapshot => scripted.snapshot('uid-1', 'random', 'ns');
  const probes = { liveness: () => 'success' as const, startup: () => 'success' as const };
  const restartsAll = JSON.stringify(pod.spec).includes('RestartAllContainers');
  let rested = false;
  for (let i = 0; i < MAX_SYNCS && !rested; i++) {
    const result = await settled(clock, runtime.syncPod({ pod, snapshot: look(), pullSecrets: [], probes }, signal));
    if (!restartsAll) checkState(pod, look());
    // Resting: nothing was done, a wait was named, or the whole pod is over.
    rested = !result.acted || result.retryAt !== undefined || look().sandboxes.every((s) => !s.ready);
  }
  assert.ok(rested || restartsAll, 'never came to rest');
  await settled(clock, runtime.killPod({ pod, snapshot: look() }, signal));
  assert.ok(look().containers.every((c) => c.state !== 'running'));
  assert.ok(look().sandboxes.every((s) => !s.ready));
}

it(`${RUNS} random pods come to rest and to an end`, async () => {
  await fc.assert(fc.asyncProperty(cases, converge), { numRuns: RUNS, seed: 20_260_102 });
});
