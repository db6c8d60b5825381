// What `ps`, `pidof` and everybody who looks for the kubelet of a machine see: its name and its flags, instead of those of
// the runtime it is written for.
import { writeFileSync } from 'node:fs';

const NAME = 'kubelet';

export function nameProcess(argv: readonly string[]): void {
  process.title = [NAME, ...argv].join(' ');
  try {
    // The title becomes the name, too, cut off in the middle of the first flag.
    writeFileSync('/proc/self/comm', NAME);
  } catch {
    // Without /proc nobody can look.
  }
}
