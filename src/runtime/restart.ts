// Whether a container is to be started (again), from its newest instance. Also asked by the status code.
import type { Container, Pod } from '../core/pod.ts';
import { restartsAfterExit } from '../core/restart-policy.ts';
import type { ObservedContainer } from '../core/snapshot.ts';

export function shouldRestart(container: Container, pod: Pod, newest: ObservedContainer | undefined): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  if (newest === undefined) return true;
  switch (newest.state) {
    case 'running':
      return false;
    case 'created':
    case 'unknown':
      return true;
    case 'exited':
      return restartsAfterExit(container, pod, newest.exitCode);
    default:
      return newest.state satisfies never;
  }
}

/** An init container that did not do its work. */
export const initFailed = (seen: ObservedContainer): boolean =>
  seen.state === 'unknown' || (seen.state === 'exited' && (seen.exitCode !== 0 || seen.reason === 'OOMKilled'));
