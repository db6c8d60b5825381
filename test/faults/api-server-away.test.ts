// The API server goes away and comes back, ten times for a moment and once for long, under pods of which some crash: the
// node goes on by itself, nothing is lost or restarted, and afterwards the API server learns everything at once.
// runs: at rest
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { PODS as POD_RESOURCE } from '../../src/kube/resources.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until } from '../harness/until.ts';
import { Fleet, randomFrom } from './fleet.ts';

const PODS = Number(process.env['FAULT_PODS'] ?? 30);
const SHORT = Number(process.env['FAULT_ROUNDS'] ?? 10);
/** Longer than any pause between two attempts of the kubelet, and than its lease. */
const AWAY_MS = Number(process.env['FAULT_AWAY_MS'] ?? 45_000);
/** How much later than usual a pod may be ready: the next attempt to connect, and all that is caught up with beside it. */
const LATER_MS = 3000;
const SLOWER = 3;
const SEED = Number(process.env['SEED'] ?? 1);
const KINDS = ['plain', 'ready', 'plain', 'two', 'plain', 'sidecar', 'plain', 'plain', 'crash', 'plain'];
const never = new AbortController().signal;

describe(`API server away under ${PODS} pods`, () => {
  let node: TestNode;
  let fleet: Fleet;

  before(async () => {
    node = await startNode({ config: 'crashLoopBackOff: {maxContainerRestartPeriod: 2s}' });
    fleet = new Fleet(node);
    fleet.start();
    for (let i = 0; i < PODS; i++) await fleet.create(`p${i}`, KINDS[i % KINDS.length] ?? 'plain', i % 7 === 6);
    await fleet.untilConverged('at first');
  });

  after(async () => {
    await node?.api.start();
    fleet?.stop();
    await node?.stop();
  });

  it(`goes on over ${SHORT} short absences`, async () => {
    const random = randomFrom(SEED);
    const running = await fleet.steadyContainers();
    for (let i = 0; i < SHORT; i++) {
      await node.api.stop();
      await timePasses(random(600), 'an outage');
      await node.api.start();
      await timePasses(random(400), 'another instant');
    }
    await fleet.untilConverged('after short absences');
    await fleet.assertWentOn(running, 'over short absences');
    await fleet.assertNothingTwice();
    assert.deepEqual(fleet.flaps, []);
  });

  it('learns of pods created and deleted between absences', async () => {
    await fleet.create('between', 'plain', false);
    await node.api.stop();
    await node.api.start();
    await fleet.untilConverged('with a new pod');
    await fleet.remove('between');
    await node.api.stop();
    await node.api.start();
    await fleet.untilConverged('without it');
  });

  it(`goes on by itself for ${AWAY_MS / 1000} s, then catches up`, async (t) => {
    const usualMs = await fleet.readyMs('usual');
    const running = await fleet.steadyContainers(new Set(['p0']));
    const restarts = await restartsOf(node);
    const execs = node.cri.counts.get('ExecSync') ?? 0;
    await node.api.stop();
    const gone = performance.now();
    const [victim] = (await fleet.running()).get('p0/main') ?? [];
    fleet.excused.add('p0');
    await node.containerd.runtime.stopContainer({ containerId: victim?.id ?? '', timeout: 0 }, never);
    await until('p0 was restarted without an API server', async () => {
      const [now] = (await fleet.running()).get('p0/main') ?? [];
      return now !== undefined && now.id !== victim?.id;
    });
    await timePasses(Math.max(0, AWAY_MS - (performance.now() - gone)), 'an outage');
    assert.ok((await restartsOf(node)) > restarts + 3, 'crashing containers were restarted meanwhile');
    assert.ok((node.cri.counts.get('ExecSync') ?? 0) > execs + 20, 'probes went on meanwhile');
    await node.api.start();
    // The test's own client backs off as the kubelet's does; how long is no concern here.
    await until('the API server can be reached again', () =>
      node.client.list(POD_RESOURCE, { namespace: 'default' }, never).then(
        () => true,
        () => false,
      ),
    );
    const tookMs = await fleet.readyMs('fresh');
    t.diagnostic(`a pod created when the API server was back was ready after ${tookMs} ms, before after ${usualMs} ms`);
    assert.ok(tookMs < LATER_MS + SLOWER * usualMs, `took ${tookMs} ms, before ${usualMs} ms`);
    await fleet.untilConverged('after the long absence');
    await fleet.assertWentOn(running, 'over the long absence');
    await fleet.assertNothingTwice();
    assert.equal((await fleet.shown('p0'))?.status?.containerStatuses?.[0]?.restartCount, 1);
    assert.deepEqual(fleet.flaps, []);
    assert.deepEqual(fleet.backwards, []);
  });
});

/** How often containers were started again, all in all, as the runtime counts. */
async function restartsOf(node: TestNode): Promise<number> {
  const { containers } = await node.containerd.runtime.listContainers({}, never);
  const attempts = new Map<string, number>();
  for (const { labels, metadata } of containers) {
    const key = `${labels['io.kubernetes.pod.uid']}/${metadata?.name}`;
    attempts.set(key, Math.max(attempts.get(key) ?? 0, metadata?.attempt ?? 0));
  }
  return [...attempts.values()].reduce((sum, n) => sum + n, 0);
}
