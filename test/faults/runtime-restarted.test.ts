// containerd is stopped, killed and started again under running pods: all of them are adopted, none is restarted, and
// work resumes within seconds.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ContainerdVersion } from '../harness/containerd-binaries.ts';
import { missingContainerds } from '../harness/containerd-binaries.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until } from '../harness/until.ts';
import { Fleet } from './fleet.ts';

const KINDS = ['plain', 'ready', 'two', 'sidecar', 'plain'];
/** How much later than usual a pod may be ready after the return of the runtime. */
const LATER_MS = 5000;
const SLOWER = 3;
const versions: readonly (readonly [ContainerdVersion, number])[] = [
  ['2.1', 20],
  ['1.6', 6], // tells nothing by CRI events
];
const missing = await missingContainerds(versions.map(([version]) => version));

for (const [version, pods] of versions) {
  const options = missing.has(version) ? { skip: missing.get(version) ?? true } : {};
  describe(`containerd ${version} restarted under ${pods} pods`, options, () => {
    let node: TestNode;
    let fleet: Fleet;

    before(async () => {
      node = await startNode({ containerd: version });
      fleet = new Fleet(node);
      fleet.start();
      for (let i = 0; i < pods; i++) await fleet.create(`p${i}`, KINDS[i % KINDS.length] ?? 'plain', i % 4 === 3);
      await fleet.untilConverged('at first');
    });

    after(async () => {
      fleet?.stop();
      await node?.stop();
    });

    for (const signal of ['SIGTERM', 'SIGKILL'] as const)
      it(`goes on over ${signal}`, async (t) => {
        const usualMs = await fleet.readyMs(`before-${signal.toLowerCase()}`);
        const running = await fleet.steadyContainers();
        await node.containerd.kill(signal);
        await timePasses(signal === 'SIGTERM' ? 0 : 2000, 'an outage');
        await node.containerd.start();
        const tookMs = await fleet.readyMs(`after-${signal.toLowerCase()}`);
        t.diagnostic(`a new pod was ready ${tookMs} ms after containerd answered again, before after ${usualMs} ms`);
        assert.ok(tookMs < LATER_MS + SLOWER * usualMs, `took ${tookMs} ms, before ${usualMs} ms`);
        await fleet.untilConverged(`after ${signal}`);
        await fleet.assertWentOn(running, `over ${signal}`);
        await fleet.assertNothingTwice();
        assert.deepEqual(fleet.flaps, [], 'readiness flapped');
      });

    it('sees what ended meanwhile', async () => {
      const [victim] = (await fleet.running()).get('p0/main') ?? [];
      assert.ok(victim !== undefined);
      fleet.excused.add('p0');
      const { pid } = JSON.parse(await taskInfo(node, victim.id)) as { pid: number };
      await node.containerd.kill('SIGKILL');
      process.kill(pid, 'SIGKILL');
      await timePasses(300, 'an outage');
      await node.containerd.start();
      await until('p0 runs again', async () => {
        const [now] = (await fleet.running()).get('p0/main') ?? [];
        return now !== undefined && now.id !== victim.id;
      });
      await fleet.untilConverged('after the restart');
      const status = (await fleet.shown('p0'))?.status?.containerStatuses?.[0];
      assert.equal(status?.restartCount, 1);
      assert.ok(status.lastState.terminated !== undefined);
    });
  });
}

/** The main process of a container, as the runtime tells. */
async function taskInfo(node: TestNode, id: string): Promise<string> {
  const { info } = await node.containerd.runtime.containerStatus(
    { containerId: id, verbose: true },
    new AbortController().signal,
  );
  return info['info'] ?? '{}';
}
