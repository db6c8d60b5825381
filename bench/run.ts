// `npm run bench`: starts what is measured, runs the scenarios, prints the table, keeps the history.
import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { cpus } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ensurePackages, RUNTIME_PACKAGES } from '../scripts/system-packages.ts';
import { remember } from './history.ts';
import { redrawReadme } from './readme.ts';
import { table } from './report.ts';
import { isReached, ratioOf, type Row } from './rows.ts';
import { bursts } from './scenarios/burst.ts';
import { csi } from './scenarios/csi.ts';
import { full, idle } from './scenarios/idle.ts';
import { pinning } from './scenarios/pinning.ts';
import type { Scenario } from './scenarios/scenario.ts';
import { serial } from './scenarios/serial.ts';
import { probes, volumes } from './scenarios/shapes.ts';
import { startUp } from './scenarios/start-up.ts';
import { staticPod } from './scenarios/static-pod.ts';
import { churn, storm } from './scenarios/trouble.ts';
import { countPods } from './counts/counts.ts';
import { countsTable, record, recorded } from './counts/guard.ts';
import { compareDrivers } from './drivers/drivers.ts';
import { manyPods, type ManyOptions } from './many/many.ts';
import { fleetCommand, fleetReport } from './fleet/command.ts';
import { takeTurns, turnsReport } from './turns/turns.ts';
import { soakCommand, soakReport } from './soak/command.ts';
import type { Runtime } from './soak/soak-world.ts';
import { interrupted, loadAverage } from './statistics.ts';
import { tracesIn } from './traces.ts';
import { startWorld, type World } from './world.ts';

const ROOT = join(import.meta.dirname, '..');
const PROFILES = join(import.meta.dirname, 'profiles');
const SCENARIOS: readonly Scenario[] = [
  startUp,
  serial,
  staticPod,
  ...bursts,
  volumes,
  csi,
  probes,
  pinning,
  storm,
  churn,
  idle,
  full,
];
/** Left out of a quick look. */
const LONG: ReadonlySet<string> = new Set(['burst-50', 'burst-100', 'storm', 'full-node']);

const HELP = `Usage: npm run bench [-- scenario… options]

${SCENARIOS.map(({ name, asks }) => `  ${name.padEnd(10)} ${asks}`).join('\n')}

On their own:
  counts     calls, allocations and context switches per start and stop, on a runtime in memory
  drivers    what the systemd driver costs a pod, against cgroupfs, on runtimes in memory (needs dbus-daemon)
  fleet      many kubelets on one API server: what a node costs it, and what happens after an outage (--nodes N)
  many       500 pods on one node, on a runtime in memory: the last 50 against the first, memory, idle CPU, a restart
  turns      CPU per pod started and stopped, fifty at once on a runtime in memory (--against DIST: in turn with another build)
  soak       20,000 pods come and go on a runtime in memory (--containerd: 500 on containerd): nothing may be left
  readme     redraws the tables in README.md and history.svg from history.jsonl

  --quick      fewer pods and rounds, and without ${[...LONG].join(', ')}
  --source     measure the TypeScript as it is instead of the bundle
  --executable measure the single executable
  --cpu-prof   a CPU profile of every kubelet process in bench/profiles
  --heap-prof  what it allocates, likewise
  --trace      where the time goes, from the kubelet's own waterfalls
  --pods N     how many for soak
  --nodes N    how many for fleet
  --rounds N   how many for turns
  --against D  another build for turns: the folder of a bundle
  --record WHY keep the counts as those to compare with, and say why they changed
  --json       only JSON on standard output
`;

type Options = {
  readonly soak: { readonly runtime: Runtime; readonly pods: number } | undefined;
  readonly counts: boolean;
  /** Why the counts on record change; undefined when they stay. */
  readonly record: string | undefined;
  /** How many kubelets. */
  readonly fleet: number | undefined;
  readonly many: boolean;
  readonly turns: { readonly pods: number; readonly rounds: number; readonly against?: string } | undefined;
  readonly drivers: boolean;
  readonly readme: boolean;
  readonly chosen: readonly Scenario[];
  readonly quick: boolean;
  readonly json: boolean;
  readonly nodeOptions: readonly string[];
  readonly trace: boolean;
  readonly form: 'source' | 'bundle' | 'executable';
};

