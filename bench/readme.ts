// The table of figures in README.md, drawn from the history: of every figure the newest run of the bundle on a quiet machine,
// full ones before quick ones. Nobody writes these figures by hand.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { redrawHistory, readRuns, type Run, type RunRow } from './history.ts';

const FILE = join(import.meta.dirname, '..', 'README.md');
const BEGIN = '<!-- figures: npm run bench -- readme -->';
const END = '<!-- end of figures -->';

/** Processes that want to run, per core. */
const QUIET_LOAD = 1.5;

/** What the README shows, in this order; the command is the scenario before the first dot. */
const SHOWN: Readonly<Record<string, string>> = {
  'start-up.healthz': 'exec to `/healthz`, no pods',
  'start-up.memory': 'resident memory at start, above bare Node',
  'serial.ready.p50': 'one pod with a token, created to Ready, p50',
  'serial.gone.p50': 'one pod, deleted to gone, p50',
  'serial.cpu': 'CPU of the kubelet per pod started, one by one',
  'static.started.p50': 'manifest written to container started, p50',
  'static.stopped.p50': 'manifest removed to sandbox stopped, p50',
  'volumes.all': 'four volumes (token, config map, secret, emptyDir), created to Ready',
  'csi.over.p50': 'claim attached to container started, over the time of driver and runtime, p50',
  'probes.readiness': 'exec readiness probe, created to Ready',
  'burst-20.rate': 'burst of 20',
  'burst-50.rate': 'burst of 50',
  'burst-50.p50': 'burst of 50, created to Ready, p50',
  'burst-50.p99': 'burst of 50, created to Ready, p99',
  'burst-50.cpu': 'burst of 50, CPU of the kubelet per pod',
  'burst-50.machine': 'burst of 50, CPU of the whole machine per pod',
  'burst-100.rate': 'burst of 100',
  'burst-100.p50': 'burst of 100, created to Ready, p50',
  'storm-50.cpu': '50 crashing pods, CPU of the kubelet per container start',
  'churn.rate': 'pods that come and go, eight at a time',
  'idle-0.memory': 'resident memory with no pods',
  'idle-50.memory': 'resident memory with 50 pods',
  'idle-100.memory': 'resident memory with 100 pods',
  'idle-50.cpu': 'idle CPU with 50 pods, of one core',
  'idle-100.cpu': 'idle CPU with 100 pods, of one core',
  'restart-100.usable': 'kubelet restarted with 100 pods, exec to a new pod Ready',
  'full-250.rate': '250 pods on one node',
};

export function redrawReadme(): void {
  redrawHistory();
  writeFileSync(FILE, withFigures(readFileSync(FILE, 'utf8'), readRuns()));
}

/** The README's text with the block between the marks drawn anew. */
export function withFigures(readme: string, runs: readonly Run[]): string {
  const [from, to] = [readme.indexOf(BEGIN), readme.indexOf(END)];
  if (from < 0 || to < from) throw new Error('README.md has lost the marks around its figures');
  return `${readme.slice(0, from)}${BEGIN}\n${figures(runs)}\n${readme.slice(to)}`;
}

type Found = { readonly key: string; readonly what: string; readonly row: RunRow; readonly run: Run };

function figures(runs: readonly Run[]): string {
  const found = Object.entries(SHOWN).flatMap(([key, what]) => newest(runs, key, what) ?? []);
  const used = [...new Set(found.map(({ run }) => run))].sort((a, b) => (a.at < b.at ? 1 : -1));
  const lines = found.map(({ key, what, row, run }) => {
    const cells = [
      what,
      `\`${scenarioOf(key)}\``,
      amount(row),
      ratio(row.ratio),
      wanted(row),
      go(row),
      `${used.indexOf(run) + 1}`,
    ];
    return `| ${cells.join(' | ')} |`;
  });
  return [
    '| figure | scenario | value | ratio to bare CRI (or Node) | wanted | Go kubelet | run |',
    '|---|---|---|---|---|---|---|',
    ...lines,
    '',
    ...used.map((run, i) => `Run ${i + 1}: ${aboutRun(run)}${i === used.length - 1 ? '' : '  '}`),
  ].join('\n');
}

const scenarioOf = (key: string): string => {
  const [name = ''] = key.split('.');
  return /^(idle|restart)-/.test(name) ? 'idle' : name.replace(/^storm-.*/, 'storm').replace(/^full-.*/, 'full-node');
};

function newest(runs: readonly Run[], key: string, what: string): Found | undefined {
  const having = runs.flatMap((run) => {
    if (run.form !== 'bundle') return []; // what `bin/kubelet` runs
    const row = run.rows.find((r) => r.key === key);
    return row === undefined || row.value === null ? [] : [{ key, what, row, run }];
  });
  return having.reduce<Found | undefined>(
    (best, one) => (best === undefined || worth(one.run) >= worth(best.run) ? one : best),
    undefined,
  );
}

/** A machine that is busy with something else measures that. */
const worth = ({ quick, machine }: Run): number =>
  (machine.loadBefore <= machine.cores * QUIET_LOAD ? 2 : 0) + (quick ? 0 : 1);

function aboutRun({ at, quick, node, form, machine }: Run): string {
  const { cpu, cores, loadBefore, loadAfter } = machine;
  const kind = quick ? 'quick (`--quick`: fewer pods, a look only)' : 'full';
  return `${at.slice(0, 16).replace('T', ' ')} UTC, ${kind}, ${form}, ${cores} cores (${cpu}), containerd 2.1, Node ${node}, load ${loadBefore} before and ${loadAfter} after.`;
}

const ratio = (value: number | undefined): string => (value === undefined ? '' : `${value.toFixed(2)} ×`);

const amount = ({ value, unit }: RunRow): string =>
  `${(value ?? Number.NaN).toFixed((value ?? 0) >= 100 ? 0 : (value ?? 0) >= 10 ? 1 : 2)} ${unit}`;

function wanted(row: RunRow): string {
  const limit = row.wanted?.atMost ?? row.wanted?.atLeast;
  if (limit === undefined) return '';
  const sign = row.wanted?.atMost === undefined ? '≥' : '≤';
  const text = row.ratio === undefined ? `${sign} ${amount({ ...row, value: limit })}` : `${sign} ${limit} ×`;
  const measured = row.ratio ?? row.value ?? Number.NaN;
  return (sign === '≤' ? measured <= limit : measured >= limit) ? text : `**${text}, missed**`;
}

const go = (row: RunRow): string =>
  row.go === undefined ? '' : row.ratio === undefined ? amount({ ...row, value: row.go }) : `${row.go} ×`;
