// `npm run simulate`: starts runs on the simulated machine (main.ts) in processes of their own. One run by default;
// `--days 1000 --jobs 2` many of them side by side, `--plant all` one with each planted bug. See docs/SIMULATION.md.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { durationMs } from '../../src/core/duration.ts';
import { PLANTED } from './planted.ts';

const HERE = import.meta.dirname;
// Every run is a process of its own that loads the same code: types are stripped and code is compiled once.
process.env['NODE_COMPILE_CACHE'] ??= join(HERE, '../../node_modules/.cache/kubelet-ts');
const NODE_ARGS = [
  '--disable-warning=ExperimentalWarning',
  '--import',
  join(HERE, 'register.ts'),
  join(HERE, 'main.ts'),
];

const { values, tokens } = parseArgs({
  options: {
    days: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    seed: { type: 'string' },
    until: { type: 'string' },
    plant: { type: 'string' },
    help: { type: 'boolean' },
  },
  strict: false,
  tokens: true,
});
const OWN = new Set(['days', 'jobs', 'seed', 'plant', 'until']);
/** What is not for the driver, as it was given. */
const passed = process.argv.slice(2).filter((_, i) => !isOwn(i));

function isOwn(index: number): boolean {
  return tokens.some(
    (t) =>
      t.kind === 'option' &&
      OWN.has(t.name) &&
      (t.index === index || (t.inlineValue === false && t.value !== undefined && t.index + 1 === index)),
  );
}

/** Runs one process; tells each line; answers with its exit code. */
function run(args: readonly string[], onLine: (line: string) => void): Promise<number> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...NODE_ARGS, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    createInterface({ input: child.stdout }).on('line', onLine);
    child.on('close', (code) => resolve(code ?? 99));
  });
}

type RunEnd = { readonly seed: string; readonly hours: number; isViolated: boolean; readonly lines: string[] };

/** What a process prints, run by run: a line for each, and what was violated below it. */
class RunLines {
  readonly #onEnd: (ended: RunEnd) => void;
  #last: RunEnd | undefined;
  violated = 0;

  constructor(onEnd: (ended: RunEnd) => void) {
    this.#onEnd = onEnd;
  }