function readOptions(argv: readonly string[]): Options | undefined {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      source: { type: 'boolean' },
      executable: { type: 'boolean' },
      trace: { type: 'boolean' },
      quick: { type: 'boolean' },
      json: { type: 'boolean' },
      'cpu-prof': { type: 'boolean' },
      'heap-prof': { type: 'boolean' },
      containerd: { type: 'boolean' },
      pods: { type: 'string' },
      nodes: { type: 'string' },
      rounds: { type: 'string' },
      against: { type: 'string' },
      record: { type: 'string' },
      help: { type: 'boolean', short: 'h' },
    },
  });
  const [alone] =
    positionals.length === 1
      ? positionals.filter((name) => ['counts', 'drivers', 'soak', 'fleet', 'many', 'turns', 'readme'].includes(name))
      : [];
  const unknown = positionals.filter((name) => name !== alone && !SCENARIOS.some((s) => s.name === name));
  if (values.help === true || unknown.length > 0) return undefined;
  const quick = values.quick === true;
  const wanted = (name: string): boolean =>
    positionals.length > 0 ? positionals.includes(name) : !quick || !LONG.has(name);
  const nodeOptions = [
    ...(values['cpu-prof'] === true ? ['--cpu-prof', `--cpu-prof-dir=${PROFILES}`, '--cpu-prof-interval=500'] : []),
    ...(values['heap-prof'] === true ? ['--heap-prof', `--heap-prof-dir=${PROFILES}`] : []),
  ];
  const form = values.source === true ? 'source' : values.executable === true ? 'executable' : 'bundle';
  const runtime = values.containerd === true ? 'containerd' : 'fake';
  const pods = Number(values.pods ?? (quick ? 600 : runtime === 'fake' ? 20_000 : 500));
  return {
    soak: alone === 'soak' ? { runtime, pods } : undefined,
    counts: alone === 'counts',
    record: values.record,
    fleet: alone === 'fleet' ? Number(values.nodes ?? (quick ? 2 : 5)) : undefined,
    many: alone === 'many',
    turns:
      alone === 'turns'
        ? {
            pods: Number(values.pods ?? 50),
            rounds: Number(values.rounds ?? (quick ? 3 : 6)),
            ...(values.against === undefined ? {} : { against: values.against }),
          }
        : undefined,
    drivers: alone === 'drivers',
    readme: alone === 'readme',
    form,
    trace: values.trace === true,
    chosen: SCENARIOS.filter((s) => wanted(s.name)),
    quick,
    json: values.json === true,
    nodeOptions,
  };
}

const say = (line: string): void => void process.stderr.write(`${line}\n`);

async function measure(world: World, options: Options, command: string, env: NodeJS.ProcessEnv): Promise<Row[]> {
  const rows: Row[] = [];
  for (const scenario of options.chosen) {
    const from = performance.now();
    say(`${scenario.name}: ${scenario.asks}`);
    try {
      const reported = { quick: options.quick, command, env, say: (line: string) => say(`  ${line}`) };
      rows.push(...(await scenario.run(world, reported)));
      say(`  took ${Math.round((performance.now() - from) / 1000)} s`);
    } catch (err) {
      say(`  did not work: ${err instanceof Error ? err.message : String(err)}`);
      process.exitCode = 1;
    }
  }
  return rows;
}

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2));
  if (options === undefined) {
    process.stdout.write(HELP);
    process.exitCode = 2;
    return;
  }
  if (options.readme) return redrawReadme();
  await ensurePackages(RUNTIME_PACKAGES);
  const dist = await mkdtemp('/tmp/kts-bench-dist-');
  try {
    if (options.counts) await runCounts(options);
    else if (options.turns !== undefined) await runTurns(options, options.turns, dist);
    else if (options.many) await runRows(options, dist, manyPods);
    else if (options.drivers) await runRows(options, dist, compareDrivers);
    else if (options.fleet !== undefined) await runFleet(options, options.fleet, dist);
    else await (options.soak === undefined ? run(options, dist) : runSoak(options, options.soak, dist));
  } finally {
    await rm(dist, { recursive: true, force: true });
  }
}

