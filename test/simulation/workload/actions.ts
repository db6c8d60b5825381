// What happens to the node, as data: a list of timed actions drawn from the seed. Each action carries all it needs, so that
// a list with some of them left out is a run as good as the whole (shrinking leaves out what a failure does not need).
import { Random } from '../engine/random.ts';
import { addKinds, KINDS } from './pods.ts';
import { CHOOSY_KINDS } from './choosy-pods.ts';
import { CLAIM_KINDS } from './claim-pods.ts';
import { DEVICE_KINDS } from './device-pods.ts';
import { DRAIN_KINDS } from './drain-pods.ts';
import { BLOCK_KINDS, growths } from './block-pods.ts';
import { MEMORY_KINDS } from './memory-pods.ts';
import { STORAGE_KINDS } from './storage-pods.ts';

addKinds(STORAGE_KINDS);
addKinds(DEVICE_KINDS);
addKinds(BLOCK_KINDS);
addKinds(DRAIN_KINDS);
addKinds(CLAIM_KINDS);
addKinds(MEMORY_KINDS);
addKinds(CHOOSY_KINDS);

export type Action = {
  readonly atMs: number;
  readonly do: string;
  readonly [detail: string]: string | number | boolean;
};

export type Profile = {
  readonly untilMs: number;
  /** Pods on the node, about. */
  readonly pods: number;
  /** How often a pod is replaced by another, on average. */
  readonly lifeMs: number;
  /** Between two faults, on average; none when undefined. */
  readonly faultEveryMs?: number;
  /** Of pods; all of them when undefined. */
  readonly kinds?: readonly string[];
  /** Parts of the world beyond the plain node. */
  readonly also?: readonly Part[];
};

/** Each draws from a stream of its own: a seed without them means the same as before there were any. */
export const PARTS = [
  'stale',
  'csi',
  'devices',
  'shutdown',
  'drain',
  'upgrade',
  'dra',
  'block',
  'memory',
  'amid',
  'labels',
] as const;
export type Part = (typeof PARTS)[number];

const MINUTE = 60_000;

/** How busy and how troubled a run is, where nobody says: some nodes are quiet for hours, others never. */
export function drawProfile(seed: number, untilMs: number, pods: number, mix: Mix): Profile {
  const random = new Random(seed, 'profile');
  if (mix === 'even') {
    const lifeMs = random.pick([3, 10, 30, 120]) * MINUTE;
    return { untilMs, pods, lifeMs, faultEveryMs: random.pick([1, 3, 10, 30]) * MINUTE };
  }
  return {
    untilMs,
    pods: pods === 0 ? random.int(50, 200) : pods,
    lifeMs: random.pick([4, 12, 24]) * 60 * MINUTE,
    faultEveryMs: random.pick([30, 60, 120]) * MINUTE,
    kinds: PRODUCTION,
  };
}

/** `even`: every kind as often as the others, short lives, many faults. `production`: a node as most are. */
export type Mix = 'even' | 'production';

/** Most pods run and run; each kind as often as it is here. */
const PRODUCTION: readonly string[] = [
  ...Array.from({ length: 20 }, () => ['long', 'web', 'volumes']).flat(),
  ...Array.from({ length: 6 }, () => ['pair', 'probed', 'prepared', 'sidecar', 'hooked', 'job']).flat(),
  'stubborn',
  'web-at-times',
  'hungry',
  'resized',
  'critical',
  'retried',
  'job-with-sidecar',
  'late',
  'crashing',
  'unhealthy',
  'no-image',
];

const START_MS = 30_000;

export function drawActions(seed: number, profile: Profile): readonly Action[] {
  const actions = [
    ...podActions(new Random(seed, 'pods'), profile),
    ...objectActions(new Random(seed, 'objects'), profile),
  ];
  const { faultEveryMs, untilMs } = profile;
  if (profile.also?.includes('amid') === true) actions.push(...deletionsAmid(new Random(seed, 'amid'), profile));
  if (profile.also?.includes('labels') === true) actions.push(...choices(new Random(seed, 'labels'), untilMs));
  if (profile.also?.includes('drain') === true) actions.push(...drains(new Random(seed, 'drains'), untilMs));
  for (const part of profile.also ?? []) actions.push(...partPods(new Random(seed, `pods ${part}`), profile, part));
  if (profile.also?.includes('block') === true) actions.push(...growths(new Random(seed, 'growths'), untilMs));
  if (faultEveryMs !== undefined) {
    actions.push(...faultActions(new Random(seed, 'faults'), untilMs, faultEveryMs));
    for (const part of profile.also ?? [])
      actions.push(...faultsOf(new Random(seed, `faults ${part}`), untilMs, faultEveryMs, FAULTS[part]));
  }
  return actions.sort((a, b) => a.atMs - b.atMs);
}