  take(line: string): void {
    const [, seed, hours] = /^seed (\d+): ([\d.]+) h,/.exec(line) ?? [];
    if (seed !== undefined) {
      this.end();
      this.#last = { seed, hours: Number(hours), isViolated: false, lines: [] };
    }
    this.#last?.lines.push(line);
    if (this.#last !== undefined && line.includes('VIOLATED at')) this.#last.isViolated = true;
  }

  end(): void {
    const last = this.#last;
    this.#last = undefined;
    if (last === undefined) return;
    if (last.isViolated) this.violated++;
    this.#onEnd(last);
  }
}

const seconds = (): number => performance.now() / 1000;

/** So many runs that fail are enough to look at. */
const MOST_FAILED = 10;
/** Runs of one process, at most: from the second on the code is compiled. */
const RUNS_EACH = 8;

/** Runs of six hours, one after the other on each core, until so many days are done. */
async function manyDays(days: number): Promise<number> {
  const first = Number(values.seed ?? Date.now() % 1_000_000);
  const until = String(values.until ?? '6h');
  const began = seconds();
  const planted = values.plant === undefined ? [] : [`--plant=${String(values.plant)}`];
  let [hours, failed, next, told] = [0, 0, first, 0];
  const progress = (): void => {
    const elapsed = seconds() - began;
    const rate = hours / 24 / elapsed;
    const left = Math.max(0, days - hours / 24) / Math.max(rate, 1e-9);
    const speed = Math.round((hours * 3600) / elapsed);
    console.log(
      `${(hours / 24).toFixed(2)} of ${days} node-days, ${speed} × real time, ${failed} violated, ${Math.round(left / 60)} min left`,
    );
    told = seconds();
  };
  const runs = Math.ceil((days * 24 * 3_600_000) / durationMs(until));
  const runsEach = Math.max(1, Math.min(RUNS_EACH, Math.ceil(runs / Number(values.jobs))));
  const worker = async (): Promise<void> => {
    while (hours < days * 24 && failed < MOST_FAILED) {
      const seeds = Array.from({ length: runsEach }, () => next++);
      const mix = [`--until=${until}`, '--mix=production', '--pods=0', ...planted, ...passed];
      const ended = new RunLines((o) => {
        hours += o.hours;
        if (o.isViolated) {
          failed++;
          console.log(
            [...o.lines, `  again: npm run simulate -- --seed=${o.seed} ${mix.join(' ')} --trace`].join('\n'),
          );
        }
        if (seconds() - told > 10) progress();
      });
      const code = await run([`--seed=${seeds[0]}`, `--runs=${runsEach}`, ...mix], (line) => ended.take(line));
      ended.end();
      if (code === 0 || ended.violated > 0) continue;
      failed++;
      console.log(
        `a process ended with ${code}: npm run simulate -- --seed=${seeds[0]} --runs=${runsEach} ${mix.join(' ')}`,
      );
    }
  };
  console.log(`seeds from ${first} on, ${until} each`);
  await Promise.all(Array.from({ length: Number(values.jobs) }, worker));
  progress();
  return failed === 0 ? 0 : 1;
}

/** Every planted bug must be found, by one of the invariants it names. */
async function allPlanted(): Promise<number> {
  let missed = 0;
  const row = (...cells: string[]): void => console.log(`| ${cells.join(' | ')} |`);
  row('planted', 'noticed by', 'after (simulated)', 'took');
  row('---', '---', '---', '---');
  for (const [name, { found, with: part = '' }] of Object.entries(PLANTED)) {
    const began = seconds();
    let [invariant, after, hasRun] = ['nothing', '-', true];
    for (let seed = Number(values.seed ?? 1); hasRun && invariant === 'nothing' && seconds() - began < 300; seed++) {
      hasRun = false;
      const args = [`--seed=${seed}`, '--until=6h', '--pods=20', '--life=3m', '--fault-every=1m', `--with=${part}`];
      await run([...args, `--plant=${name}`, ...passed], (line) => {
        hasRun ||= line.startsWith('seed ');
        const seen = /VIOLATED at ([\d.]+) s: ([^:]+):/.exec(line);
        if (seen === null || invariant !== 'nothing') return;
        [after, invariant] = [`${Math.round(Number(seen[1]) / 60)} min`, seen[2] ?? ''];
      });
    }
    if (!found.includes(invariant)) missed++;
    row(name, invariant, after, `${Math.round(seconds() - began)} s`);
  }
  return missed === 0 ? 0 : 1;
}

const USAGE = `npm run simulate -- [options]: the whole agent on a simulated machine (docs/SIMULATION.md)
  --seed 17 --until 3h      one run, faults on       --runs 100 | --seconds 60   seeds one after the other
  --pods 20 --life 3m       how busy the node is     --fault-every 2m | --calm   how troubled it is
  --with stale,csi          parts of the world       --kinds long,job            kinds of pods
  --mix production          mostly long lives        --stop 20m                  ends early, the same until then
  --trace --events -v 4     what happened            --shrink                    cut a failing run down
  --days 1000 --jobs 2      many node-days           --plant NAME | all          a bug put in on purpose
  --regressions             the runs that found a bug`;

async function main(): Promise<number> {
  if (values.help === true) {
    console.log(USAGE);
    return 0;
  }
  if (values.days !== undefined) return manyDays(Number(values.days));
  if (values.plant === 'all') return allPlanted();
  const own = [
    ...(values.seed === undefined ? [] : [`--seed=${String(values.seed)}`]),
    ...(values.until === undefined ? [] : [`--until=${String(values.until)}`]),
    ...(values.plant === undefined ? [] : [`--plant=${String(values.plant)}`]),
  ];
  return run([...own, ...passed], (line) => console.log(line));
}

process.exitCode = await main();
