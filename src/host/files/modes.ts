// Which modes a new file really gets. The process's umask takes bits away; a mode it leaves whole need not be set again.
import { readFileSync } from 'node:fs';

let umask: number | undefined;

/** Whether what is made with this mode has it without a chmod. The set-id bits are never given to something new. */
export function survivesUmask(mode: number): boolean {
  umask ??= readUmask();
  return (mode & (umask | ~0o777)) === 0;
}

/** From /proc: the system call can only read it by changing it for a moment. Unknown counts as taking everything. */
function readUmask(): number {
  const text = /^Umask:\s+([0-7]+)$/m.exec(readFileSync('/proc/self/status', 'latin1'))?.[1];
  return text === undefined ? 0o777 : Number.parseInt(text, 8);
}
