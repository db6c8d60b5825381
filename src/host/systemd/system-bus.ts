// The machine's system bus, shared by all who speak to systemd and logind, and a call whose answer is an open file.
import { closeSync } from 'node:fs';
import type { Clock } from '../../lib/clock.ts';
import { Bus } from '../../lib/dbus/bus.ts';
import type { MethodCall } from '../../lib/dbus/connection.ts';
import { KubeletError } from '../../lib/errors.ts';
import { descriptorTransport } from '../descriptor-transport.ts';
import { UnitManager } from './unit-manager.ts';

export type SystemBus = {
  readonly bus: Bus;
  readonly units: UnitManager;
  /** On a connection of its own, ended with the answer. Returns how to close the file. */
  callForFile(call: MethodCall, signal: AbortSignal): Promise<() => void>;
};

/** Nothing is connected before the first call. */
export function systemBus(clock: Clock, address = process.env['DBUS_SYSTEM_BUS_ADDRESS']): SystemBus {
  const bus = new Bus(clock, { address });
  return {
    bus,
    units: new UnitManager(bus, clock),
    callForFile: async (call, signal) => {
      const own = new Bus(clock, { address, open: descriptorTransport(clock) });
      try {
        const { body, descriptors } = await own.call(call, signal);
        const fd = descriptors[Number(body[0])];
        for (const one of descriptors) if (one !== fd) closeSync(one);
        if (fd === undefined) throw new KubeletError('unavailable', `${call.member} brought no open file`);
        return closeOnce(fd);
      } finally {
        await own.close();
      }
    },
  };
}

/** A number closed twice may be somebody else's file by then. */
function closeOnce(fd: number): () => void {
  let open = true;
  return () => {
    if (open) closeSync(fd);
    open = false;
  };
}
