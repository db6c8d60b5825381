// `kubelet-dev up | down | status | reset`: a one-node cluster on this machine; `top | why | …` look into its node.
import { systemClock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import { down, reset } from './cli/down.ts';
import { isNodeVerb, nodeTool } from './cli/node-tool.ts';
import { chosenDirectory, pathsBelow, realDirectory, type Paths } from './cli/paths.ts';
import { status } from './cli/status.ts';
import { ownCommand } from './cli/summary.ts';
import { up } from './cli/up.ts';

const HELP = `Usage: kubelet-dev <command> [options]

  up       start (or complete, or repair) the cluster and wait for the example pod
  down     stop it and leave nothing behind but files
  status   what runs and how to reach it
  reset    stop it and remove everything it made

  top | why [POD] | events [POD] | pulls | doctor | support-bundle
           what its node is doing and why: see kubelet node --help

Options:
  --dir=PATH      where it lives (KUBELET_DEV_DIR, default /var/lib/kubelet-dev)
  --no-install    do not install missing packages
  --no-example    do not run the example pod
  --timeout=SEC   how long up waits (default 120)
`;

type Options = { directory: string; install: boolean; example: boolean; timeoutMs: number };

function readOptions(args: readonly string[]): Options | string {
  const options: Options = {
    directory: chosenDirectory(process.env),
    install: process.env['KUBELET_DEV_NO_INSTALL'] !== '1',
    example: true,
    timeoutMs: 120_000,
  };
  for (const arg of args) {
    const [name, value = ''] = arg.split('=', 2);
    if (name === '--dir' && value !== '') options.directory = value;
    else if (arg === '--no-install') options.install = false;
    else if (arg === '--no-example') options.example = false;
    else if (name === '--timeout' && Number(value) > 0) options.timeoutMs = Number(value) * 1000;
    else return `unknown option ${arg}`;
  }
  options.directory = realDirectory(options.directory);
  return options;
}

const out = (text: string): void => void process.stdout.write(text);

async function runCommand(command: string, options: Options, paths: Paths, signal: AbortSignal): Promise<number> {
  const tell = (line: string): void => out(`${line}\n`);
  switch (command) {
    case 'up':
      await up(
        paths,
        options,
        { out, clock: systemClock, columns: process.stdout.isTTY ? process.stdout.columns : 0 },
        signal,
      );
      return 0;
    case 'status': {
      const { text, healthy } = await status(paths);
      out(text);
      return healthy ? 0 : 1;
    }
    case 'down':
    case 'reset': {
      const left = await (command === 'down' ? down : reset)(paths, tell, signal);
      for (const thing of left) tell(`could not remove: ${thing}`);
      if (left.length === 0) tell(command === 'down' ? 'stopped' : 'removed');
      return left.length === 0 ? 0 : 1;
    }
    default: {
      const isAsked = ['', '--help', '-h', 'help'].includes(command);
      if (!isAsked) process.stderr.write(`kubelet-dev: there is no command ${JSON.stringify(command)}\n`);
      out(HELP);
      return isAsked ? 0 : 2;
    }
  }
}

async function main(): Promise<number> {
  const [command = '', ...rest] = process.argv.slice(2);
  if (isNodeVerb(command)) return nodeTool(command, rest, chosenDirectory(process.env));
  const options = readOptions(rest);
  if (typeof options === 'string') {
    process.stderr.write(`kubelet-dev: ${options}\n${HELP}`);
    return 2;
  }
  // A reader that has seen enough (`| head`) is no reason to fail.
  process.stdout.on('error', () => undefined);
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.once('SIGTERM', () => stop.abort());
  try {
    return await runCommand(command, options, pathsBelow(options.directory), stop.signal);
  } catch (err) {
    if (stop.signal.aborted) {
      const [status, down] = ['status', 'down'].map((verb) => ownCommand(pathsBelow(options.directory), verb));
      out(`Interrupted; what was started goes on. See ${status}, or stop it with ${down}\n`);
      return 130;
    }
    process.stderr.write(`kubelet-dev: ${messageOf(err)}\n`);
    return 1;
  }
}

process.exitCode = await main();
