// Pods that wait for somebody else keep no other pod from starting: the steps of a start with the runtime in memory. The
// clock of the turns stands still, so that no time limit can help out. And a runtime that waits is asked for more.
// runs: gate
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { uidOf, type Container, type Pod, type PodStatus } from '../../src/core/pod.ts';
import { aborted } from '../../src/lib/abort.ts';
import { systemClock, type Clock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { RuntimePort } from '../../src/pods/runtime-port.ts';
import { StartErrors } from '../../src/pods/start-errors.ts';
import { StartTurns } from '../../src/pods/start-turns.ts';
import { SyncPod } from '../../src/pods/sync-pod.ts';
import { PodRuntime } from '../../src/runtime/pod-runtime.ts';
import { FakeCri } from '../fakes/fake-cri.ts';
import { facts, fakeCluster, fakeInfra, mountsFromSpec, recordingEvents, removerOn } from '../golden/fixture.ts';
import { until, untilSeen } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const IMAGE = 'localhost/busybox:latest';
const PODS = 20;
const WITHIN_MS = 120_000;
const AT_ONCE = 4;

let root = '';
const fake = new FakeCri();
const stop = new AbortController();
before(async () => {
  root = temporaryFolder('kts-waiting-');
  await writeFile(join(root, 'resolv.conf'), 'nameserver 192.0.2.1\n');
  fake.state.addImage(IMAGE);
  await fake.start();
});
after(async () => {
  stop.abort();
  await fake.stop();
});

const podOf = (name: string, more: Partial<Container> = {}): Pod => ({
  metadata: { name, namespace: 'ns', uid: name },
  spec: {
    restartPolicy: 'Always',
    enableServiceLinks: false,
    containers: [{ name: 'c', image: IMAGE, command: ['sleep', '1000'], ...more }],
  },
});

/** The steps of a start, as the workers take them. */
function starter(fake: FakeCri, clock: Clock, idleShare?: () => number): SyncPod {
  const nothing = (): undefined => undefined;
  const done = (): Promise<void> => Promise.resolve();
  const runtime = new PodRuntime(
    {
      cri: fake.runtime,
      images: {
        ensure: async ({ image, onPull }, signal) => {
          if (image === IMAGE) return { imageRef: image };
          onPull?.();
          await aborted(signal);
          throw signal.reason;
        },
      },
      volumes: mountsFromSpec(root, podOf('any')),
      resources: { cgroupParentOf: () => '/x' },
      remover: removerOn(fake.runtime, root),
      cluster: fakeCluster(),
      events: recordingEvents([]),
      infra: fakeInfra(systemClock, root),
    },
    facts(root),
  );
  const port = new RuntimePort({
    runtime,
    pullSecrets: () => Promise.resolve([]),
    probes: { liveness: nothing, startup: nothing },
    resizes: { synced: nothing },
    observedSandbox: () => ({}) as never, // nobody looks at it here
  });
  const events = recordingEvents([]);
  return new SyncPod({
    observed: {
      get: nothing,
      refresh: () => Promise.resolve(undefined),
      beginMutation: () => nothing,
      isOutdated: () => false,
    },
    status: {
      hasWritten: () => false,
      write: () => Promise.resolve({} as PodStatus),
      sandboxReady: nothing,
      forget: nothing,
    } as never,
    startErrors: new StartErrors(),
    prerequisites: {
      awaitMirror: done,
      networkProblem: nothing,
      registerObjects: nothing,
      cgroupExists: () => Promise.resolve(true),
      ensureCgroup: done,
      keepMirror: nothing,
      ensureDirectories: done,
      mountVolumes: done,
      volumesBlocked: () => new Promise(nothing),
      addProbes: nothing,
    },
    runtime: port,
    turns: new StartTurns(clock, { atOnce: AT_ONCE, ...(idleShare === undefined ? {} : { idleShare }) }),
    adoptions: new StartTurns(clock, { atOnce: AT_ONCE }),
    events,
    rejecting: { events, status: { set: (_pod, status) => status }, log: silentLogger },
    clock,
  });
}

const rows: readonly [what: string, bad: Partial<Container>][] = [
  ['a post-start command that never ends', { lifecycle: { postStart: { exec: { command: ['hang'] } } } }],
  ['a post-start hook that sleeps', { lifecycle: { postStart: { sleep: { seconds: 3600 } } } }],
  ['a registry that does not answer', { image: 'registry.invalid/slow:1' }],
];
for (const [number, [what, bad]] of rows.entries())
  it(`${PODS} pods wait for ${what}: another starts`, async () => {
    fake.interfere = async (verb, request, signal) => {
      if (verb === 'ExecSync' && (request as { cmd: string[] }).cmd[0] === 'hang') await aborted(signal);
    };
    const sync = starter(fake, new ManualClock());
    const waiting = Array.from({ length: PODS }, (_, i) => sync.sync(podOf(`bad-${number}-${i}`, bad), stop.signal));
    for (const one of waiting) one.catch(() => undefined); // ends with the test
    const good = podOf(`good-${number}`);
    await sync.sync(good, stop.signal);
    const { containers } = await fake.runtime.listContainers({}, stop.signal);
    assert.ok(containers.some((c) => c.labels['io.kubernetes.pod.uid'] === uidOf(good)));
    await until(
      'all others got as far',
      async () => {
        const { items } = await fake.runtime.listPodSandbox({}, stop.signal);
        return items.filter((s) => s.metadata?.name.startsWith(`bad-${number}-`)).length === PODS;
      },
      WITHIN_MS,
    );
  });

// CRI-O 1.36 takes half a second for a sandbox, most of it waiting for the network: a burst of 18 pods took twice the time
// that a kubelet without turns needs.
for (const { what, idle, most } of [
  { what: 'an idle machine asks for more at a time', idle: 1, most: 4 * AT_ONCE },
  { what: 'a busy machine does not', idle: 0, most: AT_ONCE },
])
  it(`18 pods at once on a runtime that waits as CRI-O does: ${what}`, async () => {
    const crio = new FakeCri({ ways: 'cri-o' });
    crio.state.addImage(IMAGE);
    await crio.start();
    const network = Promise.withResolvers<void>();
    let [now, seen] = [0, 0];
    crio.interfere = async (verb) => {
      if (verb !== 'RunPodSandbox') return;
      seen = Math.max(seen, ++now);
      await network.promise;
      now--;
    };
    try {
      const clock = new ManualClock();
      const sync = starter(crio, clock, () => idle);
      const burst = Array.from({ length: 18 }, (_, i) => sync.sync(podOf(`burst-${i}`), stop.signal));
      // Within three seconds: no turn is given up for its length alone.
      for (let ms = 0; ms < 3000; ms += 250) await clock.advance(250);
      await untilSeen(
        `${most} sandboxes are being made`,
        () => seen,
        (got) => got >= most,
        WITHIN_MS,
      );
      network.resolve();
      await Promise.all(burst);
      assert.deepEqual([seen, crio.state.containers.size], [most, 18]);
    } finally {
      await crio.stop();
    }
  });
