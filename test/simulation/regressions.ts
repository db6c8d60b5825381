// Runs that found a bug of the agent. The bug is fixed; the run must stay clean. Each ends soon after the moment at which the
// bug showed.
import type { Action } from './workload/actions.ts';

export type Regression = {
  readonly bug: string;
  readonly args: readonly string[];
  /** What `--shrink` printed, instead of all that the seed draws. */
  readonly actions?: readonly Action[];
};

/** As the command takes them. */
export const argsOf = ({ args, actions }: Regression): readonly string[] =>
  actions === undefined ? args : [...args, `--actions=${JSON.stringify(actions)}`];

/** Those there were when the runs were found: more of them draw other pods. */
const KINDS = `--kinds=${[
  'long',
  'stubborn',
  'pair',
  'crashing',
  'job',
  'retried',
  'prepared',
  'sidecar',
  'job-with-sidecar',
  'probed',
  'unhealthy',
  'hooked',
  'volumes',
  'late',
  'no-image',
].join()}`;
const DEVICES = ['--with=devices', `${KINDS},web,web-at-times,hungry,resized,critical`];
const PARTS = ['--with=stale,csi,devices'];
const TROUBLED = ['--pods=12', '--life=3m', '--fault-every=1m', KINDS];

export const REGRESSIONS: readonly Regression[] = [
  {
    bug: 'a second sandbox after a restart amid errors of the runtime',
    args: ['--seed=5001', '--until=1h', '--stop=30m', ...TROUBLED],
  },
  {
    bug: 'a node status that follows itself',
    args: ['--seed=5005', '--until=1h', '--stop=30m', ...TROUBLED],
  },
  {
    bug: 'all pods refused by an agent that starts under disk pressure',
    args: ['--seed=7106', '--until=1h', '--stop=20m', '--pods=12', KINDS],
  },
  {
    bug: 'restart counts that begin again after a power cut',
    args: ['--seed=1', '--until=15m', '--stop=5m'],
    actions: [
      ...['p0', 'p1', 'p2', 'p3', 'p4', 'p5'].map((name) => {
        return { atMs: 30_000, do: 'create', name, kind: 'sidecar', seed: 226_903_113 };
      }),
      { atMs: 100_000, do: 'power-cut', forMs: 5000, seed: 1 },
      { atMs: 101_000, do: 'runtime-errors', forMs: 60_000, seed: 1 },
    ],
  },
  {
    bug: 'the wrong dead container kept when the clock was set back',
    args: ['--seed=7115', '--until=1h', '--stop=20m', '--pods=12', KINDS],
  },
  {
    bug: 'a device of a pod that is still being stopped given to the next one',
    args: ['--seed=405', '--until=30m', '--stop=24m', '--pods=6', '--life=3m', '--fault-every=2m', ...DEVICES],
  },
  {
    bug: 'a volume detached that an earlier run left staged',
    args: ['--seed=507', '--until=30m', '--stop=26m', '--pods=6', '--life=3m', '--fault-every=2m', ...PARTS],
  },
  {
    bug: 'lists without a pause from a server that lags behind',
    args: ['--seed=610002', '--until=30m', '--stop=28m', '--pods=6', '--life=3m', '--fault-every=2m', ...PARTS],
  },
  {
    bug: 'a record of a pull that is damaged and keeps the agent from starting',
    args: ['--seed=225', '--until=20m', '--stop=16m', '--with=upgrade,devices'],
    actions: [
      { atMs: 691_019.655_022_873_2, do: 'create', name: 'p4-1', kind: 'hooked', seed: 1_775_289_787 },
      { atMs: 705_626.181_639_260_7, do: 'state-damaged', forMs: 1479, seed: 8_321_994 },
    ],
  },
  {
    bug: 'a container that starts with a claim that an attempt to unprepare took away',
    args: ['--seed=1', '--until=15m', '--stop=2m', '--with=dra'],
    actions: [
      { atMs: 30_000, do: 'create', name: 'x-0', kind: 'claims-shared', seed: 2 },
      { atMs: 60_000, do: 'dra-answers-lost', forMs: 20_000, seed: 15 },
      { atMs: 61_000, do: 'delete', name: 'x-0', grace: 1 },
      { atMs: 63_000, do: 'create', name: 'y-2', kind: 'claims-shared', seed: 3 },
    ],
  },
  {
    bug: 'a node that is not Ready for minutes after errors of the API server at its start',
    args: ['--seed=1', '--until=15m', '--stop=7m'],
    actions: [
      { atMs: 60_000, do: 'api-errors', forMs: 185_000, seed: 2 },
      { atMs: 61_000, do: 'agent-kill', forMs: 5000, seed: 1 },
    ],
  },
  {
    bug: 'a volume that several pods give back at once, of which the driver refuses all but one',
    args: ['--seed=1', '--until=3m', '--with=block'],
    actions: ['one', 'two', 'three'].flatMap((name) => [
      { atMs: 30_000, do: 'create', name, kind: 'block-and-data', seed: 1 },
      { atMs: 90_000, do: 'delete', name, grace: 0 },
    ]),
  },
  {
    bug: 'a running pod refused for want of memory for init containers that are over',
    args: [
      '--seed=101',
      '--until=15m',
      '--stop=3m',
      '--pods=12',
      '--kinds=long',
      '--life=2m',
      '--fault-every=1m',
      '--with=memory',
    ],
  },
  {
    bug: 'a static pod stopped by an agent that starts while its manifest is broken',
    args: ['--seed=9', '--until=1h', '--stop=15m', '--pods=30', '--life=10m', '--fault-every=1m', '--kinds=long'],
  },
  {
    bug: 'a pod refused by a new agent whose containers ran on',
    args: ['--seed=5', '--until=40m', '--stop=5m', '--pods=6', '--life=20m', '--calm', '--kinds=long', '--with=labels'],
  },
  {
    bug: 'volumes mounted for a pod that had ended, by the rest of a sync that its deletion called off',
    args: ['--seed=3', '--until=20m', '--stop=3m', '--pods=10', '--calm', '--kinds=long', '--with=amid'],
  },
  {
    bug: 'a pod that had left its source and was still being stopped when the machine went down',
    args: ['--seed=3000138', '--until=15m', '--stop=10m', '--with=shutdown'],
    actions: [
      { atMs: 138_961.60912234336, do: 'static-write', name: 'p2-0', kind: 'crashing', seed: 631_199_873 },
      { atMs: 160_378.3769074689, do: 'static-remove', name: 'p2-0' },
      { atMs: 162_066.07196411627, do: 'node-shutdown', forMs: 26_911, seed: 217_893_728 },
    ],
  },
];
