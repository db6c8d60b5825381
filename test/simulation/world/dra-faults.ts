// What may be wrong with the drivers of claimed devices. One of them is hit, or both.
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { Random } from '../engine/random.ts';
import type { DraDriver } from './dra-driver.ts';
import type { World } from './world.ts';

type Lasting = {
  readonly begin: (world: World, random: Random) => unknown;
  readonly end: (world: World) => unknown;
};

const some = ({ claims }: World, random: Random): readonly DraDriver[] => {
  const drivers = claims?.drivers ?? [];
  return random.chance(0.3) ? drivers : drivers.slice(0, 1);
};
const all = ({ claims }: World): readonly DraDriver[] => claims?.drivers ?? [];

const onSome =
  (apply: (driver: DraDriver, random: Random) => void) =>
  (world: World, random: Random): void =>
    some(world, random).forEach((driver) => apply(driver, random));
const onAll =
  (apply: (driver: DraDriver) => void) =>
  (world: World): void =>
    all(world).forEach(apply);

export const DRA_FAULTS: Readonly<Record<string, Lasting>> = {
  'dra-errors': {
    begin: onSome((driver, random) => {
      const rate = random.pick([0.2, 0.7, 1]);
      const code = random.pick([GrpcCode.Internal, GrpcCode.Unavailable, GrpcCode.DeadlineExceeded]);
      driver.before = () => {
        if (random.chance(rate)) throw new GrpcError(code, 'simulated error');
      };
    }),
    end: onAll((driver) => (driver.before = () => undefined)),
  },
  'dra-claim-errors': {
    begin: onSome((driver, random) => {
      const rate = random.pick([0.3, 0.8]);
      driver.problemOf = () => (random.chance(rate) ? 'the device is broken' : '');
    }),
    end: onAll((driver) => (driver.problemOf = () => '')),
  },
  'dra-slow': {
    begin: onSome((driver, random) => (driver.slownessMs = random.pick([5000, 60_000, 200_000]))),
    end: onAll((driver) => {
      driver.slownessMs = 0;
      driver.hurry();
    }),
  },
  'dra-answers-lost': {
    begin: onSome((driver, random) => {
      const rate = random.pick([0.3, 0.8]);
      driver.after = () => {
        if (random.chance(rate)) throw new GrpcError(GrpcCode.Unavailable, 'the answer was lost');
      };
    }),
    end: onAll((driver) => (driver.after = () => undefined)),
  },
  'dra-restart': {
    begin: onSome((driver, random) => driver.stop(random.chance(0.5))),
    end: (world) => world.isUp && onAll((driver) => driver.isRunning || void driver.start())(world),
  },
  'dra-update': {
    begin: onSome((driver) => void driver.update()),
    end: onAll((driver) => driver.endOld(false)),
  },
};
