// What happened on the node, from the kubelet's events and from what was seen of containers, in one sentence each. Pure.
import type { KubeEvent } from '../core/node.ts';
import { nanosToMs, parseTimeMs } from '../core/time.ts';
import type { ObservedContainer, PodSnapshot } from '../core/snapshot.ts';
import type { TimelineEntry, TimelineKind, Tone } from './model.ts';
import { containerOfFieldPath } from '../core/pod.ts';

export type NewEntry = Omit<TimelineEntry, 'id'>;

const KINDS: Readonly<Record<string, readonly [TimelineKind, Tone]>> = {
  Starting: ['agent', 'idle'],
  Rebooted: ['agent', 'warn'],
  Unhealthy: ['probe', 'warn'],
  ProbeWarning: ['probe', 'warn'],
  Evicted: ['eviction', 'bad'],
  Preempted: ['eviction', 'warn'],
  EvictionThresholdMet: ['pressure', 'bad'],
  NodeHasDiskPressure: ['pressure', 'bad'],
  NodeHasInsufficientMemory: ['pressure', 'bad'],
  NodeHasInsufficientPID: ['pressure', 'bad'],
  NodeHasNoDiskPressure: ['pressure', 'ok'],
  NodeHasSufficientMemory: ['pressure', 'ok'],
  NodeHasSufficientPID: ['pressure', 'ok'],
  NodeReady: ['agent', 'ok'],
  NodeNotReady: ['agent', 'bad'],
  SystemOOM: ['oom', 'bad'],
  OOMKilling: ['oom', 'bad'],
  ContainerGCFailed: ['other', 'warn'],
  ImageGCFailed: ['other', 'warn'],
  FreeDiskSpaceFailed: ['other', 'warn'],
  FailedCreatePodSandBox: ['other', 'warn'],
  FailedMount: ['other', 'warn'],
  FailedAttachVolume: ['other', 'warn'],
  NodeShutdown: ['agent', 'warn'],
};

/** Said better by what is seen of containers, or of no interest later. */
const LEFT_OUT = new Set(['Started', 'Created', 'Pulling', 'Pulled', 'Killing', 'BackOff', 'Scheduled']);

export function entryOfEvent(event: KubeEvent, nowMs: number): NewEntry | undefined {
  const { reason = '', message = '', type, involvedObject: about } = event;
  if (LEFT_OUT.has(reason)) return undefined;
  const known = KINDS[reason];
  if (known === undefined && type !== 'Warning') return undefined;
  const [kind, tone] = known ?? (['other', 'warn'] as const);
  const container = containerOfFieldPath(about.fieldPath ?? '');
  return {
    atMs: parseTimeMs(event.lastTimestamp) || nowMs,
    kind,
    tone,
    ...(about.kind === 'Pod' ? { pod: `${about.namespace ?? 'default'}/${about.name ?? ''}` } : {}),
    ...(container === undefined ? {} : { container }),
    text: `${reason}: ${message.trim().replace(/:$/, '')}`.slice(0, 400),
  };
}

/** Containers that began or ended between two looks. The first look at a pod after a start of the agent tells nothing. */
export function entriesOfChange(before: PodSnapshot | undefined, after: PodSnapshot | undefined): readonly NewEntry[] {
  if (after === undefined) return [];
  const old = new Map((before?.containers ?? []).map((c) => [c.id, c]));
  return after.containers.flatMap((c) => {
    const was = old.get(c.id)?.state;
    if (c.state === 'running' && was !== 'running') return [entryOf(after, c, 'start')];
    // One that ended before it was ever seen has started all the same.
    if (c.state === 'exited' && was !== 'exited')
      return [
        ...(was === 'running' || c.startedAt === 0n ? [] : [entryOf(after, c, 'start')]),
        entryOf(after, c, 'exit'),
      ];
    return [];
  });
}

function entryOf(pod: PodSnapshot, c: ObservedContainer, what: 'start' | 'exit'): NewEntry {
  const about = { pod: `${pod.namespace}/${pod.name}`, container: c.name };
  if (what === 'start')
    return {
      ...about,
      atMs: nanosToMs(c.startedAt),
      kind: 'start',
      tone: c.attempt > 0 ? 'busy' : 'ok',
      text: c.attempt > 0 ? `Started again, the ${ordinal(c.attempt)} restart` : 'Started',
    };
  const oom = c.reason === 'OOMKilled';
  return {
    ...about,
    atMs: nanosToMs(c.finishedAt),
    kind: oom ? 'oom' : 'exit',
    tone: c.exitCode === 0 ? 'idle' : 'bad',
    text: oom ? 'Killed: it needed more memory than its limit' : `Ended with ${exitText(c.exitCode)}`,
  };
}

const SIGNALS: Readonly<Record<number, string>> = { 137: 'SIGKILL', 143: 'SIGTERM', 139: 'SIGSEGV', 134: 'SIGABRT' };

const exitText = (code: number): string =>
  code === 0 ? 'exit code 0' : `exit code ${code}${SIGNALS[code] === undefined ? '' : ` (${SIGNALS[code]})`}`;

function ordinal(n: number): string {
  const tens = n % 100;
  if (tens >= 11 && tens <= 13) return `${n}th`;
  return `${n}${['th', 'st', 'nd', 'rd'][n % 10] ?? 'th'}`;
}
