// `kubelet-dev up`: from whatever state the machine is in to a ready node with the example pod running.
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { execFile } from 'node:child_process';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { apiIsReady } from './client.ts';
import { ensureExample, exampleAnswers, exampleState, exampleText, nodeIsReady } from './example.ts';
import { exampleClaimText } from './example-claim.ts';
import { checkMachine, missingPackages, type Check } from './machine.ts';
import { canInstall, installPackages } from './packages.ts';
import { notOurs, ownerOf } from './ownership.ts';
import type { Paths } from './paths.ts';
import { Progress, type Terminal } from './progress.ts';
import { childProcesses } from './own-processes.ts';
import { takenText, tryPort, type NamedPort } from './ports.ts';
import { newSettings, portsOf, readSettings, SHARED_DIRECTORIES, writeSettings, type Settings } from './settings.ts';
import { startSupervisor, supervisorState } from './state.ts';
import { ownCommand, summary } from './summary.ts';

export type UpOptions = { readonly install: boolean; readonly example: boolean; readonly timeoutMs: number };

/** A supervisor that ends while the cluster is waited for is started again, but not for ever. */
const MOST_RESTARTS = 3;

const run = promisify(execFile);

export async function up(paths: Paths, options: UpOptions, io: Terminal, signal: AbortSignal): Promise<void> {
  const progress = new Progress(io);
  try {
    const alive = await supervisorState(paths);
    if (alive === undefined) await prepare(paths, options, io, progress, signal);
    const settings = await readSettings(paths);
    if (settings === undefined) throw new KubeletError('internal', `no settings in ${paths.directory}`);
    if (alive === undefined && (await startSupervisor(paths)))
      progress.tell('starting containerd, the API server, the CSI driver and the kubelet');
    await waitForCluster(paths, settings, options, io, progress, signal);
    io.out(summary(paths, settings, options.example ? (await exampleState(paths)).ip : undefined));
  } finally {
    progress.end();
  }
}

async function prepare(
  paths: Paths,
  options: UpOptions,
  io: Terminal,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  const checks = checkMachine(paths.directory);
  const missing = missingPackages(checks);
  if (!checks.every((c) => c.ok)) io.out(checkText(checks));
  refuse(checks.filter((c) => !c.ok && c.fatal === true));
  if ((await ownerOf(paths)) === 'others') throw notOurs(paths, 'name another place with --dir=PATH');
  if (missing.length > 0) {
    if (!options.install || !canInstall())
      throw new KubeletError(
        'unavailable',
        `missing packages; install them with: apt-get install ${missing.join(' ')}`,
      );
    const tell = (line: string): void => progress.tell(line);
    await progress.during('apt-get', installPackages(missing, tell, signal));
    refuse(checkMachine(paths.directory).filter((c) => !c.ok));
  }
  await mkdir(paths.directory, { recursive: true });
  await chmod(paths.directory, 0o711);
  // Settings come first: they show whose the directory is.
  const known = await readSettings(paths);
  if (known !== undefined) await refuseTakenPorts(paths, known);
  const installed = [...new Set([...(known?.installed ?? []), ...missing])];
  if (known === undefined) await writeSettings(paths, await newSettings(await machineBefore(), installed));
  else if (missing.length > 0) await writeSettings(paths, { ...known, installed });
  await mkdir(paths.podLogs, { recursive: true });
  for (const directory of [paths.logs, paths.manifests]) {
    await mkdir(directory, { recursive: true });
    await chmod(directory, 0o700);
  }
  await writeFile(paths.example, exampleText());
  await writeFile(paths.exampleClaim, exampleClaimText());
}

/** They were chosen when the cluster was made, and stand in kubeconfigs since. */
async function refuseTakenPorts(paths: Paths, settings: Settings): Promise<void> {
  // What is left of a run that was killed has them, and is ended first.
  if ((await childProcesses(paths)).length > 0) return;
  const taken: NamedPort[] = [];
  for (const named of portsOf(settings)) if ((await tryPort(named.port)) === undefined) taken.push(named);
  if (taken.length > 0) throw new KubeletError('unavailable', takenText(taken, ownCommand(paths, 'reset')));
}

function refuse(lacking: readonly Check[]): void {
  if (lacking.length > 0)
    throw new KubeletError('unavailable', lacking.map((c) => `${c.what}: ${c.detail}`).join('\n'));
}

function checkText(checks: readonly Check[]): string {
  const lines = checks.map((c) => `  ${c.ok ? 'ok     ' : 'missing'}  ${c.what.padEnd(12)} ${c.detail}`);
  return `This machine:\n${lines.join('\n')}\n`;
}

async function machineBefore(): Promise<Settings['before']> {
  const kernel: Record<string, string> = {};
  for (const name of ['net/ipv4/ip_forward']) {
    const value = await readFile(join('/proc/sys', name), 'utf8').catch(() => undefined);
    if (value !== undefined) kernel[name] = value.trim();
  }
  const rules = await run('iptables-save', ['-t', 'nat']).then(
    (r) => r.stdout,
    () => '',
  );
  return {
    kernel,
    hostPortChains: rules.includes('CNI-HOSTPORT-DNAT'),
    directories: SHARED_DIRECTORIES.filter((d) => existsSync(d)),
  };
}

/** Waits for each stage in turn and says when it is reached; a stage that takes long says what it waits for. */
async function waitForCluster(
  paths: Paths,
  settings: Settings,
  options: UpOptions,
  io: Terminal,
  progress: Progress,
  signal: AbortSignal,
): Promise<void> {
  let why = '';
  let restarts = 0;
  const end = io.clock.monotonic() + options.timeoutMs;
  const keepSupervisor = async (): Promise<void> => {
    if ((await supervisorState(paths)) !== undefined || !(await startSupervisor(paths))) return;
    if (++restarts > MOST_RESTARTS)
      throw new KubeletError('unavailable', `the supervisor ends again and again\n  log: ${paths.log('supervisor')}`);
    progress.tell('the supervisor has ended, starting it again');
  };
  const stage = async (done: string, check: () => Promise<boolean>): Promise<void> => {
    for (;;) {
      signal.throwIfAborted();
      if (await check().catch((err: unknown) => ((why = messageOf(err)), false))) return progress.tell(done);
      if (io.clock.monotonic() > end) throw new KubeletError('deadline', lateText(paths, done, why));
      progress.wait(`${done}${why === '' ? '' : ` (${why})`}`);
      await keepSupervisor();
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
  const logs = ['supervisor', 'containerd', 'api-server', 'csi-driver', 'kubelet']
    .map((n) => paths.log(n))
    .filter((p) => existsSync(p));
  return `not reached: ${stage}${why === '' ? '' : `\n  ${why}`}\n  logs: ${logs.join(' ')}`;
}
