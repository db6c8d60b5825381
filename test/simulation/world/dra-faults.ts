// What may be wrong with the drivers of claimed devices. One of them is hit, or both.
import { GrpcCode } from '../../../src/lib/grpc/status.ts';
import type { Random } from '../engine/random.ts';
import type { DraDriver } from './dra-driver.ts';
import { driverFaults, type Lasting } from './driver-faults.ts';
import type { World } from './world.ts';

const all = ({ claims }: World): readonly DraDriver[] => claims?.drivers ?? [];
const some = (world: World, random: Random): readonly DraDriver[] =>
  random.chance(0.3) ? all(world) : all(world).slice(0, 1);

export const DRA_FAULTS: Readonly<Record<string, Lasting>> = {
  ...driverFaults({
    name: 'dra',
    all,
    some,
    codes: [GrpcCode.Internal, GrpcCode.Unavailable, GrpcCode.DeadlineExceeded],
    slownessMs: [5000, 60_000, 200_000],
    lost: [0.3, 0.8],
  }),
  'dra-claim-errors': {
    begin: (world, random) => {
      for (const driver of some(world, random)) {
        const rate = random.pick([0.3, 0.8]);
        driver.problemOf = () => (random.chance(rate) ? 'the device is broken' : '');
      }
    },
    end: (world) => all(world).forEach((driver) => (driver.problemOf = () => '')),
  },
  'dra-update': {
    begin: (world, random) => some(world, random).forEach(({ processes }) => void processes.update()),
    end: (world) => all(world).forEach(({ processes }) => processes.endOld()),
  },
};
