// What the systemd driver costs a pod, against the cgroupfs driver: messages to systemd, CPU of the kubelet, and time as a ratio.
// Two kubelets with runtimes in memory take turns; systemd is a stand-in on a real message bus.
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FakeSystemd } from '../../test/fakes/fake-systemd.ts';
import { MessageBus } from '../../test/harness/message-bus.ts';
import { startPod, stopPod } from '../counts/counts.ts';
import { startFleet, type FleetWorld } from '../fleet/fleet-world.ts';
import { names } from '../pods.ts';
import type { Row } from '../rows.ts';
import { cpuMs, interrupted, median } from '../statistics.ts';
import type { WorldOptions } from '../world.ts';

const { signal } = new AbortController();

export type DriversOptions = WorldOptions & { readonly quick: boolean; readonly say: (line: string) => void };

/** Pods of one turn, one after the other. */
const TURN = 10;
/** Of one pod, mean of a turn. */
type Turn = {
  readonly startCalls: number;
  readonly stopCalls: number;
  readonly cpuMs: number;
  readonly tookMs: number;
};

export async function compareDrivers(options: DriversOptions): Promise<Row[]> {
  const bus = new MessageBus();
  const worlds: FleetWorld[] = [];
  try {
    await bus.start();
    const systemd = await new FakeSystemd().open(bus);
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    systemd.makeSlice = (path) => cgroups.create(path, {}, signal);
    const env = { ...options.env, DBUS_SYSTEM_BUS_ADDRESS: bus.address };
    for (const driver of ['cgroupfs', 'systemd'] as const)
      worlds.push(await startFleet(1, { ...options, env, driver, recordCalls: true }));
    return await Promise.race([inTurns(worlds, systemd, options), interrupted()]);
  } finally {
    for (const world of worlds) await world.stop();
    await bus.close();
  }
}

async function inTurns(worlds: readonly FleetWorld[], systemd: FakeSystemd, options: DriversOptions): Promise<Row[]> {
  const turns: [Turn[], Turn[]] = [[], []];
  const rounds = options.quick ? 4 : 12;
  for (let round = 0; round <= rounds; round++) {
    for (const [i, world] of worlds.entries()) {
      const turn = await oneTurn(world, systemd, `r${round}`);
      // Cold code costs more: the first turn does not count.
      if (round > 0) turns[i]?.push(turn);
    }
    options.say(`round ${round} of ${rounds}`);
  }
  return rowsOf(...turns);
}

async function oneTurn(world: FleetWorld, systemd: FakeSystemd, prefix: string): Promise<Turn> {
  const [node] = world.nodes;
  if (node === undefined) throw new Error('no node was started');
  const pods = names(prefix, TURN);
  const begun = { calls: systemd.asked.length, cpu: cpuMs(node.kubelet.pid), at: performance.now() };
  for (const pod of pods) await startPod(world, node, pod);
  const started = systemd.asked.length;
  for (const pod of pods) await stopPod(world, node, pod);
  return {
    startCalls: (started - begun.calls) / TURN,
    stopCalls: (systemd.asked.length - started) / TURN,
    cpuMs: (cpuMs(node.kubelet.pid) - begun.cpu) / TURN,
    tookMs: (performance.now() - begun.at) / TURN,
  };
}

function rowsOf(cgroupfs: readonly Turn[], systemd: readonly Turn[]): Row[] {
  const of = (turns: readonly Turn[], figure: keyof Turn): number => median(turns.map((turn) => turn[figure]));
  const calls = (figure: 'startCalls' | 'stopCalls', what: string): Row => ({
    key: `drivers.systemd.${figure}`,
    what: `systemd driver: messages to systemd per ${what}`,
    value: of(systemd, figure),
    unit: 'calls',
  });
  return [
    calls('startCalls', 'start'),
    calls('stopCalls', 'stop'),
    {
      key: 'drivers.systemd.cpu',
      what: 'systemd driver: CPU of the kubelet per start and stop, against cgroupfs',
      value: of(systemd, 'cpuMs'),
      floor: of(cgroupfs, 'cpuMs'),
      unit: 'ms',
    },
    {
      key: 'drivers.systemd.time',
      what: 'systemd driver: time per start and stop, times cgroupfs',
      value: of(systemd, 'tookMs') / of(cgroupfs, 'tookMs'),
      unit: 'x',
    },
  ];
}
