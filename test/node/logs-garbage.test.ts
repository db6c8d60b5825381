// Log rotation under a reader, and garbage collection, on a real containerd.
// runs: gate
// shows: log rotation, container garbage collection, OOM events
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { containerId, podUid } from '../../src/core/ids.ts';
import { GarbageCollector } from '../../src/garbage/collector.ts';
import { ContainerRemover } from '../../src/garbage/container-remover.ts';
import { criGarbage } from '../../src/garbage/cri-garbage.ts';
import { DEFAULT_POLICY } from '../../src/garbage/plan.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { readLogs } from '../../src/logs/read-logs.ts';
import { LogRotation, removeContainerLogs } from '../../src/logs/rotation.ts';
import { startContainerd, type PrivateRuntime } from '../harness/containerd.ts';
import { runPod, type BarePod } from '../harness/pods.ts';
import { timePasses, until } from '../harness/until.ts';

const forever = new AbortController().signal;
const ROTATIONS = 10;
/** Counts lines until somebody makes the file. */
const WRITER = 'i=0; while [ ! -e /ended ]; do echo "line $i"; i=$((i+1)); done; echo end; sleep 1000';

/** Says where a text of counted lines goes wrong. */
function firstDifference(text: string): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line, i) => line !== `line ${i}`);
  return `${lines.length} lines; after "${lines[at - 1]}" comes "${lines[at]}"`;
}

describe('logs and garbage on containerd', () => {
  let containerd: PrivateRuntime;
  before(async () => void (containerd = await startContainerd({ version: '1.6' })));
  after(() => containerd.stop());

  const logPathOf = async (pod: BarePod): Promise<string> => {
    const { status } = await containerd.runtime.containerStatus({ containerId: pod.containerId }, forever);
    return status?.logPath ?? '';
  };

  it('a reader loses no line and gets none twice over many rotations', async () => {
    const pod = await runPod(containerd, 'writes', ['sh', '-c', WRITER]);
    const logPath = await logPathOf(pod);
    const id = containerId(pod.containerId);
    let rotations = 0;
    const rotation = new LogRotation(
      {
        clock: systemClock,
        log: silentLogger,
        runningLogs: () => [{ id, logPath }],
        reopen: async (which, signal) => {
          await containerd.runtime.reopenContainerLog({ containerId: which }, signal);
          rotations++;
        },
      },
      { maxSizeBytes: 50_000, maxFiles: 2 * ROTATIONS, intervalMs: 1000, workers: 1 },
    );
    const passes = (async () => {
      while (rotations < ROTATIONS) {
        await rotation.pass(forever);
        await timePasses(10, 'another instant');
      }
      const command = { containerId: pod.containerId, cmd: ['touch', '/ended'], timeout: 30 };
      await containerd.runtime.execSync(command, forever);
    })();
    let text = '';
    for await (const chunk of readLogs(logPath, { follow: true, clock: systemClock }, () => true, forever)) {
      text += chunk.toString();
      if (text.endsWith('\nend\n')) break;
    }
    await passes;
    const counted = text.slice(0, -'\nend\n'.length);
    const wanted = counted.split('\n').map((_, i) => `line ${i}`);
    assert.ok(counted === wanted.join('\n'), firstDifference(counted));
    // What is just being compressed is there twice for a moment.
    const files = readdirSync(dirname(logPath)).map((name) => name.replace(/(\.gz)?(\.tmp)?$/, ''));
    assert.equal(new Set(files).size, ROTATIONS + 1, files.join(' '));
    await containerd.runtime.stopContainer({ containerId: pod.containerId, timeout: 0 }, forever);
  });

  it('dead pods leave nothing, running ones stay', async () => {
    const dead = await runPod(containerd, 'dead', ['true']);
    const alive = await runPod(containerd, 'alive', ['sleep', '1000']);
    const logPath = await logPathOf(dead);
    const podLogs = join(containerd.root, 'gc-pods');
    const containerLogs = join(containerd.root, 'gc-containers');
    for (const path of [join(podLogs, `ns_dead_${dead.uid}`), containerLogs]) mkdirSync(path, { recursive: true });
    symlinkSync(logPath, join(containerLogs, `x-${dead.containerId}.log`));
    const collector = new GarbageCollector(
      {
        clock: systemClock,
        log: silentLogger,
        runtime: criGarbage(containerd.runtime, { whileRemoving: (_id, removal) => removal }),
        pods: { contentRemovable: (uid) => uid !== podUid(alive.uid), runtimeRemovable: () => false },
        remover: new ContainerRemover(
          {
            runtime: criGarbage(containerd.runtime, { whileRemoving: (_id, removal) => removal }),
            removeLogs: removeContainerLogs,
            postStop: () => undefined,
          },
          { containerLogs },
        ),
        sourcesReady: () => true,
        events: { node: () => undefined },
      },
      { policy: DEFAULT_POLICY, everyMs: 60_000, podLogs, containerLogs },
    );
    await until('the container is dead', async () => {
      const { status } = await containerd.runtime.containerStatus({ containerId: dead.containerId }, forever);
      return status?.state === 2;
    });
    await containerd.runtime.stopPodSandbox({ podSandboxId: dead.sandboxId }, forever);
    const result = await collector.collect({ allUnused: false }, forever);
    assert.equal(result.failed, 0);
    const { containers } = await containerd.runtime.listContainers({}, forever);
    const ids = containers.map((c) => c.id);
    assert.ok(ids.includes(alive.containerId));
    assert.ok(!ids.includes(dead.containerId));
    const { items } = await containerd.runtime.listPodSandbox({}, forever);
    assert.ok(items.every((s) => s.id !== dead.sandboxId));
    assert.ok(items.some((s) => s.id === alive.sandboxId));
    assert.ok(!existsSync(logPath));
    assert.deepEqual(readdirSync(podLogs), []);
    assert.deepEqual(readdirSync(containerLogs), []);
  });
});
