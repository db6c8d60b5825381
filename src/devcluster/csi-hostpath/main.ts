// The driver as a process: `main.ts --node-id=NAME --directory=DIR --endpoint=SOCKET [--registry=DIR] [--name=DRIVER]
// [--max-volumes=N] [--backing=image|directory] [--attach=false] [--faults=FILE] [--record=FILE]`. Ends on SIGTERM;
// mounts and loop devices stay for the next one.
import { appendFileSync } from 'node:fs';
import { systemClock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { formatText, LeveledLogger } from '../../lib/logger.ts';
import { HostpathDriver } from './driver.ts';
import { FaultFile } from './faults.ts';

function readFlags(args: readonly string[]): (name: string) => string | undefined {
  const flags = new Map(args.map((arg) => [arg.slice(2).split('=', 1)[0] ?? '', arg.slice(arg.indexOf('=') + 1)]));
  return (name) => flags.get(name);
}

async function main(): Promise<void> {
  const flag = readFlags(process.argv.slice(2));
  const must = (name: string): string => {
    const value = flag(name);
    if (value === undefined || value === '') throw new Error(`--${name} is required`);
    return value;
  };
  const sink = {
    write: (line: Parameters<typeof formatText>[0]): void => void process.stderr.write(formatText(line, process.pid)),
  };
  const [faults, record, name, registry] = [flag('faults'), flag('record'), flag('name'), flag('registry')];
  const stop = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort());
  const driver = new HostpathDriver(
    {
      clock: systemClock,
      log: new LeveledLogger(systemClock, sink, () => 2).child({ component: 'csi-hostpath' }),
      die: () => process.kill(process.pid, 'SIGKILL'),
      ...(faults === undefined ? {} : { faults: new FaultFile(faults) }),
      // Written at once: a driver that is killed on demand must not lose the calls before it.
      ...(record === undefined ? {} : { record: (call) => appendFileSync(record, `${JSON.stringify(call)}\n`) }),
    },
    {
      nodeId: must('node-id'),
      directory: must('directory'),
      endpoint: must('endpoint'),
      maxVolumes: Number(flag('max-volumes') ?? 100),
      attach: flag('attach') !== 'false',
      ...(flag('backing') === undefined ? {} : { backing: flag('backing') === 'image' ? 'image' : 'directory' }),
      ...(name === undefined ? {} : { name }),
      ...(registry === undefined ? {} : { registry }),
    },
  );
  await driver.run(stop.signal);
}

main().catch((err: unknown) => {
  process.stderr.write(`csi-hostpath: ${messageOf(err)}\n`);
  process.exitCode = 1;
});
