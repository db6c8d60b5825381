// Whether anything in the kernel holds a block device: a mounted file system, also one of another mount namespace or one that
// left the mount table and is still being written out, a device mapper, mkfs(8), fsck(8). An exclusive open fails then.
import { partCommand } from '../../lib/built.ts';
import { KubeletError } from '../../lib/errors.ts';
import type { HostCommands } from '../mounts/commands.ts';

/** Exit codes of the child. */
export const HELD = 16;
export const UNKNOWN = 17;

export async function isDeviceHeld(commands: HostCommands, device: string, signal: AbortSignal): Promise<boolean> {
  const [command = '', ...args] = partCommand('held-device-child', import.meta.url);
  const { code, output } = await commands.run(command, [...args, device], signal);
  if (code === 0 || code === HELD) return code === HELD;
  throw new KubeletError('unavailable', `cannot find out whether ${device} is in use: ${output}`);
}
