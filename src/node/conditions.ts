// The node's four conditions from what was observed: pure. Each transition names the event that tells about it.
import type { NodeCondition } from '../core/node.ts';

export type Pressure = { readonly memory: boolean; readonly disk: boolean; readonly pid: boolean };

type Wording = {
  readonly type: string;
  readonly when: Readonly<Record<'True' | 'False', { reason: string; message: string; event: string }>>;
};

const WORDING: Readonly<Record<keyof Pressure, Wording>> = {
  memory: {
    type: 'MemoryPressure',
    when: {
      True: {
        reason: 'KubeletHasInsufficientMemory',
        message: 'kubelet has insufficient memory available',
        event: 'NodeHasInsufficientMemory',
      },
      False: {
        reason: 'KubeletHasSufficientMemory',
        message: 'kubelet has sufficient memory available',
        event: 'NodeHasSufficientMemory',
      },
    },
  },
  disk: {
    type: 'DiskPressure',
    when: {
      True: { reason: 'KubeletHasDiskPressure', message: 'kubelet has disk pressure', event: 'NodeHasDiskPressure' },
      False: {
        reason: 'KubeletHasNoDiskPressure',
        message: 'kubelet has no disk pressure',
        event: 'NodeHasNoDiskPressure',
      },
    },
  },
  pid: {
    type: 'PIDPressure',
    when: {
      True: {
        reason: 'KubeletHasInsufficientPID',
        message: 'kubelet has insufficient PID available',
        event: 'NodeHasInsufficientPID',
      },
      False: {
        reason: 'KubeletHasSufficientPID',
        message: 'kubelet has sufficient PID available',
        event: 'NodeHasSufficientPID',
      },
    },
  },
};

export type Conditions = { readonly conditions: readonly NodeCondition[]; readonly events: readonly string[] };

/**
 * Conditions of others stay where they are; ours keep their place or are appended in the fixed order. `notReady` lists
 * every reason against readiness, empty means ready.
 */
export function nodeConditions(
  before: readonly NodeCondition[],
  pressure: Pressure,
  notReady: readonly string[],
  now: string,
): Conditions {
  const conditions = [...before];
  const events: string[] = [];
  for (const key of ['memory', 'disk', 'pid'] as const) {
    const { type, when } = WORDING[key];
    const status = pressure[key] ? 'True' : 'False';
    const { reason, message, event } = when[status];
    const old = before.find((c) => c.type === type);
    const moved = old?.status !== status;
    put(
      conditions,
      moved || old === undefined
        ? { type, status, lastHeartbeatTime: now, lastTransitionTime: now, reason, message }
        : { ...old, lastHeartbeatTime: now },
    );
    if (moved) events.push(event);
  }
  const old = before.find((c) => c.type === 'Ready');
  const status = notReady.length === 0 ? 'True' : 'False';
  const kept = old?.status === status ? old.lastTransitionTime : undefined;
  put(conditions, {
    type: 'Ready',
    status,
    lastHeartbeatTime: now,
    lastTransitionTime: kept ?? now,
    reason: status === 'True' ? 'KubeletReady' : 'KubeletNotReady',
    message: status === 'True' ? 'kubelet is posting ready status' : aggregated(notReady),
  });
  if (old !== undefined && old.status !== status) events.push(status === 'True' ? 'NodeReady' : 'NodeNotReady');
  return { conditions, events };
}

/** One error as it is, several as `[a, b]`, each only once. */
function aggregated(errors: readonly string[]): string {
  const unique = [...new Set(errors)];
  return unique.length === 1 ? (unique[0] ?? '') : `[${unique.join(', ')}]`;
}

function put(conditions: NodeCondition[], condition: NodeCondition): void {
  const at = conditions.findIndex((c) => c.type === condition.type);
  if (at < 0) conditions.push(condition);
  else conditions[at] = condition;
}
