// Tells when the memory use of a cgroup crosses a number of bytes, up or down. Only cgroup v1 has this.
import { closeSync, readSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { errnoOf } from '../../lib/errors.ts';
import { eventDescriptor } from '../libc.ts';

export interface MemoryCrossing {
  /** Whether it was crossed since this was last asked. */
  crossed(): boolean;
  close(): void;
}

const EVENT_BYTES = 8;

/** `dir`: the cgroup in the memory hierarchy. */
export async function watchMemoryUse(dir: string, bytes: number): Promise<MemoryCrossing> {
  const fd = eventDescriptor();
  try {
    // The kernel keeps what it needs of both files.
    await using usage = await open(join(dir, 'memory.usage_in_bytes'), 'r');
    await using control = await open(join(dir, 'cgroup.event_control'), 'w');
    await control.write(`${fd} ${usage.fd} ${bytes}`);
  } catch (err) {
    closeSync(fd);
    throw err;
  }
  const count = Buffer.alloc(EVENT_BYTES);
  return { crossed: () => hasEvent(fd, count), close: () => closeSync(fd) };
}

/** The descriptor never blocks: without an event there is nothing to read. */
function hasEvent(fd: number, into: Buffer): boolean {
  try {
    return readSync(fd, into) === EVENT_BYTES;
  } catch (err) {
    if (errnoOf(err) === 'EAGAIN') return false;
    throw err;
  }
}