/** What is measured is built afresh, in a place of its own. */
function programOf(form: Options['form'], dist: string): { command: string; env: NodeJS.ProcessEnv } {
  const launcher = join(ROOT, 'bin', 'kubelet');
  if (form === 'source') return { command: launcher, env: { KUBELET_TS_SOURCE: '1' } };
  const args = ['--out', dist, ...(form === 'bundle' ? ['--no-executable'] : [])];
  execFileSync(process.execPath, [join(ROOT, 'scripts', 'build.ts'), ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return form === 'bundle'
    ? { command: launcher, env: { KUBELET_TS_DIST: dist } }
    : { command: join(dist, 'kubelet'), env: {} };
}

async function runSoak(options: Options, what: { runtime: Runtime; pods: number }, dist: string): Promise<void> {
  const { nodeOptions, json, form } = options;
  if (nodeOptions.length > 0) mkdirSync(PROFILES, { recursive: true });
  const machine = { ...processors(), loadBefore: loadAverage() };
  const soaked = await soakCommand({ ...what, ...programOf(form, dist), nodeOptions, machine, say });
  if (soaked.leftovers.length > 0) process.exitCode = 1;
  const text = json
    ? JSON.stringify({ machine, ...soaked }, undefined, 2)
    : `\n${soakReport(what.runtime, what.pods, soaked)}`;
  process.stdout.write(`${text}\n`);
}

/** On the source, as the test does: the bundle allocates less while it loads, and nothing else differs. */
async function runCounts({ json, nodeOptions, record: why }: Options): Promise<void> {
  const before = recorded();
  const counted = await countPods({ ...programOf('source', ''), nodeOptions, pods: 60 });
  if (why !== undefined) record(counted, why);
  process.stdout.write(`${json ? JSON.stringify(counted, undefined, 2) : `\n${countsTable(counted, before)}`}\n`);
}

/** On the runtime in memory. */
async function runRows(
  { form, quick, json, nodeOptions }: Options,
  dist: string,
  measureRows: (options: ManyOptions) => Promise<Row[]>,
): Promise<void> {
  const load = loadAverage();
  const rows = await measureRows({ ...programOf(form, dist), nodeOptions, quick, say });
  const machine = { ...processors(), loadBefore: load, loadAfter: loadAverage() };
  const head = `${machine.cores} cores (${machine.cpu}), runtime in memory, Node ${process.version}, load ${load} before, ${machine.loadAfter} after`;
  process.stdout.write(`${json ? JSON.stringify({ machine, rows }, undefined, 2) : `\n${head}\n\n${table(rows)}`}\n`);
}

async function runTurns(
  { form, json, nodeOptions }: Options,
  turns: NonNullable<Options['turns']>,
  dist: string,
): Promise<void> {
  if (nodeOptions.length > 0) mkdirSync(PROFILES, { recursive: true });
  const builds = await takeTurns({ ...programOf(form, dist), nodeOptions, ...turns, say });
  process.stdout.write(`${json ? JSON.stringify(builds, undefined, 2) : `\n${turnsReport(builds)}`}\n`);
}

async function runFleet({ form, quick, json, nodeOptions }: Options, nodes: number, dist: string): Promise<void> {
  const figures = await fleetCommand({ ...programOf(form, dist), nodeOptions, nodes, quick, say });
  const machine = { ...processors(), load: loadAverage() };
  process.stdout.write(
    `${json ? JSON.stringify({ machine, ...figures }, undefined, 2) : `\n${fleetReport(figures)}`}\n`,
  );
}

const processors = (): { cpu: string; cores: number } => ({ cpu: cpus()[0]?.model.trim() ?? '', cores: cpus().length });

async function run(options: Options, dist: string): Promise<void> {
  const { command, env } = programOf(options.form, dist);
  if (options.nodeOptions.length > 0) mkdirSync(PROFILES, { recursive: true });
  const load = loadAverage();
  const world = await startWorld({
    command,
    env,
    flags: options.trace ? ['-v=4'] : [],
    nodeOptions: options.nodeOptions,
  });
  let rows: Row[];
  try {
    rows = await Promise.race([measure(world, options, command, env), interrupted()]);
    if (options.trace) say(`\n${tracesIn(world.log)}\n`);
  } finally {
    // What was measured is told even if not everything can be taken away.
    await world.stop().catch((err: unknown) => {
      say(`not taken away: ${String(err)}`);
      process.exitCode = 1;
    });
  }
  const machine = { ...processors(), loadBefore: load, loadAfter: loadAverage() };
  const figures = rows.map((row) => ({ ...row, ratio: ratioOf(row), reached: isReached(row) }));
  const run = {
    at: new Date().toISOString(),
    node: process.version,
    form: options.form,
    machine,
    quick: options.quick,
    rows: figures,
  };
  // A profiler costs time: such a run is for looking at, not for the record.
  if (options.nodeOptions.length === 0) {
    remember(run);
    redrawReadme();
  }
  if (options.json) process.stdout.write(`${JSON.stringify({ machine, rows: figures }, undefined, 2)}\n`);
  else
    process.stdout.write(
      `\n${machine.cores} cores (${machine.cpu}), containerd 2.1, Node ${process.version}, load ${load} before, ${machine.loadAfter} after\n\n${table(rows)}\n`,
    );
}

await main();
process.exit();
