// What may be wrong with a driver on the simulated machine: it refuses, is slow, loses its answers, is away for a while.
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { Random } from '../engine/random.ts';
import type { DriverCalls } from './driver-calls.ts';
import type { DriverProcesses } from './driver-processes.ts';
import type { World } from './world.ts';

export type Lasting = {
  readonly begin: (world: World, random: Random, forMs: number) => unknown;
  readonly end: (world: World) => unknown;
};

type Driver = {
  readonly calls: Pick<DriverCalls, 'before' | 'after' | 'slownessMs' | 'hurry'>;
  readonly processes: DriverProcesses;
  stop(isKilled: boolean): void;
};

export type DriverFaults<D extends Driver> = {
  readonly name: string;
  readonly all: (world: World) => readonly D[];
  /** Those that are hit this time. */
  readonly some: (world: World, random: Random) => readonly D[];
  readonly codes: readonly GrpcCode[];
  readonly slownessMs: readonly number[];
  /** How many of the answers are lost. */
  readonly lost: readonly number[];
};

export function driverFaults<D extends Driver>(o: DriverFaults<D>): Record<string, Lasting> {
  const { name, all, some, codes } = o;
  const onSome =
    (apply: (driver: D, random: Random) => void): Lasting['begin'] =>
    (world, random) =>
      some(world, random).forEach((driver) => apply(driver, random));
  const onAll =
    (apply: (driver: D) => void): Lasting['end'] =>
    (world) =>
      all(world).forEach(apply);
  return {
    [`${name}-errors`]: {
      begin: onSome(({ calls }, random) => {
        const rate = random.pick([0.2, 0.7, 1]);
        const code = random.pick(codes);
        calls.before = () => {
          if (random.chance(rate)) throw new GrpcError(code, 'simulated error');
        };
      }),
      end: onAll(({ calls }) => (calls.before = () => undefined)),
    },
    [`${name}-slow`]: {
      begin: onSome(({ calls }, random) => (calls.slownessMs = random.pick(o.slownessMs))),
      end: onAll(({ calls }) => {
        calls.slownessMs = 0;
        calls.hurry();
      }),
    },
    [`${name}-answers-lost`]: {
      begin: onSome(({ calls }, random) => {
        const rate = random.pick(o.lost);
        calls.after = () => {
          if (random.chance(rate)) throw new GrpcError(GrpcCode.Unavailable, 'the answer was lost');
        };
      }),
      end: onAll(({ calls }) => (calls.after = () => undefined)),
    },
    [`${name}-restart`]: {
      begin: onSome((driver, random) => driver.stop(random.chance(0.5))),
      end: (world) => world.hasPower && onAll(({ processes }) => processes.isRunning || void processes.start())(world),
    },
  };
}
