// Whether the supervisor of a directory lives, and how to start and end one.
import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemClock } from '../../lib/clock.ts';
import { endProcess, isAlive, processesWith } from './own-processes.ts';
import type { Paths } from './paths.ts';
import type { SupervisorState } from './supervisor.ts';

const STOP_PATIENCE_MS = 90_000;
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
