// Faults of runtime, API server, disk, agent and clock, switched on for a while. `calm` is time in which nothing is broken and
// the agent runs: what must happen within a bound is held to calm time, not to the wall clock.
import { ContainerState } from '../../../src/cri/gen/cri.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import { Random } from '../engine/random.ts';
import { DRA_FAULTS } from './dra-faults.ts';
import { disk } from '../platform/file-latency.ts';
import { podOf } from '../workload/pods.ts';
import { driverFaults, type Lasting } from './driver-faults.ts';
import type { CsiDriver } from './csi-driver.ts';
import type { World } from './world.ts';

const PODS = '/api/v1/namespaces/default/pods';
const CONFIGMAPS = '/api/v1/namespaces/default/configmaps';

/** Of a CSI driver. */
const csiFaults = (name: string, all: (world: World) => readonly CsiDriver[]): Record<string, Lasting> =>
  driverFaults({
    name,
    all,
    some: all,
    codes: [GrpcCode.Internal, GrpcCode.Unavailable, GrpcCode.DeadlineExceeded, GrpcCode.NotFound],
    slownessMs: [5000, 60_000, 400_000],
    lost: [0.2, 0.7],
  });

/** Answers that come and go: the agent asks for these all the time, and may always be refused one. */
const READS = new Set(['Version', 'Status', 'ImageFsInfo', 'RuntimeConfig']);

export const LASTING: Readonly<Record<string, Lasting>> = {
  'runtime-errors': {
    begin: ({ runtimeFaults }, random) => {
      const rate = random.pick([0.05, 0.3, 1]);
      runtimeFaults.before = (verb) => {
        if (!READS.has(verb) && random.chance(rate)) throw new GrpcError(GrpcCode.Unknown, 'simulated error');
      };
    },
    end: ({ runtimeFaults }) => (runtimeFaults.before = () => undefined),
  },
  'runtime-slow': {
    begin: ({ runtimeFaults }, random) => (runtimeFaults.slownessMs = random.pick([50, 2000, 150_000])),
    end: ({ runtimeFaults }) => {
      runtimeFaults.slownessMs = 0;
      runtimeFaults.hurry();
    },
  },
  'events-lost': {
    begin: ({ runtimeFaults }) => (runtimeFaults.events = 'lost'),
    end: ({ runtimeFaults }) => (runtimeFaults.events = 'sent'),
  },
  'events-doubled': {
    begin: ({ runtimeFaults }) => (runtimeFaults.events = 'doubled'),
    end: ({ runtimeFaults }) => (runtimeFaults.events = 'sent'),
  },
  'events-late': {
    begin: ({ runtimeFaults }) => (runtimeFaults.events = 'late'),
    end: ({ runtimeFaults }) => (runtimeFaults.events = 'sent'),
  },
  'api-refused': {
    begin: ({ api }) => {
      api.state = 'refused';
      api.breakConnections();
    },
    end: ({ api }) => (api.state = 'yes'),
  },
  'api-silent': {
    begin: ({ api }) => {
      api.state = 'silent';
      api.breakConnections();
    },
    end: ({ api }) => (api.state = 'yes'),
  },
  'api-errors': {
    begin: ({ api }, random) => {
      const rate = random.pick([0.1, 0.5, 1]);
      const status = random.pick([409, 429, 500, 503]);
      api.fault = ({ path, method }) => {
        const isConflict = status === 409 && method === 'GET';
        return random.chance(rate) && !isConflict && !path.includes('watch=') ? { status } : undefined;
      };
    },
    end: ({ api }) => (api.fault = () => undefined),
  },
  'api-answers-lost': {
    begin: ({ api }, random) => {
      const rate = random.pick([0.1, 0.5]);
      api.fault = ({ path }) => (random.chance(rate) && !path.includes('watch=') ? 'lost' : undefined);
    },
    end: ({ api }) => (api.fault = () => undefined),
  },
  'api-stale': {
    begin: ({ api, scheduler }, random, forMs) => {
      api.replica.stop(random.pick(['waits', 'is refused', 'is refused', 'is told the past']));
      // What happens until then is seen, and then asked for again from a server that does not know of it.
      scheduler.after(0.8 * forMs * random.next(), () => api.breakConnections(), scheduler.world);
    },
    end: ({ api }) => api.replica.goOn(),
  },
  'api-replays': {
    begin: ({ api }, random) => {
      api.replay = random.pick([1, 10, 100, 400]);
      api.breakConnections();
    },
    end: ({ api }) => (api.replay = 0),
  },
  'api-objects-vanish': {
    begin: (world, random) => {
      world.api.state = 'refused';
      world.api.breakConnections();
      void vanish(world, random);
    },
    end: ({ api }) => {
      api.compact();
      api.state = 'yes';
    },
  },
  ...csiFaults('csi', ({ csi }) => (csi === undefined ? [] : [csi])),
  ...csiFaults('block', ({ block }) => (block === undefined ? [] : [block])),
  'device-restart': {
    begin: ({ devices }) => {
      if (devices === undefined) return;
      devices.isWanted = false;
      devices.stop();
    },
    end: ({ devices }) => devices !== undefined && (devices.isWanted = true),
  },
  'device-unhealthy': {
    begin: ({ devices }, random) => devices?.sicken(new Set([random.int(0, 9), random.int(0, 9), random.int(0, 9)])),
    end: ({ devices }) => devices?.sicken(new Set()),
  },
  'device-refuses': {
    begin: ({ devices }) => devices !== undefined && (devices.fault = 'refuse'),
    end: ({ devices }) => devices !== undefined && (devices.fault = undefined),
  },
  'device-hangs': {
    begin: ({ devices }) => devices !== undefined && (devices.fault = 'hang'),
    end: ({ devices }) => devices !== undefined && (devices.fault = undefined),
  },
  'bus-away': {
    begin: ({ logind }) => {
      if (logind === undefined) return;
      logind.isReachable = false;
      logind.restart();
    },
    end: ({ logind }) => logind !== undefined && (logind.isReachable = true),
  },
  'state-damaged': {
    begin: (world, random, forMs) => world.restartAgent('kill', forMs / 2, () => world.state.damage(random)),
    end: ({ state }) => state.repair(),
  },
  ...DRA_FAULTS,
  'disk-full': { begin: ({ files }) => (files.root.fs.full = true), end: ({ files }) => (files.root.fs.full = false) },
  'disk-low': { begin: ({ files }) => (files.root.fs.low = true), end: ({ files }) => (files.root.fs.low = false) },
  'disk-read-only': {
    begin: ({ files }) => (files.root.fs.readOnly = true),
    end: ({ files }) => (files.root.fs.readOnly = false),
  },
  'files-slow': {
    begin: (_world, random) =>
      Object.assign(disk, { slowness: random.pick([100, 1000]), kernelMs: random.pick([1, 5, 20]) }),
    end: () => Object.assign(disk, { slowness: 1, kernelMs: 0 }),
  },
  'disk-slow': { begin: (_world, random) => (disk.slowness = random.pick([10, 1000])), end: () => (disk.slowness = 1) },
};