/** Every place on the node is taken by one pod after another. */
function podActions(random: Random, profile: Profile): Action[] {
  const { untilMs, pods, lifeMs } = profile;
  const actions: Action[] = [];
  const kinds = profile.kinds ?? Object.keys(KINDS);
  for (let place = 0; place < pods; place++) {
    let atMs = START_MS + random.next() * Math.min(lifeMs, 10 * MINUTE);
    for (let turn = 0; atMs < untilMs; turn++) {
      const name = `p${place}-${turn}`;
      const isStatic = random.chance(0.05);
      const seed = random.int(1, 2 ** 31);
      const kind = isStatic ? random.pick(['long', 'crashing', 'pair']) : random.pick(kinds);
      actions.push({ atMs, do: isStatic ? 'static-write' : 'create', name, kind, seed });
      const endMs = atMs + Math.max(1000, random.exponential(lifeMs));
      if (isStatic) {
        if (random.chance(0.3)) actions.push({ atMs: (atMs + endMs) / 2, do: 'static-break', name });
        actions.push({ atMs: endMs, do: 'static-remove', name });
      } else {
        const grace = random.chance(0.6) ? -1 : random.pick([0, 1, 10, 60]);
        actions.push({ atMs: endMs, do: 'delete', name, grace });
        if (random.chance(0.1)) actions.push({ atMs: endMs + random.int(1, 20_000), do: 'delete', name, grace: 0 });
        if (kind === 'resized') actions.push(...resizes(new Random(seed, 'resizes'), name, atMs, endMs));
      }
      atMs = endMs + random.exponential(MINUTE);
    }
  }
  return actions.filter(({ atMs }) => atMs < untilMs);
}

/** Half as many again as there are others, of the part's own kinds. */
function partPods(random: Random, { untilMs, pods, lifeMs }: Profile, part: Part): Action[] {
  const kinds = POD_KINDS[part];
  const actions: Action[] = [];
  for (let place = 0; kinds.length > 0 && place < Math.ceil(pods / 2); place++)
    for (let turn = 0, atMs = START_MS + random.next() * Math.min(lifeMs, 10 * MINUTE); atMs < untilMs; turn++) {
      const name = `${part}${place}-${turn}`;
      actions.push({ atMs, do: 'create', name, kind: random.pick(kinds), seed: random.int(1, 2 ** 31) });
      atMs += Math.max(1000, random.exponential(lifeMs));
      actions.push({ atMs, do: 'delete', name, grace: random.chance(0.6) ? -1 : random.pick([0, 1, 10, 60]) });
      atMs += random.exponential(MINUTE);
    }
  return actions.filter(({ atMs }) => atMs < untilMs);
}

const POD_KINDS: Readonly<Record<Part, readonly string[]>> = {
  stale: [],
  csi: Object.keys(STORAGE_KINDS),
  devices: Object.keys(DEVICE_KINDS),
  shutdown: [],
  drain: Object.keys(DRAIN_KINDS),
  upgrade: [],
  dra: Object.keys(CLAIM_KINDS),
  block: Object.keys(BLOCK_KINDS),
  memory: Object.keys(MEMORY_KINDS),
  amid: [],
  labels: Object.keys(CHOOSY_KINDS),
};

/**
 * Pods that are deleted within the milliseconds of a sync: their first one, or that after the end of a container. Mostly the
 * files are slow meanwhile, so that the parts of a sync overlap with the pod's end.
 */
function deletionsAmid(random: Random, { untilMs, pods }: Profile): Action[] {
  const actions: Action[] = [];
  for (let place = 0; place < Math.ceil(pods / 2); place++)
    for (let turn = 0, atMs = START_MS + random.next() * MINUTE; atMs < untilMs; turn++) {
      const name = `amid${place}-${turn}`;
      const isFirst = random.chance(0.7);
      actions.push({ atMs, do: 'create', name, kind: 'volumes', seed: random.int(1, 2 ** 31) });
      if (!isFirst) {
        atMs += 1000 + random.exponential(MINUTE / 2);
        actions.push({ atMs, do: 'exit', name, code: 1 });
      }
      if (random.chance(0.8))
        actions.push({ atMs: atMs - 1, do: 'files-slow', forMs: 2000, seed: random.int(1, 2 ** 31) });
      const amid = { call: random.int(0, 3), afterMs: 50 * random.next() };
      actions.push({ atMs: atMs + 0.001, do: 'delete-amid', name, ...amid });
      atMs += 2 * MINUTE;
      actions.push({ atMs, do: 'delete', name, grace: -1 });
      atMs += random.exponential(MINUTE / 2);
    }
  return actions.filter(({ atMs }) => atMs < untilMs);
}

function resizes(random: Random, name: string, fromMs: number, toMs: number): Action[] {
  return Array.from({ length: random.int(1, 4) }, () => ({
    atMs: fromMs + random.next() * (toMs - fromMs),
    do: 'resize',
    name,
    milli: random.int(5, 40) * 10,
  }));
}

