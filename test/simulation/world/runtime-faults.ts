// What may be wrong with the runtime: errors, slowness, and events that are lost, doubled or late.
import type { FakeCri } from '../../fakes/fake-cri.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { GrpcCode, GrpcError } from '../../../src/lib/grpc/status.ts';
import type { Scheduler } from '../engine/scheduler.ts';

const LATE_MS = 20_000;

export type RuntimeFaults = {
  /** Runs before a verb; a throw is its answer. */
  before: (verb: string) => void;
  slownessMs: number;
  /** Calls that were slow end now. */
  hurry: () => void;
  /** Of the runtime's process: calls that one began end with it. */
  generation: number;
  events: 'sent' | 'lost' | 'doubled' | 'late';
};

export function faultyRuntime(
  runtime: FakeCri,
  scheduler: Scheduler,
  onCall: (verb: string, request: unknown) => void,
): RuntimeFaults {
  const slow = new Set<() => void>();
  const hurry = (): void => {
    for (const end of slow) scheduler.after(1000 * scheduler.latency.next(), end, scheduler.world);
    slow.clear();
  };
  const faults: RuntimeFaults = { before: () => undefined, slownessMs: 0, hurry, generation: 0, events: 'sent' };
  const slowly = (ms: number): Promise<void> =>
    new Promise((resolve) => {
      slow.add(resolve);
      scheduler.after(ms, resolve, scheduler.world);
    });
  const reserved = new Set<string>();
  runtime.interfere = async (verb, request) => {
    onCall(verb, request);
    faults.before(verb);
    const { generation } = faults;
    const name = nameIn(verb, request);
    if (name !== undefined && reserved.has(name))
      throw new GrpcError(GrpcCode.Unknown, `failed to reserve name "${name}": name "${name}" is reserved`);
    if (name !== undefined) reserved.add(name);
    // A call that was given up goes on in the runtime all the same.
    if (faults.slownessMs > 0) await slowly(faults.slownessMs * scheduler.latency.next());
    else if (WORK.has(verb)) await systemClock.sleep(20 * scheduler.latency.next(), NEVER);
    if (name !== undefined) reserved.delete(name);
    if (generation !== faults.generation) throw new GrpcError(GrpcCode.Unavailable, 'the runtime has ended');
  };
  const send = runtime.state.onEvent;
  runtime.state.onEvent = (event) => {
    if (faults.events === 'lost') return;
    if (faults.events === 'late') {
      scheduler.after(LATE_MS * scheduler.latency.next(), () => send(event), scheduler.world);
      return;
    }
    send(event);
    if (faults.events === 'doubled') send(event);
  };
  return faults;
}

/** What a create takes for itself from its beginning on, as containerd has it. */
function nameIn(verb: string, request: unknown): string | undefined {
  const { config, podSandboxId = '' } = request as {
    config?: { metadata?: { uid?: string; name?: string; attempt?: number } };
    podSandboxId?: string;
  };
  if (verb !== 'RunPodSandbox' && verb !== 'CreateContainer') return undefined;
  const { uid = '', name = '', attempt = 0 } = config?.metadata ?? {};
  return `${podSandboxId}${uid}_${name}_${attempt}`;
}

const NEVER = new AbortController().signal;
/** Calls that take the runtime a moment. */
const WORK = new Set([
  'RunPodSandbox',
  'StopPodSandbox',
  'RemovePodSandbox',
  'CreateContainer',
  'StartContainer',
  'PullImage',
]);