/** While nobody hears of it: pods are removed at once, some of them made anew under their name, so is a ConfigMap. */
async function vanish({ api }: World, random: Random): Promise<void> {
  const gone = api.store.list('pods').filter(() => random.chance(0.3));
  for (const { object } of gone) {
    const { name, annotations, labels } = object.metadata;
    await api.admin('DELETE', `${PODS}/${name}`, { gracePeriodSeconds: 0 });
    if (annotations?.['kubernetes.io/config.mirror'] !== undefined || random.chance(0.5)) continue;
    await api.admin('POST', PODS, podOf(name, labels?.['kind'] ?? '', random.int(1, 2 ** 31)));
  }
  if (random.chance(0.5)) return;
  const settings = { metadata: { name: 'settings' }, data: { value: String(random.int(1, 2 ** 31)) } };
  await api.admin('DELETE', `${CONFIGMAPS}/settings`);
  await api.admin('POST', CONFIGMAPS, settings);
}

/** The pressure is taken for over after five minutes. */
const EVICTION_MS = 10 * 60_000;

export class Faults {
  readonly #world: World;
  readonly #active = new Map<string, number>();
  #disturbed = 0;
  #seen = 0;
  #sampledMs = 0;
  #calmMs = 0;
  #lowMs = -Infinity;
  #lastMs = -Infinity;

  constructor(world: World) {
    this.#world = world;
  }

  /** So many times something began or ended. */
  get disturbances(): number {
    return this.#disturbed;
  }

  get active(): readonly string[] {
    return [...this.#active.keys()];
  }

  /** The node may evict pods: its disk is, or was a moment ago, nearly full. */
  get isEvicting(): boolean {
    return this.#active.has('disk-low') || this.#world.scheduler.monotonic() - this.#lowMs < EVICTION_MS;
  }

  /** So much time has passed calmly since the beginning. */
  get calmMs(): number {
    return this.#calmMs;
  }

  disturb(): void {
    this.#disturbed++;
    this.#lastMs = this.#world.scheduler.monotonic();
  }

  /** When something was wrong last. */
  get lastMs(): number {
    const { isUp, logind } = this.#world;
    return this.#active.size > 0 || !isUp || logind?.isPreparing === true
      ? this.#world.scheduler.monotonic()
      : this.#lastMs;
  }

  last(name: string, forMs: number, random: Random): void {
    const { scheduler } = this.#world;
    const fault = LASTING[name];
    if (fault === undefined) throw new Error(`no fault is called ${name}`);
    this.disturb();
    this.#active.set(name, (this.#active.get(name) ?? 0) + 1);
    fault.begin(this.#world, random, forMs);
    scheduler.after(
      forMs,
      () => {
        this.disturb();
        const left = (this.#active.get(name) ?? 1) - 1;
        if (left > 0) return void this.#active.set(name, left);
        this.#active.delete(name);
        if (name === 'disk-low') this.#lowMs = scheduler.monotonic();
        fault.end(this.#world);
        this.#world.trace(`end ${name}`);
      },
      scheduler.world,
    );
  }

  /** Called now and then: time counts as calm when nothing was wrong since the last call. */
  sample(): void {
    const { scheduler, agent, isUp, logind } = this.#world;
    const now = scheduler.monotonic();
    const isRunning = isUp && agent.readyAtMs !== undefined && logind?.isPreparing !== true;
    const isCalm = this.#active.size === 0 && this.#disturbed === this.#seen && isRunning;
    if (isCalm) this.#calmMs += now - this.#sampledMs;
    this.#seen = this.#disturbed;
    this.#sampledMs = now;
  }
}

export const RUNNING = ContainerState.CONTAINER_RUNNING;
