// The kubelet is killed at random instants while pods start, restart and stop, and started again at once. After each the
// node is as wanted: nothing runs twice, nothing that ran was restarted, nothing became unready, nothing is left over.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startNode, type TestNode } from '../harness/node.ts';
import { timePasses, until } from '../harness/until.ts';
import { Fleet, randomFrom, type RunningContainer } from './fleet.ts';

/** Each is the same thing again at another instant; longer runs are for changes to starting and stopping. */
const KILLS = Number(process.env['FAULT_ROUNDS'] ?? 25);
const SEED = Number(process.env['SEED'] ?? 1);
const SLOTS = 10;
/** Kinds by slot; the first four are static pods. */
const SLOT_KINDS = ['plain', 'ready', 'sidecar', 'crash', 'plain', 'two', 'ready', 'sidecar', 'crash', 'two'];
/** containerd may take half a minute to stop a container in which a probe's command was cut off. */
const never = new AbortController().signal;

describe(`kubelet killed ${KILLS} times (seed ${SEED})`, () => {
  let node: TestNode;
  let fleet: Fleet;
  const random = randomFrom(SEED);
  let made = 0;
  const restarted = new Set<string>();
  const slots: (string | undefined)[] = [];

  before(async () => {
    node = await startNode({
      config: 'crashLoopBackOff: {maxContainerRestartPeriod: 1s}\nfileCheckFrequency: 1s',
    });
    fleet = new Fleet(node);
    fleet.start();
  });

  after(async () => {
    fleet?.stop();
    await node?.stop();
  });

  /** Of pods that were there and that nobody troubled, static ones too: no restart was counted, and none forgotten. */
  function assertCounts(before: ReadonlyMap<string, number>, why: string): void {
    const now = fleet.restartCounts(new Set([...restarted, ...fleet.remade]));
    for (const [key, count] of now) assert.equal(count, before.get(key) ?? count, `restarts of ${key} ${why}`);
  }

  async function fill(slot: number): Promise<void> {
    const isStatic = slot < 4;
    const kind = SLOT_KINDS[slot] ?? 'plain';
    // Static pods keep their name: the next of the same name must wait for the last one's end.
    const name = isStatic ? `${kind}-${slot}` : `${kind}-${slot}-${made++}`;
    slots[slot] = name;
    await fleet.create(name, kind, isStatic);
  }

  /** One thing that happens to one pod: it is made, removed, or one of its containers dies. */
  async function act(removed: Set<string>): Promise<void> {
    const slot = random(SLOTS);
    const name = slots[slot];
    if (name === undefined) return fill(slot);
    if (random(3) > 0) {
      slots[slot] = undefined;
      removed.add(name);
      return fleet.remove(name);
    }
    fleet.excused.add(name);
    restarted.add(name);
    const [victim] = [...(await fleet.running()).entries()].filter(([key]) => key.startsWith(`${name}/`));
    if (victim !== undefined)
      await node.containerd.runtime
        .stopContainer({ containerId: victim[1][0]?.id ?? '', timeout: 0 }, never)
        .catch(() => undefined);
  }

  /** Trouble for some pods, then the blow: amid what the kubelet does about it, or while it takes up its work. */
  async function strike(): Promise<RunningContainer[]> {
    const removed = new Set<string>();
    const startingUp = random(4) === 0;
    if (startingUp) await node.kubelet.kill('SIGTERM');
    for (let n = 1 + random(3); n > 0; n--) await act(removed);
    if (startingUp) await node.kubelet.start();
    await timePasses(random(startingUp ? 1200 : 600), 'another instant');
    const running = await fleet.steadyContainers(removed);
    await node.kubelet.kill('SIGKILL');
    return running;
  }

  it('starts all kinds of pods', async () => {
    for (let slot = 0; slot < SLOTS; slot++) await fill(slot);
    await fleet.untilConverged('at first');
    await fleet.assertNothingTwice();
  });

  it('is as wanted after each kill', async (t) => {
    let slowest = { ms: 0, what: '' };
    for (let kill = 1; kill <= KILLS; kill++) {
      const why = `after kill ${kill} (seed ${SEED})`;
      fleet.excused.clear();
      fleet.remade.clear();
      restarted.clear();
      const counts = fleet.restartCounts();
      const running = await strike();
      const begun = performance.now();
      await node.kubelet.start();
      const what = await fleet.untilConverged(why);
      const ms = Math.round(performance.now() - begun);
      if (ms > slowest.ms) slowest = { ms, what };
      await fleet.assertNothingTwice();
      await fleet.assertWentOn(running, why);
      assertCounts(counts, why);
      assert.deepEqual(fleet.flaps, [], `readiness flapped ${why}`);
    }
    t.diagnostic(`slowest: ${slowest.ms} ms, at the end ${slowest.what}`);
  });

  it('keeps the node Ready', () => assert.deepEqual(fleet.nodeFlaps, []));

  it('counts restarts on, never back', () => assert.deepEqual(fleet.backwards, []));

  it('leaves nothing behind', async (t) => {
    for (const { name } of fleet.wanted()) await fleet.remove(name);
    await fleet.untilConverged('at the end');
    let last = 'nothing';
    const begun = performance.now();
    await until('nothing is left', async () => {
      const left = await fleet.leftovers();
      last = left.join(', ') || last;
      return left.length === 0;
    }).catch((err: unknown) => {
      throw new Error(`left over: ${last}`, { cause: err });
    });
    t.diagnostic(`left for ${Math.round(performance.now() - begun)} ms: ${last}`);
  });
});
