// The kubelet is killed at random instants while pods start, restart and stop, and started again at once. After each the
// node is as wanted: nothing runs twice, nothing that ran was restarted, nothing became unready, nothing is left over.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';
import { Fleet, randomFrom } from './fleet.ts';

const KILLS = Number(process.env['FAULT_ROUNDS'] ?? 50);
const SEED = Number(process.env['SEED'] ?? 1);
const SLOTS = 10;
/** Kinds by slot; the first four are static pods. */
const SLOT_KINDS = ['plain', 'ready', 'sidecar', 'crash', 'plain', 'two', 'ready', 'sidecar', 'crash', 'two'];
const never = new AbortController().signal;

describe(`kubelet killed ${KILLS} times (seed ${SEED})`, () => {
  let node: TestNode;
  let fleet: Fleet;
  const random = randomFrom(SEED);
  let made = 0;
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

  async function fill(slot: number): Promise<void> {
    const isStatic = slot < 4;
    const kind = SLOT_KINDS[slot] ?? 'plain';
    // Static pods keep their name: the next of the same name must wait for the last one's end.
    const name = isStatic ? `${kind}-${slot}` : `${kind}-${slot}-${made++}`;
    slots[slot] = name;
    await fleet.create(name, kind, isStatic);
  }

  /** One thing that happens to one pod; says which containers may change because of it. */
  async function act(): Promise<string> {
    const slot = random(SLOTS);
    const name = slots[slot];
    if (name === undefined) {
      await fill(slot);
      return slots[slot] ?? '';
    }
    if (random(3) > 0) {
      slots[slot] = undefined;
      await fleet.remove(name);
      return name;
    }
    fleet.excused.add(name);
    const [victim] = [...(await fleet.running()).entries()].filter(([key]) => key.startsWith(`${name}/`));
    if (victim !== undefined)
      await node.containerd.runtime
        .stopContainer({ containerId: victim[1][0]?.id ?? '', timeout: 0 }, never)
        .catch(() => undefined);
    return name;
  }

  it('starts all kinds of pods', async () => {
    for (let slot = 0; slot < SLOTS; slot++) await fill(slot);
    await fleet.untilConverged('at first');
    await fleet.assertNothingTwice();
  });

  it('is as wanted after every two kills', async (t) => {
    let slowest = { ms: 0, what: '' };
    for (let round = 0; round < KILLS / 2; round++) {
      fleet.excused.clear();
      const troubled = new Set<string>();
      for (let n = 1 + random(3); n > 0; n--) troubled.add(await act());
      await sleep(random(700));
      const running = await fleet.steadyContainers(troubled);
      await node.kubelet.kill('SIGKILL');
      await node.kubelet.start();
      await sleep(random(1500)); // the second one strikes while it takes up what the first one left
      await node.kubelet.kill('SIGKILL');
      await node.kubelet.start();
      const begun = performance.now();
      const what = await fleet.untilConverged(`after round ${round} (seed ${SEED})`);
      const ms = Math.round(performance.now() - begun);
      if (ms > slowest.ms) slowest = { ms, what };
      await fleet.assertNothingTwice();
      await fleet.assertWentOn(running, `over round ${round} (seed ${SEED})`, troubled);
      assert.deepEqual(fleet.flaps, [], `readiness flapped in round ${round} (seed ${SEED})`);
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
    await until(
      'nothing is left',
      async () => {
        const left = await fleet.leftovers();
        last = left.join(', ') || last;
        return left.length === 0;
      },
      20_000,
    ).catch((err: unknown) => {
      throw new Error(`left over: ${last}`, { cause: err });
    });
    t.diagnostic(`left for ${Math.round(performance.now() - begun)} ms: ${last}`);
  });
});
