// Whether the supervisor of a directory lives, and how to start and end one.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { KubeletError } from '../../lib/errors.ts';
import { childProcesses, endProcess, isAlive, processesWith } from './own-processes.ts';
import type { Paths } from './paths.ts';
import type { SupervisorState } from './supervisor.ts';

const STOP_PATIENCE_MS = 90_000;
/** A process is its own program within milliseconds of its start. */
const FORK_PATIENCE_MS = 30_000;
const SUPERVISOR = join(import.meta.dirname, 'supervisor.ts');

export async function supervisorState(paths: Paths): Promise<SupervisorState | undefined> {
  try {
    const state = JSON.parse(await readFile(paths.supervisor, 'utf8')) as SupervisorState;
    return (await isAlive(state)) ? state : undefined;
  } catch {
    // None yet, or killed while it wrote.
    return undefined;
  }
}

/** Supervisors of this directory, also those that have not written their state yet. */
export const supervisors = (paths: Paths): Promise<number[]> => processesWith(`${SUPERVISOR}\0${paths.directory}\0`);

/**
 * Ends what a supervisor that was killed has left behind. A child that it was starting at that moment looks like the supervisor
 * itself until it runs its own program, so that has to be over before the children are looked for.
 */
export async function endLeftChildren(paths: Paths, patienceMs: number): Promise<void> {
  const end = systemClock.monotonic() + FORK_PATIENCE_MS;
  for (;;) {
    const others = await supervisors(paths);
    const children = await childProcesses(paths);
    await Promise.all(children.map((pid) => endProcess(pid, patienceMs)));
    if (others.length + children.length === 0) return;
    if (systemClock.monotonic() > end)
      throw new KubeletError('unavailable', `processes go on: ${[...others, ...children]}`);
    await systemClock.sleep(25, new AbortController().signal);
  }
}

/** Starts one that outlives this command; false when one runs already. */
export async function startSupervisor(paths: Paths): Promise<boolean> {
  if ((await supervisors(paths)).length > 0) return false;
  await rm(paths.supervisor, { force: true });
  await mkdir(paths.logs, { recursive: true, mode: 0o700 });
  const out = openSync(paths.log('supervisor'), 'a', 0o600);
  const child = spawn(process.execPath, [SUPERVISOR, paths.directory], {
    detached: true,
    stdio: ['ignore', out, out],
    cwd: '/',
  });
  closeSync(out);
  child.unref();
  await systemClock.sleep(0, new AbortController().signal);
  return true;
}

export async function stopSupervisor(paths: Paths): Promise<void> {
  await Promise.all((await supervisors(paths)).map((pid) => endProcess(pid, STOP_PATIENCE_MS)));
  await rm(paths.supervisor, { force: true });
}
