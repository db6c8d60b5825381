// Runs on the simulated machine, one after the other: what came of each, its trace, a shrunken failure. Started by driver.ts.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { durationMs } from '../../src/core/duration.ts';
import { argsOf, REGRESSIONS } from './regressions.ts';
import { simulate, type Outcome, type RunOptions } from './run.ts';
import { shrink } from './shrink.ts';
import { drawProfile, PARTS, type Action, type Mix, type Part } from './workload/actions.ts';

const OPTIONS = {
  seed: { type: 'string', default: '1' },
  runs: { type: 'string', default: '1' },
  /** Of processor time: seeds one after the other until it is used up, instead of so many runs. */
  seconds: { type: 'string' },
  until: { type: 'string', default: '3h' },
  /** Ends the run early: what happens is drawn for the time until `--until`. */
  stop: { type: 'string' },
  pods: { type: 'string', default: '20' },
  /** Of kinds of pods, lives and faults. */
  mix: { type: 'string', default: 'even' },
  /** Of a pod, on average; drawn from the seed otherwise. */
  life: { type: 'string' },
  /** Of pods, such as `long,job`; all of them otherwise. */
  kinds: { type: 'string' },
  /** Parts of the world beyond the plain node, such as `stale`; see PARTS. */
  with: { type: 'string', default: '' },
  'fault-every': { type: 'string' },
  /** No faults. */
  calm: { type: 'boolean', default: false },
  /** The life of each pod, as text and as a picture. */
  trace: { type: 'boolean', default: false },
  /** Every request, call and action. */
  events: { type: 'boolean', default: false },
  /** Of the agent's log. */
  verbosity: { type: 'string', short: 'v', default: '0' },
  /** As JSON, instead of those drawn from the seed. */
  actions: { type: 'string' },
  /** Cut a failing run down. */
  shrink: { type: 'boolean', default: false },
  /** A bug of `planted.ts`; see register.ts. */
  plant: { type: 'string', default: '' },
  /** The runs of `regressions.ts`, each with its own arguments, instead of any other. */
  regressions: { type: 'boolean', default: false },
} as const;

const valuesOf = (args: readonly string[]) => parseArgs({ args: [...args], options: OPTIONS }).values;
type Values = ReturnType<typeof valuesOf>;
const values = valuesOf(process.argv.slice(2));

const SHRINK_RUNS = 200;
const { realCpuUsage } = process as unknown as { realCpuUsage: () => { user: number; system: number } };

function partsOf(text: string): readonly Part[] {
  return text.split(',').flatMap((name) => {
    const part = PARTS.find((known) => known === name);
    if (part === undefined && name !== '') throw new Error(`no part of the world is called ${name}`);
    return part ?? [];
  });
}

function optionsOf(values: Values, seed: number): RunOptions {
  const drawn = drawProfile(seed, durationMs(values.until), Number(values.pods), values.mix as Mix);
  const { faultEveryMs, ...steady } = drawn;
  const every = values['fault-every'] === undefined ? faultEveryMs : durationMs(values['fault-every']);
  return {
    seed,
    ...(values.actions === undefined ? {} : { actions: JSON.parse(values.actions) as Action[] }),
    ...(values.stop === undefined ? {} : { stopMs: durationMs(values.stop) }),
    profile: {
      ...steady,
      ...(values.kinds === undefined ? {} : { kinds: values.kinds.split(',') }),
      also: partsOf(values.with),
      ...(values.life === undefined ? {} : { lifeMs: durationMs(values.life) }),
      ...(values.calm || every === undefined ? {} : { faultEveryMs: every }),
    },
  };
}

function report(o: Outcome, cpuSeconds: number): void {
  const hours = (o.simulatedMs / 3_600_000).toFixed(2);
  const speed = Math.round(o.simulatedMs / 1000 / Math.max(cpuSeconds, 0.001));
  const what = `${hours} h, up to ${o.mostPods} pods, ${o.steps} events, ${speed} × real time`;
  console.log(`seed ${o.seed}: ${what}, digest ${o.digest}`);
  for (const { invariant, atMs, text } of o.violations)
    console.log(`  VIOLATED at ${(atMs / 1000).toFixed(1)} s: ${invariant}: ${text}`);
}

function show({ seed, lives }: Outcome): void {
  console.log(lives.text());
  const file = `simulation-${seed}.svg`;
  writeFileSync(file, lives.svg());
  console.log(`the picture is ${file}`);
}

/** The shortest list of actions that still violates the same, as a row to be pasted into `regressions.ts`. */
async function cutDown(o: Outcome): Promise<void> {
  const [first] = o.violations;
  if (first === undefined) return;
  const options = optionsOf(values, o.seed);
  const stopMs = Math.ceil(2 * first.atMs + 300_000);
  const before = o.actions.filter(({ atMs }) => atMs <= first.atMs);
  const fails = async (actions: readonly Action[]): Promise<boolean> => {
    const { violations } = await simulate({ ...options, stopMs, actions });
    return violations.some(({ invariant }) => invariant === first.invariant);
  };
  const kept = await shrink(before, fails, SHRINK_RUNS);
  const args = [`--seed=${o.seed}`, `--until=${values.until}`, `--stop=${Math.ceil(stopMs / 1000)}s`];
  console.log(`  ${kept.length} of ${before.length} actions suffice; for regressions.ts:`);
  console.log(
    `  {\n    bug: '${first.invariant}',\n    args: [${args.map((a) => `'${a}'`).join(', ')}],\n    actions: [`,
  );
  for (const action of kept) console.log(`      ${JSON.stringify(action)},`);
  console.log('    ],\n  },');
}

/** Whether there is one more after so many: one there is in any case. */
function goesOn(runs: number): boolean {
  if (values.seconds === undefined) return runs < Number(values.runs);
  const { user, system } = realCpuUsage();
  return runs === 0 || (user + system) / 1e6 < Number(values.seconds);
}

/** Whether it was clean. */
async function runOnce(options: RunOptions): Promise<boolean> {
  const began = realCpuUsage().user;
  const outcome = await simulate({
    ...options,
    verbosity: Number(values.verbosity),
    ...(values.events ? { onTrace: (line: string) => console.log(line) } : {}),
    ...(values.verbosity === '0' ? {} : { onLog: (line: string) => console.log(`    ${line.trimEnd()}`) }),
  });
  report(outcome, (realCpuUsage().user - began) / 1e6);
  if (values.trace) show(outcome);
  const isClean = outcome.violations.length === 0;
  if (!isClean && values.shrink) await cutDown(outcome);
  return isClean;
}

let failed = 0;
if (values.regressions)
  for (const regression of REGRESSIONS) {
    const own = valuesOf(argsOf(regression));
    if (!(await runOnce(optionsOf(own, Number(own.seed))))) failed++;
  }
else for (let run = 0; goesOn(run); run++) if (!(await runOnce(optionsOf(values, Number(values.seed) + run)))) failed++;
process.exitCode = failed > 0 ? 1 : 0;
