// `npm test`: the checks, then every *.test.ts. Unit tests sit beside their source and share three processes. Tests that need
// a real runtime, kernel features or a whole node are in test/: two files run side by side, the longest first; beside them
// run those that hardly work, and those that only compute, with a low priority. Files that measure run alone, at the end.
// A file that fails is run once more, alone, to tell a defect from a race: the second result is printed as a diagnosis, and
// the run has failed either way.
//   npm test -- <file>…      some files
//   npm run test:fast        the checks and all unit tests, for the inner loop; random input is tried a fifth as often
import { globSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { traces } from './left-behind.ts';
import { ensurePackages } from './system-packages.ts';
import { report, summary, type Outcome } from './test-report.ts';
import { MINUTE, OWN_PROCESS, runCommand, runTests, type Isolation, type Priority } from './test-run.ts';

const SIDE_BY_SIDE = 2;
/** What is measured in them would be wrong beside others. */
const ALONE: readonly string[] = ['test/contracts/api-server/load.test.ts', 'test/node/probes.test.ts'];
/** They wait most of their time: they run beside the others, in a lane of their own, which helps out when they are through. */
const AT_REST: readonly string[] = [
  'test/cluster/at-rest.test.ts',
  'test/faults/api-server-away.test.ts',
  'test/cluster/certificates.test.ts',
];
/** They compute and depend on no real time: they get what the processors have to spare. */
const SPARE_TIME: readonly string[] = [
  'test/simulation/simulation.test.ts',
  'test/fuzz/fuzz.test.ts',
  'test/faults/storage-commands.test.ts',
];
/** Both start a cluster on its default ports: one after the other, in one lane. */
const DEFAULT_PORTS: readonly string[] = ['test/node/kubelet-dev.test.ts', 'test/node/storage-dev.test.ts'];
/** The longest first, so that none of them is left for the end. */
const LONG: readonly string[] = [
  'test/node/cgroup-v2-guest.test.ts',
  'test/faults/slow-and-hung.test.ts',
  'test/cluster/node.test.ts',
  'test/faults/agent-killed.test.ts',
  'test/node/node-page-full.test.ts',
  'test/node/kubectl.test.ts',
  'test/faults/claims-killed.test.ts',
  'test/node/server-streams.test.ts',
  'test/node/golden-node.test.ts',
  'test/faults/soak.test.ts',
  'test/node/server-kubectl.test.ts',
  'test/faults/frozen/matrix.test.ts',
  'test/cluster/pods.test.ts',
  'test/node/eviction.test.ts',
  'test/faults/volumes-killed.test.ts',
  'test/security/hostile-pods.test.ts',
];

/** The longest unit tests, dealt out before the others so that no process gets two of the first. */
const LONG_UNIT_TESTS: readonly string[] = [
  'src/volumes/csi/faults.test.ts',
  'src/runtime/random.test.ts',
  'src/server/server.test.ts',
  'src/sources/decode.test.ts',
  'src/logs/read-logs.test.ts',
  'src/runtime/convergence.test.ts',
];
const UNIT_TEST_PROCESSES = 3;
/** What a file may take; those that get what the processors have to spare compute for minutes and wait for the others. */
const LONGEST: Readonly<Record<Priority, number>> = { usual: 10 * MINUTE, low: 20 * MINUTE };

/** Each job is one file, or several that must not run at the same time. */
type Job = readonly string[];

/** Takes job after job until none is left; several lanes may share them. */
async function lane(waiting: Job[], priority: Priority = 'usual'): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (let job = waiting.shift(); job !== undefined; job = waiting.shift())
    for (const file of job)
      outcomes.push(report(await runTests(file, [file], { isolation: 'own process', priority }, LONGEST[priority])));
  return outcomes;
}

const testAlone = (files: readonly string[]): Promise<Outcome[]> => lane([files]);

/** All unit tests: starting a process for each file would cost more than the tests themselves. */
async function unitTests(): Promise<Outcome[]> {
  const others = globSync('src/**/*.test.ts').filter(
    (file) => !OWN_PROCESS.includes(file) && !LONG_UNIT_TESTS.includes(file),
  );
  const shared = [...LONG_UNIT_TESTS, ...others.sort()];
  const unitTest = async (name: string, files: readonly string[], isolation: Isolation): Promise<Outcome> =>
    report(await runTests(`unit tests, ${name}`, files, { isolation, priority: 'usual' }, 10 * MINUTE));
  return Promise.all([
    ...Array.from({ length: UNIT_TEST_PROCESSES }, (_, which) =>
      unitTest(
        `part ${which + 1}`,
        shared.filter((_file, i) => i % UNIT_TEST_PROCESSES === which),
        'shared process',
      ),
    ),
    unitTest('own process', OWN_PROCESS, 'own process'),
  ]);
}

const fast = async (): Promise<Outcome[]> => [
  report(await runCommand('checks', 'sh', ['scripts/run', 'check'], 10 * MINUTE)),
  ...(await unitTests()),
];

async function everything(): Promise<Outcome[]> {
  const first = await fast();
  const found = globSync('test/**/*.test.ts').sort();
  const named = new Set([...ALONE, ...AT_REST, ...SPARE_TIME, ...DEFAULT_PORTS, ...LONG]);
  const jobs: Job[] = [DEFAULT_PORTS, ...[...LONG, ...found.filter((file) => !named.has(file))].map((file) => [file])];
  const beside = await Promise.all([
    ...Array.from({ length: SIDE_BY_SIDE }, () => lane(jobs)),
    // What is left by then runs beside two others, as those before did.
    lane([AT_REST]).then(async (rested) => [...rested, ...(await lane(jobs))]),
    lane([SPARE_TIME], 'low'),
  ]);
  const whole = [...beside.flat(), ...(await testAlone(ALONE))];
  const failed = whole.filter(({ ok }) => !ok).map(({ name }) => name);
  if (failed.length > 0) console.log('\nonce more, alone, as a diagnosis:');
  for (const { name, ok } of await testAlone(failed))
    console.log(ok ? `UNSTEADY ${name}: failed, then passed alone` : `BROKEN ${name}: failed twice`);
  return [...first, ...whole];
}

const named = process.argv.slice(2);
if (named.length === 0) await ensurePackages();
// Nothing that an earlier run left in the temporary folder can help or hurt this one.
const folder = mkdtempSync(join(tmpdir(), 'kts-run-'));
process.env['TMPDIR'] = folder;
// Every file is a process of its own that loads much the same code: types are stripped and code is compiled once.
process.env['NODE_COMPILE_CACHE'] ??= join(import.meta.dirname, '..', 'node_modules', '.cache', 'kubelet-ts');
const tracesBefore = traces();
const begun = performance.now();
if (named[0] === '--fast') process.env['TEST_FAST'] = '1';
const outcomes = named[0] === '--fast' ? await fast() : named.length > 0 ? await testAlone(named) : await everything();
for (const trace of traces()) if (!tracesBefore.has(trace)) console.log(`left behind: ${trace}`);
rmSync(folder, { recursive: true, force: true });
process.exit(summary(outcomes, performance.now() - begun) ? 0 : 1);
