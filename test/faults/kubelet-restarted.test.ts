// A kubelet that was away takes up where the last one stopped: running pods are as ready as they were, ended ones stay
// ended and counted, and what was asked for meanwhile is done.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Pod } from '../../src/core/pod.ts';
import { PODS } from '../../src/kube/resources.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until, untilSeen } from '../harness/until.ts';
import { container } from '../cluster/scene.ts';
import { Fleet, podOf } from './fleet.ts';

const never = new AbortController().signal;
const SLOW_READY = {
  startupProbe: { exec: { command: ['test', '-e', '/tmp/started'] }, periodSeconds: 1, failureThreshold: 1000 },
  readinessProbe: { exec: { command: ['test', '-e', '/tmp/ready'] }, periodSeconds: 600, failureThreshold: 1 },
};
const BECOMES_READY = [
  'sh',
  '-c',
  'touch /tmp/started /tmp/ready; trap "exit 0" TERM; while :; do sleep 1000 & wait $!; done',
];

describe('kubelet restarted', () => {
  let node: TestNode;
  let fleet: Fleet;
  const ended = new Map<string, Pod>();

  const shown = async (name: string): Promise<Pod | undefined> => fleet.shown(name);
  const stateOf = async (name: string): Promise<Pod['status']> => (await shown(name))?.status;
  /** containerd hears up to half a minute late of the end of a container in which an exec was cut off at its beginning. */
  const holdProbes = async (): Promise<() => void> => {
    const letProbesBegin = node.cri.inject({ verb: 'ExecSync', fault: { do: 'hang' } });
    await untilSeen(
      'no probe is under way',
      () => node.cri.underWay('ExecSync'),
      (seen) => seen === 0,
    );
    return letProbesBegin;
  };
  const kill = async (key: string): Promise<void> => {
    const [found] = (await fleet.running()).get(key) ?? [];
    await node.containerd.runtime.stopContainer({ containerId: found?.id ?? '', timeout: 0 }, never);
  };

  before(async () => {
    node = await startNode({ config: 'crashLoopBackOff: {maxContainerRestartPeriod: 1s}' });
    fleet = new Fleet(node);
    fleet.start();
    for (const [name, kind, isStatic] of [
      ['ready', 'ready', false],
      ['sidecar', 'sidecar', false],
      ['static-ready', 'ready', true],
      ['static-sidecar', 'sidecar', true],
      ['dies', 'plain', false],
      ['doomed', 'two', false],
      ['forced', 'plain', false],
      ['leaves', 'plain', true],
    ] as const)
      await fleet.create(name, kind, isStatic);
    for (const [name, code] of [
      ['succeeds', 0],
      ['fails', 3],
    ] as const)
      await create(
        podOf(name, {
          restartPolicy: 'Never',
          containers: [container('main', { command: ['sh', '-c', `exit ${code}`] })],
        }),
      );
    await create(podOf('ends-meanwhile', { restartPolicy: 'Never', containers: [container('main')] }));
    await create(podOf('rarely-asked', { containers: [container('main', { ...SLOW_READY, command: BECOMES_READY })] }));
    await fleet.untilConverged('at first');
    await until('the others are where they should be', async () => {
      const phases = await Promise.all(
        ['succeeds', 'fails', 'ends-meanwhile', 'rarely-asked'].map(async (n) => (await stateOf(n))?.phase),
      );
      const ready = (await stateOf('rarely-asked'))?.containerStatuses?.[0]?.ready === true;
      return ready && phases.join() === 'Succeeded,Failed,Running,Running';
    });
    for (const name of ['succeeds', 'fails']) ended.set(name, (await shown(name)) ?? podOf(name, { containers: [] }));
  });

  after(async () => {
    fleet?.stop();
    await node?.stop();
  });

  const create = (pod: Pod): Promise<Pod> => node.client.create(PODS, { namespace: 'default' }, pod, never);

  it('goes on where the last one stopped', async () => {
    const except = new Set(['dies', 'doomed', 'forced', 'leaves']);
    fleet.excused.add('dies');
    const running = await fleet.steadyContainers(except);
    const before_ = await stateOf('rarely-asked');
    const letProbesBegin = await holdProbes();
    await node.kubelet.kill('SIGKILL');
    letProbesBegin();
    await kill('dies/main');
    await kill('ends-meanwhile/main');
    for (const name of ['doomed', 'leaves']) await fleet.remove(name);
    const forced = fleet.members.get('forced');
    if (forced !== undefined) forced.wanted = false;
    await node.client.delete(PODS, { namespace: 'default', name: 'forced' }, { gracePeriodSeconds: 0 }, never);
    await timePasses(1000, 'an outage');
    await node.kubelet.start();
    await fleet.untilConverged('after the restart');
    await fleet.assertWentOn(running, 'over the restart');
    await fleet.assertNothingTwice();
    assert.deepEqual(fleet.flaps, []);
    assert.deepEqual(fleet.nodeFlaps, []);
    const after_ = await stateOf('rarely-asked');
    assert.deepEqual(after_?.containerStatuses, before_?.containerStatuses, 'ready and started are kept');
    assert.deepEqual(after_?.conditions, before_?.conditions);
  });

  it('counts what ended meanwhile', async () => {
    const dies = (await stateOf('dies'))?.containerStatuses?.[0];
    assert.deepEqual([dies?.restartCount, dies?.lastState.terminated?.exitCode], [1, 137]);
    await untilSeen(
      'it ended',
      async () => (await stateOf('ends-meanwhile'))?.phase,
      (seen) => seen === 'Failed',
    );
    const gone = (await stateOf('ends-meanwhile'))?.containerStatuses?.[0];
    assert.deepEqual([gone?.restartCount, gone?.state.terminated?.exitCode], [0, 137]);
  });

  it('leaves ended pods as they ended', async () => {
    for (const [name, before_] of ended) {
      assert.deepEqual((await shown(name))?.status, before_.status, name);
      const { containers } = await node.containerd.runtime.listContainers(
        { filter: { labelSelector: { 'io.kubernetes.pod.name': name } } },
        never,
      );
      assert.ok(containers.length <= 1, `${name} was run again`);
    }
  });

  it('clears away what nobody wants any more', async () => {
    // Also an exec that the end of its container cuts off is one.
    const letProbesBegin = await holdProbes();
    for (const { name } of fleet.wanted()) await fleet.remove(name);
    for (const name of ['succeeds', 'fails', 'ends-meanwhile', 'rarely-asked'])
      await node.client.delete(PODS, { namespace: 'default', name }, {}, never);
    await node.kubelet.kill('SIGKILL');
    await node.kubelet.start();
    await fleet.untilConverged('at the end');
    letProbesBegin();
    let left: string[] = [];
    await untilSeen(
      'nothing is left',
      async () => (left = await fleet.leftovers()),
      (seen) => seen.length === 0,
    ).catch((err: unknown) => {
      throw new Error(`left over: ${left.join(', ')}`, { cause: err });
    });
    for (const name of ['succeeds', 'fails', 'ends-meanwhile', 'rarely-asked'])
      await untilSeen(
        `${name} is gone`,
        () => shown(name),
        (seen) => seen === undefined,
      );
  });
});
