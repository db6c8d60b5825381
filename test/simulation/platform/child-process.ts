// node:child_process of the simulated machine: programs are answered by the host in memory.
import { EventEmitter } from 'node:events';
import { machine } from '../engine/machine.ts';

type Child = EventEmitter & {
  pid: number;
  stdout: EventEmitter & { destroy(): void; setEncoding(): void };
  stderr: EventEmitter & { destroy(): void; setEncoding(): void };
  stdin: EventEmitter & { end(): void; write(): void };
  unref(): void;
  kill(): boolean;
};

const stream = (): Child['stdout'] & Child['stdin'] =>
  Object.assign(new EventEmitter(), {
    destroy: () => undefined,
    setEncoding: () => undefined,
    end: () => undefined,
    write: () => undefined,
  });

export function spawn(command: string, args: readonly string[] = []): Child {
  const { scheduler, run } = machine();
  const child = Object.assign(new EventEmitter(), {
    pid: 100_000,
    stdout: stream(),
    stderr: stream(),
    stdin: stream(),
    unref: () => undefined,
    kill: () => true,
  });
  const { tookMs } = { tookMs: 1 + 3 * scheduler.latency.next() };
  scheduler.after(tookMs, () => {
    const { code, output } = run(command, args);
    if (code === -1)
      return void child.emit('error', Object.assign(new Error(`spawn ${command} ENOENT`), { code: 'ENOENT' }));
    if (output !== '') child.stdout.emit('data', Buffer.from(output));
    child.stdout.emit('end');
    child.stderr.emit('end');
    child.emit('exit', code, null);
    child.emit('close', code, null);
  });
  return child;
}

type Done = (err: Error | null, stdout: string, stderr: string) => void;

export function execFile(command: string, args: readonly string[], ...more: unknown[]): Child {
  const done = more.find((m) => typeof m === 'function') as Done | undefined;
  const child = spawn(command, args);
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.on('error', (err: Error) => done?.(err, '', ''));
  child.on('close', (code: number) =>
    done?.(code === 0 ? null : Object.assign(new Error(`${command} failed`), { code }), output, ''),
  );
  return child;
}

export function execFileSync(command: string, args: readonly string[] = []): string {
  const { code, output } = machine().run(command, args);
  if (code !== 0) throw Object.assign(new Error(`${command} failed`), { status: code });
  return output;
}

export const spawnSync = (command: string, args: readonly string[] = []): { status: number; stdout: string } => {
  const { code, output } = machine().run(command, args);
  return { status: code, stdout: output };
};