function objectActions(random: Random, { untilMs }: Profile): Action[] {
  const actions: Action[] = [];
  for (let atMs = random.exponential(30 * MINUTE); atMs < untilMs; atMs += random.exponential(30 * MINUTE))
    actions.push({
      atMs,
      do: random.pick(['change-configmap', 'change-secret', 'kill-container', 'kill-sandbox', 'label-node', 'cordon']),
      seed: random.int(1, 2 ** 31),
    });
  return actions;
}

/** The node's label is there from the beginning, and comes and goes while the agent is away. */
function choices(random: Random, untilMs: number): Action[] {
  const actions: Action[] = [{ atMs: START_MS - 1, do: 'choose-node', isChosen: true }];
  for (let atMs = 2 * MINUTE; atMs < untilMs; atMs += 2 * MINUTE + random.exponential(5 * MINUTE)) {
    const forMs = Math.round(1000 + random.exponential(20_000));
    actions.push({ atMs, do: random.pick(['agent-kill', 'agent-stop']), forMs, seed: random.int(1, 2 ** 31) });
    actions.push({ atMs: atMs + forMs * random.next(), do: 'choose-node', isChosen: random.chance(0.5) });
  }
  return actions.filter(({ atMs }) => atMs < untilMs);
}

function drains(random: Random, untilMs: number): Action[] {
  const actions: Action[] = [];
  for (let atMs = 2 * MINUTE; atMs < untilMs; atMs += 2 * MINUTE + random.exponential(5 * MINUTE)) {
    atMs += random.exponential(2 * MINUTE);
    const forMs = Math.round(MINUTE + random.exponential(2 * MINUTE));
    actions.push({ atMs, do: 'drain', forMs, seed: random.int(1, 2 ** 31) });
    atMs += forMs;
  }
  return actions;
}

const LASTING: readonly string[] = [
  'runtime-errors',
  'runtime-slow',
  'events-lost',
  'events-doubled',
  'events-late',
  'api-refused',
  'api-silent',
  'api-errors',
  'api-answers-lost',
  'disk-full',
  'disk-low',
  'disk-read-only',
  'disk-slow',
];
const MOMENTARY: readonly string[] = [
  'runtime-restart',
  'api-restart',
  'api-watches-end',
  'api-compact',
  'agent-kill',
  'agent-kill',
  'agent-stop',
  'power-cut',
  'clock-jump',
];

const FAULTS: Readonly<Record<Part, readonly string[]>> = {
  stale: ['api-stale', 'api-stale', 'api-replays', 'api-objects-vanish'],
  csi: ['csi-errors', 'csi-slow', 'csi-answers-lost', 'csi-restart', 'agent-kill', 'power-cut'],
  shutdown: ['node-shutdown', 'node-shutdown', 'node-shutdown-called-off', 'bus-away', 'agent-kill'],
  drain: ['agent-kill', 'agent-stop', 'power-cut', 'api-restart', 'api-answers-lost'],
  block: ['block-errors', 'block-slow', 'block-answers-lost', 'block-restart', 'agent-kill', 'power-cut'],
  upgrade: ['taken-over', 'taken-over', 'upgraded', 'upgraded', 'state-damaged'],
  dra: [
    'dra-errors',
    'dra-claim-errors',
    'dra-slow',
    'dra-answers-lost',
    'dra-restart',
    'dra-update',
    'agent-kill',
    'agent-kill',
    'power-cut',
  ],
  memory: ['agent-kill', 'agent-kill', 'agent-stop', 'power-cut', 'runtime-restart'],
  labels: ['agent-kill'],
  amid: ['files-slow', 'runtime-slow', 'agent-kill'],
  devices: ['device-restart', 'device-unhealthy', 'device-refuses', 'device-hangs', 'agent-kill', 'power-cut'],
};

const faultActions = (random: Random, untilMs: number, everyMs: number): Action[] =>
  faultsAt(random, untilMs, everyMs, () => random.pick(random.chance(0.5) ? LASTING : MOMENTARY));
const faultsOf = (random: Random, untilMs: number, everyMs: number, names: readonly string[]): Action[] =>
  faultsAt(random, untilMs, 2 * everyMs, () => random.pick(names));

function faultsAt(random: Random, untilMs: number, everyMs: number, draw: () => string): Action[] {
  const actions: Action[] = [];
  for (let atMs = 2 * MINUTE + random.exponential(everyMs); atMs < untilMs; atMs += random.exponential(everyMs)) {
    const what = draw();
    const forMs = Math.round(Math.min(15 * MINUTE, 500 + random.exponential(random.pick([2000, 30_000, 3 * MINUTE]))));
    actions.push({ atMs, do: what, forMs, seed: random.int(1, 2 ** 31) });
  }
  return actions;
}
