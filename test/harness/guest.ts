// A QEMU guest that prints on its console and switches itself off. It never outlives the test that booted it, not even one
// that is killed.
import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const QEMU = 'qemu-system-x86_64';

export const noQemu = (): string | false =>
  spawnSync(QEMU, ['--version']).error !== undefined ? `${QEMU} is not installed` : false;

/**
 * Resolves to everything the guest printed until it was off. `GUEST_LOG=file` keeps it as it comes; `told` hears each line,
 * and what `answer` makes of one is typed on the console.
 */
export function bootGuest(
  args: readonly string[],
  giveUpMs: number,
  told: (line: string) => void = () => undefined,
  answer?: (line: string) => string | undefined,
): Promise<string> {
  return new Promise((resolve, reject) => {
    // The kernel ends the guest with its parent, whatever ends that.
    const guest = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', QEMU, ...args, '-nographic', '-nodefaults', '-serial', 'stdio'],
      {
        stdio: ['pipe', 'pipe', 'pipe'],
        timeout: giveUpMs,
        killSignal: 'SIGKILL',
      },
    );
    let output = '';
    const log = process.env['GUEST_LOG'];
    for (const stream of [guest.stdout, guest.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text;
        if (log !== undefined) appendFileSync(log, text);
      });
    guest.stdin.on('error', () => undefined); // it is off
    if (answer === undefined) guest.stdin.end();
    createInterface({ input: guest.stdout }).on('line', (line) => {
      told(line);
      const typed = answer?.(line);
      if (typed !== undefined) guest.stdin.write(typed);
    });
    guest.once('error', reject);
    // Not `exit`: the last lines come after it.
    guest.once('close', () => resolve(output));
  });
}
