// A node lives through simulated hours in a process of its own: nothing is violated, the same seed gives the same run, and a
// bug that was put in on purpose is found.
//   SIMULATION_SECONDS=60 of processor time for seeds from SIMULATION_SEED on (60 by default, and a fresh seed; 0: none)
//   SIMULATION_PLANTED=1  every planted bug, each within five minutes
// runs: spare time
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { PLANTED } from './planted.ts';
import { argsOf, REGRESSIONS } from './regressions.ts';
import { again, digestOf, limitOf, liveThroughFreshSeeds, MINUTE, run, simulate, violated } from './process.ts';
import { shrink } from './shrink.ts';
import { PARTS } from './workload/actions.ts';

const HERE = import.meta.dirname;
const ASKED = process.env['SIMULATION_SECONDS'];
const SECONDS = Number(ASKED ?? 60);
const ALL_PLANTED = process.env['SIMULATION_PLANTED'] !== undefined;
/** Found within simulated minutes; the others take hours of it. Two more are found in tests of what is made of a failure. */
const SOON = new Set(['time-travel']);

/** What a fresh seed is run with: every part where somebody asks for it, else those with which hundreds found nothing. */
const PARTS_WITH = ASKED === undefined ? 'stale,csi,devices' : PARTS.join();

describe('a simulated node', { concurrency: false }, () => {
  it('lives through faults with every part of the world, twice the same', async (t) => {
    const args = ['--until=12m', '--pods=6', '--life=4m', '--fault-every=2m', `--with=${PARTS.join()}`];
    const first = await simulate(5 * MINUTE, '--seed=20', ...args);
    t.diagnostic(first.text);
    assert.equal(first.code, 0, `${first.text}\n${again(['--seed=20', ...args])}`);
    const second = await simulate(5 * MINUTE, '--seed=19', '--runs=2', ...args);
    assert.equal(second.code, 0, second.text);
    const [, inSequence = ''] = second.text.split('\n');
    assert.equal(inSequence.replace(/\d+ × /, ''), first.text.replace(/\d+ × /, ''), 'whatever ran before it');
    assert.match(digestOf(first), /^[0-9a-f]{16}$/);
  });

  describe('does again what found a bug', () => {
    /** All in one process, each with what it printed: most of a short run is the start of one. */
    let ended: Promise<readonly string[]>;
    before(() => {
      ended = simulate(10 * MINUTE, '--regressions').then(({ text }) => text.split(/^(?=seed )/m));
    });

    for (const [i, regression] of REGRESSIONS.entries())
      it(`has no longer ${regression.bug}`, { timeout: 10 * MINUTE }, async (t) => {
        const args = argsOf(regression);
        const outcomes = await ended;
        const text = outcomes[i] ?? `nothing came of it: ${outcomes.at(-1)}`;
        t.diagnostic(text);
        assert.match(text, new RegExp(`^seed ${/--seed=(\d+)/.exec(args.join(' '))?.[1]}: `), again(args));
        assert.doesNotMatch(text, /VIOLATED/, again(args));
      });
  });

  it('knows where each planted bug goes', async () => {
    for (const [name, { file, find }] of Object.entries(PLANTED))
      assert.ok((await readFile(join(HERE, '../../src', file), 'utf8')).includes(find), `${name}: ${file} has changed`);
  });

  for (const [name, { found, with: part = '' }] of Object.entries(PLANTED))
    it(`finds a planted ${name}`, { skip: !ALL_PLANTED && !SOON.has(name) && 'SIMULATION_PLANTED=1' }, async (t) => {
      const args = ['--seed=1', '--until=6h', '--pods=20', '--life=3m', '--fault-every=1m', `--with=${part}`];
      const outcome = await simulate(5 * MINUTE, ...args, `--plant=${name}`);
      t.diagnostic(outcome.text);
      assert.equal(outcome.code, 1, outcome.text);
      assert.ok(found.includes(violated(outcome)), outcome.text);
    });

  it('cuts a failing run down to a list of actions that fails again', async (t) => {
    const planted = '--plant=early-removal';
    const args = ['--seed=1', '--until=6h', '--pods=20', '--life=3m', '--fault-every=1m', planted];
    const { text } = await simulate(5 * MINUTE, ...args, '--shrink');
    t.diagnostic(text);
    assert.equal(violated({ code: 1, text }), 'still there');
    const actions = text.split('\n').flatMap((line) => /^ +(\{"atMs".*\}),$/.exec(line)?.[1] ?? []);
    assert.ok(actions.length > 0 && actions.length <= 3, text);
    const again = await simulate(5 * MINUTE, '--seed=1', '--stop=10m', `--actions=[${actions.join(',')}]`, planted);
    assert.equal(again.code, 1, again.text);
    assert.equal(violated(again), 'still there');
  });

  it('tells of a failure among many node-days, with the command that runs it again', async (t) => {
    const troubled = ['--pods=20', '--life=3m', '--fault-every=1m', '--plant=lost-wake-up'];
    const days = ['--days=0.002', '--jobs=2', '--seed=1', '--until=30m', ...troubled];
    const { code, text } = await run(5 * MINUTE, [join(HERE, 'driver.ts'), ...days]);
    t.diagnostic(text);
    assert.equal(code, 1, text);
    assert.match(text, /^seeds from 1 on, 30m each$/m);
    assert.match(text, / of 0\.002 node-days, .* [1-9]\d* violated, /);
    const [, first = '', command = ''] =
      /^(seed .*\n {2}VIOLATED .*)[^]*?again: npm run simulate -- (.*) --trace$/m.exec(text) ?? [];
    const again = await run(5 * MINUTE, [join(HERE, 'driver.ts'), ...command.split(' ')]);
    assert.equal(again.code, 1, again.text);
    assert.equal(digestOf(again), digestOf({ code, text: first }));
    assert.equal(violated(again), violated({ code, text: first }));
    assert.ok(PLANTED['lost-wake-up']?.found.includes(violated(again)), again.text);
  });

  it(
    'lives through faults of fresh seeds',
    { skip: SECONDS === 0 && 'SIMULATION_SECONDS', timeout: limitOf(SECONDS) },
    (t) => liveThroughFreshSeeds(t, SECONDS, PARTS_WITH),
  );
});

describe('shrinking', () => {
  const actions = Array.from({ length: 40 }, (_, i) => ({ atMs: i, do: `a${i}` }));

  it('leaves what a failure needs, in its order', async () => {
    const fails = (some: readonly { readonly do: string }[]): Promise<boolean> =>
      Promise.resolve(['a3', 'a17', 'a39'].every((name) => some.some((a) => a.do === name)));
    const kept = await shrink(actions, fails, 1000);
    assert.deepEqual(
      kept.map((a) => a.do),
      ['a3', 'a17', 'a39'],
    );
  });

  it('ends when its runs are used up', async () => {
    let runs = 0;
    await shrink(actions, () => Promise.resolve(++runs % 2 === 0), 10);
    assert.equal(runs, 10);
  });
});
