// `kubelet-dev up`: from whatever state the machine is in to a ready node with the example pod running.
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { execFile } from 'node:child_process';
import type { Clock } from '../../lib/clock.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { apiIsReady } from './client.ts';
import { ensureExample, exampleAnswers, exampleState, exampleText, nodeIsReady } from './example.ts';
import { checkMachine, missingPackages, type Check } from './machine.ts';
import { canInstall, installPackages } from './packages.ts';
import type { Paths } from './paths.ts';
import { newSettings, readSettings, SHARED_DIRECTORIES, writeSettings, type Settings } from './settings.ts';
import { startSupervisor, supervisorState } from './state.ts';
import { summary } from './summary.ts';

export type Io = { readonly out: (text: string) => void; readonly clock: Clock };
export type UpOptions = { readonly install: boolean; readonly example: boolean; readonly timeoutMs: number };

const run = promisify(execFile);

export async function up(paths: Paths, options: UpOptions, io: Io, signal: AbortSignal): Promise<void> {
  const started = io.clock.monotonic();
  const tell = (line: string): void =>
    io.out(`[${((io.clock.monotonic() - started) / 1000).toFixed(1).padStart(5)}s] ${line}\n`);
  const alive = await supervisorState(paths);
  if (alive === undefined) await prepare(paths, options, io, tell, signal);
  const settings = await readSettings(paths);
  if (settings === undefined) throw new KubeletError('internal', `no settings in ${paths.directory}`);
  if (alive === undefined && (await startSupervisor(paths)))
    tell('starting containerd, the API server and the kubelet');
  await waitForCluster(paths, settings, options, io, tell, signal);
  io.out(summary(paths, settings, options.example ? (await exampleState(paths)).ip : undefined));
}

async function prepare(
  paths: Paths,
  options: UpOptions,
  io: Io,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let checks = checkMachine(paths.directory);
  const missing = missingPackages(checks);
  const allGood = checks.every((c) => c.ok);
  if (!allGood) io.out(checkText(checks));
  const fatal = checks.filter((c) => !c.ok && c.fatal === true);
  if (fatal.length > 0) throw new KubeletError('unavailable', fatal.map((c) => `${c.what}: ${c.detail}`).join('\n'));
  if (missing.length > 0) {
    if (!options.install || !canInstall())
      throw new KubeletError(
        'unavailable',
        `missing packages; install them with: apt-get install ${missing.join(' ')}`,
      );
    await installPackages(missing, tell, signal);
    checks = checkMachine(paths.directory);
    const still = checks.filter((c) => !c.ok);
    if (still.length > 0) throw new KubeletError('unavailable', still.map((c) => `${c.what}: ${c.detail}`).join('\n'));
  }
  await mkdir(paths.directory, { recursive: true });
  await chmod(paths.directory, 0o711);
  for (const directory of [paths.logs, paths.manifests, paths.podLogs]) await mkdir(directory, { recursive: true });
  const known = await readSettings(paths);
  const installed = [...new Set([...(known?.installed ?? []), ...missing])];
  if (known === undefined) await writeSettings(paths, await newSettings(await machineBefore(), installed));
  else if (missing.length > 0) await writeSettings(paths, { ...known, installed });
  await writeFile(paths.example, exampleText());
}

function checkText(checks: readonly Check[]): string {
  const lines = checks.map((c) => `  ${c.ok ? 'ok     ' : 'missing'}  ${c.what.padEnd(12)} ${c.detail}`);
  return `This machine:\n${lines.join('\n')}\n`;
}

async function machineBefore(): Promise<Settings['before']> {
  const ipForward = await readFile('/proc/sys/net/ipv4/ip_forward', 'utf8').catch(() => '');
  const rules = await run('iptables-save', ['-t', 'nat']).then(
    (r) => r.stdout,
    () => '',
  );
  return {
    ipForward: ipForward.trim(),
    hostPortChains: rules.includes('CNI-HOSTPORT-DNAT'),
    directories: SHARED_DIRECTORIES.filter((d) => existsSync(d)),
  };
}

/** Waits for each stage in turn and says when it is reached; a stage that takes long says what it waits for. */
async function waitForCluster(
  paths: Paths,
  settings: Settings,
  options: UpOptions,
  io: Io,
  tell: (line: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let why = '';
  const end = io.clock.monotonic() + options.timeoutMs;
  const stage = async (done: string, check: () => Promise<boolean>): Promise<void> => {
    let nextHint = io.clock.monotonic() + 5000;
    for (;;) {
      signal.throwIfAborted();
      if (await check().catch((err: unknown) => ((why = messageOf(err)), false))) return tell(done);
      if (io.clock.monotonic() > end) throw new KubeletError('deadline', lateText(paths, done, why));
      if (io.clock.monotonic() > nextHint) {
        nextHint += 5000;
        tell(`waiting: ${done}${why === '' ? '' : ` (${why})`}`);
      }
      await io.clock.sleep(50, signal);
    }
  };
  await stage(`API server answers on https://127.0.0.1:${settings.apiPort}`, () => apiIsReady(paths));
  await stage(`node ${settings.nodeName} is ready`, async () => {
    const supervisor = await supervisorState(paths);
    const node = await nodeIsReady(paths, settings.nodeName, supervisor?.startedMs);
    why = node.why;
    return node.ready && supervisor?.phase === 'running';
  });
  if (!options.example) return;
  await ensureExample(paths);
  await stage('example pod is Running', async () => {
    const pod = await exampleState(paths);
    why = pod.why;
    if (pod.phase === 'Failed' || pod.phase === '') await ensureExample(paths);
    return pod.phase === 'Running' && pod.ready && (await exampleAnswers(pod.ip));
  });
}

function lateText(paths: Paths, stage: string, why: string): string {
  const logs = ['supervisor', 'containerd', 'api-server', 'kubelet']
    .map((n) => paths.log(n))
    .filter((p) => existsSync(p));
  return `not reached: ${stage}${why === '' ? '' : `\n  ${why}`}\n  logs: ${logs.join(' ')}`;
}
