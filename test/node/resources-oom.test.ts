// A real out-of-memory kill: found in the kernel's messages, with pod, container and the limit that was hit.
// runs: gate
// shows: log rotation, container garbage collection, OOM events
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { systemClock, type Clock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { OomWatcher, type ContainerOom } from '../../src/oom/oom-watcher.ts';
import { untilSeen } from '../harness/until.ts';
import { openTestCgroup, type TestCgroup } from './resources-cgroup.ts';

const { signal } = new AbortController();
const ID = 'c8abb30925ceee6423714412af39faac0cfdf1d58c40a691d62934a3156836ec';
const HOG = ['/bin/sh', '-c', 'x=xxxxxxxxxxxxxxxx; while :; do x=$x$x; done'];

/** The kernel's messages name cgroups and processes as the first namespaces do, which have this number everywhere. */
const skip =
  readlinkSync('/proc/self/ns/cgroup') === 'cgroup:[4026531835]'
    ? false
    : 'the kernel names cgroups otherwise than this namespace does';

let box: TestCgroup;
before(async () => {
  box = await openTestCgroup('oom');
});
after(() => box.close());

for (const level of ['container', 'pod'] as const)
  test(`a kill at the limit of the ${level} is reported with that limit`, { skip }, async () => {
    const uid = `11111111-2222-3333-4444-55555555${level === 'pod' ? '0001' : '0002'}`;
    const podPath = box.at('kubepods', `pod${uid}`);
    const containerPath = `${podPath}/${ID}`;
    const small = { memoryBytes: 16 * 2 ** 20 };
    await box.cgroups.create(podPath, level === 'pod' ? small : {}, signal);
    await box.files.create(containerPath, level === 'container' ? small : {}, signal);
    const memoryEventsPath =
      box.layout.version === 2 ? join(box.layout.mountPoint, box.at('kubepods'), 'memory.events') : undefined;
    const seen: ContainerOom[] = [];
    const events: string[] = [];
    // Messages from before its first rest are not the watcher's.
    const resting = Promise.withResolvers<void>();
    const clock: Clock = {
      ...systemClock,
      after: (ms, fn) => {
        resting.resolve();
        return systemClock.after(ms, fn);
      },
    };
    const watcher = new OomWatcher(
      {
        pods: {
          // The kernel's messages are about the whole machine.
          pod: (of) =>
            of === uid ? { metadata: { name: 'p', uid }, spec: { containers: [{ name: 'c' }] } } : undefined,
          containerName: () => 'c',
        },
        events: {
          pod: (_, type, reason, message, o) => void events.push(`${type} ${reason} ${o?.fieldPath} ${message}`),
          node: (_, reason) => void events.push(reason),
        },
        onContainerOom: (oom) => void (oom.podUid === uid && seen.push(oom)),
        clock,
        log: silentLogger,
      },
      { kmsgPath: '/dev/kmsg', mayBeClosed: false, memoryEventsPath },
    );
    const stop = new AbortController();
    const done = watcher.run(stop.signal);
    await resting.promise;
    const hog = await box.spawnIn(containerPath, HOG);
    await once(hog, 'exit');
    // On v2 the kernel itself tells; on v1 it is the end of the container.
    if (memoryEventsPath === undefined) watcher.lookSoon();
    await untilSeen(
      'the kill is told',
      () => seen,
      (got) => got.length > 0,
    );
    stop.abort();
    await done;
    assert.deepEqual(seen, [
      {
        cgroupPath: containerPath,
        podUid: uid,
        containerId: ID,
        pid: hog.pid,
        process: 'sh',
        limit: { path: level === 'pod' ? podPath : containerPath, level },
      },
    ]);
    assert.deepEqual(events, [
      `Warning OOMKilling spec.containers{c} Process sh (pid ${hog.pid}) was killed: the ${level}'s memory limit was exhausted`,
    ]);
  });
