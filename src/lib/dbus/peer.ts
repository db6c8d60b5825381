// What every connection answers, whatever else it serves (D-Bus specification, org.freedesktop.DBus.Peer): that it is there, and on
// which machine.
import { readFile } from 'node:fs/promises';
import type { Answer } from './connection.ts';
import type { Message } from './message.ts';

const INTERFACE = 'org.freedesktop.DBus.Peer';
const MACHINE_IDS = ['/etc/machine-id', '/var/lib/dbus/machine-id'];

/** Undefined for other calls. */
export function answerAsPeer(call: Message): Answer | Promise<Answer> | undefined {
  if (call.interface !== INTERFACE) return undefined;
  if (call.member === 'Ping') return {};
  return call.member === 'GetMachineId' ? machineId() : undefined;
}

async function machineId(): Promise<Answer> {
  for (const path of MACHINE_IDS) {
    const id = (await readFile(path, 'utf8').catch(() => '')).trim(); // many containers have none
    if (id !== '') return { signature: 's', body: [id] };
  }
  throw new Error('this machine has no id');
}
