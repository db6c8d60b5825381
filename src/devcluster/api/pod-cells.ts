// The cells of `kubectl get pods`: READY, STATUS and RESTARTS are small stories of their own.
import { parseTimeMs } from '../../core/time.ts';
import { numberAt, recordAt, recordsAt, textAt, type ApiObject, type Json } from './objects.ts';

const NODE_LOST = 'NodeLost';
const condition = (pod: ApiObject, type: string): Json | undefined =>
  recordsAt(pod, 'status', 'conditions').find((c) => c['type'] === type);

function isSidecar(pod: ApiObject, name: unknown): boolean {
  const container = recordsAt(pod, 'spec', 'initContainers').find((c) => c['name'] === name);
  return container?.['restartPolicy'] === 'Always';
}

const sidecarStatuses = (pod: ApiObject): readonly Json[] =>
  recordsAt(pod, 'status', 'initContainerStatuses').filter((s) => isSidecar(pod, s['name']));

export function readyCell(pod: ApiObject): string {
  const sidecars = recordsAt(pod, 'spec', 'initContainers').filter((c) => c['restartPolicy'] === 'Always');
  const total = recordsAt(pod, 'spec', 'containers').length + sidecars.length;
  const statuses = [...recordsAt(pod, 'status', 'containerStatuses'), ...sidecarStatuses(pod)];
  return `${statuses.filter((s) => s['ready'] === true).length}/${total}`;
}

export function statusCell(pod: ApiObject): string {
  let reason = textAt(pod, 'status', 'reason') || textAt(pod, 'status', 'phase');
  if (condition(pod, 'PodScheduled')?.['reason'] === 'SchedulingGated') reason = 'SchedulingGated';
  const init = initReason(pod);
  if (init.initializing) reason = init.reason;
  else reason = mainReason(pod, reason);
  if (pod.metadata.deletionTimestamp !== undefined)
    return textAt(pod, 'status', 'reason') === NODE_LOST ? 'Unknown' : isFinished(pod) ? reason : 'Terminating';
  return reason;
}

const isFinished = (pod: ApiObject): boolean => ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));

function initReason(pod: ApiObject): { initializing: boolean; reason: string } {
  const statuses = recordsAt(pod, 'status', 'initContainerStatuses');
  for (const [index, status] of statuses.entries()) {
    const terminated = recordAt(status, 'state', 'terminated');
    const waiting = recordAt(status, 'state', 'waiting');
    if (numberAt(terminated, 'exitCode') === 0) continue;
    if (isSidecar(pod, status['name']) && status['started'] === true) continue;
    if (Object.keys(terminated).length > 0) return { initializing: true, reason: `Init:${terminatedText(terminated)}` };
    const reason = textAt(waiting, 'reason');
    if (reason !== '' && reason !== 'PodInitializing') return { initializing: true, reason: `Init:${reason}` };
    return { initializing: true, reason: `Init:${index}/${recordsAt(pod, 'spec', 'initContainers').length}` };
  }
  return { initializing: false, reason: '' };
}

function terminatedText(terminated: Json): string {
  const reason = textAt(terminated, 'reason');
  if (reason !== '') return reason;
  const signal = numberAt(terminated, 'signal') ?? 0;
  return signal !== 0 ? `Signal:${signal}` : `ExitCode:${numberAt(terminated, 'exitCode') ?? 0}`;
}

function mainReason(pod: ApiObject, fallback: string): string {
  let reason = fallback;
  let hasRunning = false;
  for (const status of recordsAt(pod, 'status', 'containerStatuses').toReversed()) {
    const waiting = textAt(status, 'state', 'waiting', 'reason');
    const terminated = recordAt(status, 'state', 'terminated');
    if (waiting !== '') reason = waiting;
    else if (Object.keys(terminated).length > 0) reason = terminatedText(terminated);
    else if (status['ready'] === true && recordAt(status, 'state')['running'] !== undefined) hasRunning = true;
  }
  if (reason === 'Completed' && hasRunning)
    return condition(pod, 'Ready')?.['status'] === 'True' ? 'Running' : 'NotReady';
  return reason;
}

/** `3`, or `3 (2m ago)` with the end of the last run. */
export function restartsCell(pod: ApiObject, nowMs: number, duration: (ms: number) => string): string {
  const inits = recordsAt(pod, 'status', 'initContainerStatuses');
  const running = statusCell(pod).startsWith('Init:')
    ? inits
    : [...recordsAt(pod, 'status', 'containerStatuses'), ...sidecarStatuses(pod)];
  let restarts = 0;
  let last = 0;
  for (const status of running) {
    restarts += numberAt(status, 'restartCount') ?? 0;
    last = Math.max(last, parseTimeMs(textAt(status, 'lastState', 'terminated', 'finishedAt') || undefined));
  }
  return restarts > 0 && last > 0 ? `${restarts} (${duration(nowMs - last)} ago)` : String(restarts);
}

export function readinessGatesCell(pod: ApiObject): string {
  const gates = recordsAt(pod, 'spec', 'readinessGates');
  if (gates.length === 0) return '<none>';
  const met = gates.filter((g) => condition(pod, textAt(g, 'conditionType'))?.['status'] === 'True');
  return `${met.length}/${gates.length}`;
}
