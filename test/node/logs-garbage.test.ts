// Log rotation under a reader, and garbage collection, on a real containerd.
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
import { startContainerd, type PrivateContainerd } from '../harness/containerd.ts';
import { runPod, type BarePod } from '../harness/pods.ts';
import { timePasses, until } from '../harness/until.ts';

const forever = new AbortController().signal;
const LINES = 40_000;

/** Says where a text of counted lines goes wrong. */
function firstDifference(text: string): string {
  const lines = text.split('\n');
  const at = lines.findIndex((line, i) => line !== `line ${i}`);
  return `${lines.length - 1} lines; after "${lines[at - 1]}" comes "${lines[at]}"`;
}

describe('logs and garbage on containerd', () => {
  let containerd: PrivateContainerd;
  before(async () => void (containerd = await startContainerd({ version: '1.6' })));
  after(() => containerd.stop());

  const logPathOf = async (pod: BarePod): Promise<string> => {
    const { status } = await containerd.runtime.containerStatus({ containerId: pod.containerId }, forever);
    return status?.logPath ?? '';
  };

  it('a reader loses no line and gets none twice over many rotations', async () => {
    const script = `i=0; while [ $i -lt ${LINES} ]; do echo "line $i"; i=$((i+1)); done; sleep 1000`;
    const pod = await runPod(containerd, 'writes', ['sh', '-c', script]);
    const logPath = await logPathOf(pod);
    const id = containerId(pod.containerId);
    const rotation = new LogRotation(
      {
        clock: systemClock,
        log: silentLogger,
        runningLogs: () => [{ id, logPath }],
        reopen: async (which, signal) =>
          void (await containerd.runtime.reopenContainerLog({ containerId: which }, signal)),
      },
      { maxSizeBytes: 50_000, maxFiles: 20, intervalMs: 1000, workers: 1 },
    );
    const stopper = new AbortController();
    let rotating = true;
    const passes = (async () => {
      while (rotating) {
        await rotation.pass(forever);
        await timePasses(10, 'another instant');
      }
    })();
    let text = '';
    for await (const chunk of readLogs(logPath, { follow: true, clock: systemClock }, () => true, stopper.signal)) {
      text += chunk.toString();
      if (text.endsWith(`line ${LINES - 1}\n`)) break;
    }
    rotating = false;
    await passes;
    const wanted = Array.from({ length: LINES }, (_, i) => `line ${i}\n`).join('');
    assert.ok(text === wanted, firstDifference(text));
    // What is just being compressed is there twice for a moment.
    const files = readdirSync(dirname(logPath)).filter((name) => !name.endsWith('.tmp'));
    assert.ok(files.length > 3 && files.length <= 20, files.join(' '));
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
    await until(
      'the container is dead',
      async () => {
        const { status } = await containerd.runtime.containerStatus({ containerId: dead.containerId }, forever);
        return status?.state === 2;
      },
      5000,
    );
    await containerd.runtime.stopPodSandbox({ podSandboxId: dead.sandboxId }, forever);
    const result = await collector.collect({ allUnused: false }, forever);
    assert.equal(result.failed, 0);
    const { containers } = await containerd.runtime.listContainers({}, forever);
    assert.deepEqual(
      containers.map((c) => c.id),
      [alive.containerId],
    );
    const { items } = await containerd.runtime.listPodSandbox({}, forever);
    assert.ok(items.every((s) => s.id !== dead.sandboxId));
    assert.ok(items.some((s) => s.id === alive.sandboxId));
    assert.ok(!existsSync(logPath));
    assert.deepEqual(readdirSync(podLogs), []);
    assert.deepEqual(readdirSync(containerLogs), []);
  });
});
