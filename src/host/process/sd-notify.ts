// What systemd wants to hear from a service: ready, stopping, still alive.
import { toolEnvironment } from '../../lib/child-environment.ts';
import { isFault } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { sendUnixDatagram } from '../libc.ts';

export type SystemdState = 'READY=1' | 'STOPPING=1' | 'WATCHDOG=1';

export interface Systemd {
  /** Does nothing when the process was not started by systemd. Never throws. */
  notify(state: SystemdState): void;
  /** How often systemd wants a sign of life, or undefined. */
  readonly watchdogMs: number | undefined;
}

export function systemdOf(env: NodeJS.ProcessEnv, pid: number, log: Logger): Systemd {
  const socket = env['NOTIFY_SOCKET'];
  const usec = Number(env['WATCHDOG_USEC'] ?? '');
  const forUs = env['WATCHDOG_PID'] === undefined || Number(env['WATCHDOG_PID']) === pid;
  return {
    watchdogMs: socket !== undefined && Number.isFinite(usec) && usec > 0 && forUs ? usec / 1000 : undefined,
    notify(state) {
      if (socket === undefined || socket === '') return;
      try {
        sendUnixDatagram(socket, state);
      } catch (err) {
        if (isFault(err, 'unimplemented')) notifyByCommand(state, pid, log);
        else log.warn('could not tell systemd', { state, err });
      }
    },
  };
}

function notifyByCommand(state: SystemdState, pid: number, log: Logger): void {
  const { spawn } = process.getBuiltinModule('node:child_process');
  const child = spawn('systemd-notify', [`--pid=${pid}`, state], {
    stdio: 'ignore',
    env: toolEnvironment(['NOTIFY_SOCKET']),
  });
  child.once('error', (err) => log.warn('could not tell systemd', { state, err }));
}
