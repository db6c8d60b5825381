// The observer on real runtimes: with CRI events (2.1), with containerd's own events (1.6), over a runtime restart.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { openCri, type CriConnection } from '../../src/cri/connection.ts';
import { podUid } from '../../src/core/ids.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { Observer } from '../../src/observe/observer.ts';
import { RuntimeHealth } from '../../src/observe/runtime-health.ts';
import { startContainerd, type PrivateRuntime } from '../harness/containerd.ts';
import { missingContainerds } from '../harness/containerd-binaries.ts';
import { removePod, runPod } from '../harness/pods.ts';
import { timePasses, untilSeen } from '../harness/until.ts';

const forever = new AbortController().signal;

const VERSIONS = ['1.6', '2.1'] as const;
const missing = await missingContainerds(VERSIONS);
const HOUR_MS = 3_600_000;
for (const version of VERSIONS) {
  describe(`observer on containerd ${version}`, { skip: missing.get(version) ?? false }, () => {
    let containerd: PrivateRuntime;
    let cri: CriConnection;
    let observer: Observer;
    let health: RuntimeHealth;
    let running: Promise<unknown>;
    const stop = new AbortController();
    const streams: boolean[] = [];

    before(async () => {
      containerd = await startContainerd({ version });
      cri = openCri(systemClock, { runtimeEndpoint: containerd.endpoint, imageEndpoint: '', timeoutMs: 60_000 });
      const common = { clock: systemClock, log: silentLogger };
      // No relist comes before the end of the tests: only events can be the reason for what is seen.
      const rare = {
        withoutEventsMs: HOUR_MS,
        idleMs: HOUR_MS,
        idleMaxMs: HOUR_MS,
        onStream: (live: boolean) => void streams.push(live),
      };
      const { runtime, channel } = cri;
      observer = new Observer({ ...common, runtime, channel, registry: new Registry() }, rare);
      health = new RuntimeHealth({ ...common, runtime: cri.runtime, relist: observer });
      running = Promise.all([observer.run(stop.signal), health.run(stop.signal)]);
      await observer.cache.whenReady(forever);
    });
    after(async () => {
      stop.abort();
      await running;
      cri.close();
      await containerd.stop();
    });

    it('opens the event stream the runtime has', async () => {
      const expected = version === '1.6' ? 'containerd' : 'cri';
      await untilSeen(
        'the stream is open',
        () => observer.stream,
        (seen) => seen === expected,
      );
      await timePasses(1200, 'nothing to happen');
      const opened = streams.filter((live) => live).length;
      assert.deepEqual([observer.stream, opened], [expected, version === '1.6' ? 2 : 1], 'and it stays open');
    });

    it('sees a container die without a relist', async () => {
      const pod = await runPod(containerd, 'dies', ['sh', '-c', 'sleep 0.3; exit 3']);
      const uid = podUid(pod.uid);
      await observer.cache.refresh(uid, forever);
      const died = Promise.withResolvers<void>();
      const off = observer.cache.onChange((who, events) => {
        if (who === uid && events.some((e) => e.type === 'ContainerDied' && e.containerName === 'main')) died.resolve();
      });
      await died.promise;
      off();
      const container = observer.cache.get(uid)?.containers[0];
      assert.equal(container?.state, 'exited');
      assert.equal(container.exitCode, 3);
      assert.equal(observer.cache.get(uid)?.ips.length, 1);
      await removePod(containerd, pod);
      await untilSeen(
        'the pod is gone',
        () => observer.cache.get(uid),
        (seen) => seen === undefined,
      );
    });

    it('sees what others start and stop', async () => {
      const pod = await runPod(containerd, 'foreign', ['sleep', '1000']);
      const uid = podUid(pod.uid);
      const state = (): string | undefined => observer.cache.get(uid)?.containers[0]?.state;
      await untilSeen('started', state, (seen) => seen === 'running');
      await containerd.runtime.stopContainer({ containerId: pod.containerId, timeout: 0 }, forever);
      await untilSeen('stopped', state, (seen) => seen === 'exited');
      await removePod(containerd, pod);
    });

    it('goes on after a restart of the runtime, within 3 s', async () => {
      const pod = await runPod(containerd, 'survivor', ['sleep', '1000']);
      const uid = podUid(pod.uid);
      await observer.cache.refresh(uid, forever);
      const inFlight = cri.runtime.stopContainer({ containerId: pod.containerId, timeout: 20 }, forever);
      const lost = assert.rejects(inFlight, { kind: 'unavailable' });
      await containerd.kill('SIGKILL');
      await lost;
      await assert.rejects(cri.runtime.version({}, forever), { kind: 'unavailable' });
      await health.check(forever);
      await containerd.start();
      assert.equal((await cri.runtime.version({}, forever)).runtimeName, 'containerd');
      await untilSeen(
        'the stream is back',
        () => observer.stream,
        (seen) => seen !== 'none',
      );
      assert.equal((await observer.cache.refresh(uid, forever)).containers[0]?.state, 'running');
      assert.equal((await health.check(forever)).ready, true);
      await removePod(containerd, pod);
      await untilSeen(
        'the pod is gone',
        () => observer.cache.get(uid),
        (seen) => seen === undefined,
      );
    });

    it('reports the runtime healthy', async () => {
      const state = await health.check(forever);
      assert.deepEqual(
        [state.ready, state.networkReady, state.runtimeErrors, state.networkErrors],
        [true, true, [], []],
      );
      assert.equal(state.handlers.length > 0, version === '2.1');
    });
  });
}
