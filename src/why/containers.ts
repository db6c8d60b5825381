// Why a container does not run: it could not be made or started, or it ended. Pure.
import { humanSpan } from '../core/human.ts';
import type { ContainerStateTerminated, ContainerStatus } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { ContainerRule, PodFacts, Why } from './facts.ts';
import { eventText, lastEvent, nextTry, quote, retryOf, says, shortly } from './words.ts';

type StartCause = { readonly words: RegExp; readonly cause: string; readonly because: string; readonly todo: string };

/** Why it could not be configured, created or started: by reason, then by the words of the message. */
const START_CAUSES: Readonly<Record<string, readonly StartCause[]>> = {
  CreateContainerConfigError: [
    {
      words: /^secret .*not found|secrets? ".*" not found|couldn't find key .* in Secret/i,
      cause: 'SecretMissing',
      because: 'a secret that its environment refers to is not there',
      todo: 'Create the secret (or the key in it), or mark the reference optional.',
    },
    {
      words: /configmaps? ".*" not found|couldn't find key .* in ConfigMap/i,
      cause: 'ConfigMapMissing',
      because: 'a config map that its environment refers to is not there',
      todo: 'Create the config map (or the key in it), or mark the reference optional.',
    },
    {
      words: /runAsNonRoot/,
      cause: 'RunsAsRoot',
      because: 'it must not run as root (runAsNonRoot), but its image does',
      todo: 'Set runAsUser to a user id other than 0, or use an image with such a USER.',
    },
    {
      words: /subPath/i,
      cause: 'SubPathFailed',
      because: 'a subPath of one of its mounts could not be prepared',
      todo: 'Check the path inside the volume: it may not leave the volume, and must be of the right kind.',
    },
  ],
  CreateContainerError: [
    {
      words: /no command specified/i,
      cause: 'NoCommand',
      because: 'neither the image nor the pod says which program to run',
      todo: 'Set command in the container.',
    },
    {
      words: /is reserved for|name .* is already in use/i,
      cause: 'ContainerNameTaken',
      because: 'the runtime still has a container of this name',
      todo: 'It is removed by itself; if not, remove it with `crictl rm`.',
    },
  ],
  RunContainerError: [
    {
      words: /no such file or directory|executable file not found/i,
      cause: 'CommandNotFound',
      because: 'its program is not in the image',
      todo: 'Check command and args of the container against what the image has.',
    },
    {
      words: /permission denied/i,
      cause: 'CommandNotExecutable',
      because: 'its program may not be executed',
      todo: 'Check the file mode of the program in the image, and runAsUser.',
    },
    {
      words: /exec format error/i,
      cause: 'ImageWrongPlatform',
      because: 'its program is built for another processor',
      todo: 'Use an image built for the architecture of this node.',
    },
    {
      words: /not a directory|mountpoint|mounting/i,
      cause: 'MountIntoContainerFailed',
      because: 'a mount could not be made inside of it',
      todo: 'A volume mounted over a file must be a file (subPath), one over a directory a directory.',
    },
    {
      words: /memory|cgroup/i,
      cause: 'CgroupLimitFailed',
      because: 'its resource limits could not be applied',
      todo: 'Check the limits of the container: a memory limit of a few megabytes is too little to start with.',
    },
  ],
};

const START_REASONS: Readonly<Record<string, Omit<StartCause, 'words'>>> = {
  CreateContainerConfigError: {
    cause: 'ConfigInvalid',
    because: 'what it needs could not be put together',
    todo: 'See the evidence; it is tried again by itself.',
  },
  CreateContainerError: {
    cause: 'CreateFailed',
    because: 'the runtime could not create it',
    todo: 'See the evidence, and the log of the runtime.',
  },
  RunContainerError: {
    cause: 'StartFailed',
    because: 'the runtime could not start it',
    todo: 'See the evidence, and the log of the runtime.',
  },
  PreCreateHookError: {
    cause: 'DevicesNotReady',
    because: 'its devices or claims could not be prepared',
    todo: 'Look at the device plugin or DRA driver that owns them.',
  },
  PreStartHookError: {
    cause: 'DevicesNotReady',
    because: 'its devices could not be prepared before the start',
    todo: 'Look at the device plugin that owns them.',
  },
  PostStartHookError: {
    cause: 'PostStartHookFailed',
    because: 'its postStart hook failed, so it was stopped again',
    todo: 'Check the hook; what it printed is in the status of the pod.',
  },
};

/** What names the culprit fits into the sentence; the rest is evidence. */
const briefly = (message: string): string => (message === '' || message.length > 100 ? '' : ` (${message})`);

export const startFailed: ContainerRule = (facts, status) => {
  const { reason = '', message = '' } = status.state.waiting ?? {};
  const general = START_REASONS[reason];
  if (general === undefined) return undefined;
  const found = START_CAUSES[reason]?.find((c) => says(message, c.words)) ?? general;
  // What a hook printed is not repeated: hooks print what they were given.
  const isHook = reason === 'PostStartHookError';
  const failed = isHook ? lastEvent(facts, 'FailedPostStartHook') : undefined;
  return {
    state: 'failing',
    cause: found.cause,
    sentence: `Container ${quote(status.name)} cannot start because ${found.because}${isHook ? '' : briefly(message)}${nextTry(facts)}.`,
    evidence: [
      ...(isHook ? [] : [`${reason}: ${shortly(message, 600)}`]),
      ...(failed === undefined ? [] : [eventText(failed)]),
    ],
    todo: found.todo,
    container: status.name,
    ...retryOf(facts),
  };
};

type Ending = {
  readonly cause: string;
  readonly how: string;
  readonly todo: string;
  /** What happens to it next, where it cannot be said to be restarted. */
  readonly again?: string;
};

const SEE_LOGS = 'Look at what it wrote last: kubectl logs --previous.';

/** It was made, but its program never ran. */
function neverStarted({ message = '' }: ContainerStateTerminated): Ending {
  const general = { cause: 'StartFailed', because: 'the runtime could not start it', todo: 'See the evidence.' };
  const found = START_CAUSES['RunContainerError']?.find((c) => says(message, c.words)) ?? general;
  const exec = /exec: .*?(?=: unknown$|$)/m.exec(message)?.[0] ?? '';
  return {
    cause: found.cause,
    how: `cannot start because ${found.because}${briefly(exec)}`,
    todo: found.todo,
    again: 'is tried again',
  };
}

/** How a container came to its end, as far as its exit tells. */
function endingOf(facts: PodFacts, name: string, ended: ContainerStateTerminated): Ending {
  const liveness = facts.events.findLast(
    (e) =>
      e.reason === 'Killing' &&
      e.message?.includes('probe') === true &&
      e.involvedObject.fieldPath?.includes(`{${name}}`) === true,
  );
  if (ended.reason === 'OOMKilled' || (ended.exitCode === 137 && lastEvent(facts, 'OOMKilling') !== undefined))
    return {
      cause: 'OutOfMemory',
      how: `was killed because it needed more memory than ${limitText(facts, name)}`,
      todo: 'Raise the memory limit, or find out what in it needs so much.',
    };
  if (liveness !== undefined && ended.exitCode !== 0 && ended.exitCode < 256 && [137, 143].includes(ended.exitCode))
    return {
      cause: 'LivenessProbeFailed',
      how: 'was stopped because its liveness or startup probe failed',
      todo: 'Check the probe: its path and port, and whether its timeout and failureThreshold leave enough time.',
    };
  if (ended.reason === 'StartError' || ended.reason === 'ContainerCannotRun') return neverStarted(ended);
  if (ended.reason === 'ContainerStatusUnknown')
    return {
      cause: 'ContainerLost',
      how: 'was lost (the runtime no longer knows it)',
      todo: 'Usually the runtime or the machine was restarted; look at its log.',
    };
  return { ...exitMeaning(ended.exitCode), todo: exitTodo(ended.exitCode) };
}

const EXITS: Readonly<Record<number, readonly [cause: string, how: string]>> = {
  0: ['Completed', 'ends by itself without an error (exit code 0)'],
  126: ['CommandNotExecutable', 'ended because its program may not be executed (exit code 126)'],
  127: ['CommandNotFound', 'ended because its program was not found (exit code 127)'],
  134: ['Aborted', 'gave up with an assertion (SIGABRT, exit code 134)'],
  137: ['Killed', 'was killed (SIGKILL, exit code 137)'],
  139: ['Segfault', 'crashed with a memory access error (SIGSEGV, exit code 139)'],
  143: ['Terminated', 'was asked to stop (SIGTERM, exit code 143)'],
};

function exitMeaning(code: number): Omit<Ending, 'todo'> {
  const [cause, how] = EXITS[code] ?? ['ExitedWithError', `ends with exit code ${code}`];
  return { cause, how };
}

const exitTodo = (code: number): string =>
  code === 0 ? 'A container of a pod that restarts Always must keep running; use a Job for work that ends.' : SEE_LOGS;

const limitText = ({ pod }: PodFacts, name: string): string => {
  const container = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].find((c) => c.name === name);
  const limit = container?.resources?.limits?.['memory'] ?? pod.spec.resources?.limits?.['memory'];
  return limit === undefined ? 'the node had' : `its limit of ${limit}`;
};

const endedText = (ended: ContainerStateTerminated): string =>
  `last run: exit code ${ended.exitCode}${ended.reason === undefined ? '' : ` (${ended.reason})`}` +
  (ended.finishedAt === null ? '' : ` at ${ended.finishedAt}`) +
  (ended.message === undefined || ended.message === '' ? '' : `: ${shortly(ended.message, 400)}`);

/** How often, and how long a run lasted. */
function runText(status: ContainerStatus, ended: ContainerStateTerminated): string[] {
  const [startedMs, finishedMs] = [parseTimeMs(ended.startedAt), parseTimeMs(ended.finishedAt)];
  // What never ran is said to have begun with 1970.
  const lasted = startedMs <= 0 || finishedMs <= 0 ? [] : [`it ran for ${humanSpan(finishedMs - startedMs)}`];
  return [...(status.restartCount > 0 ? [`${status.restartCount} restarts so far`] : []), ...lasted];
}

export const crashLoop: ContainerRule = (facts, status, kind) => {
  if (status.state.waiting?.reason !== 'CrashLoopBackOff') return undefined;
  const ended = status.lastState.terminated;
  const what = `${kind === 'init' ? 'Init container' : 'Container'} ${quote(status.name)}`;
  const ending = ended === undefined ? undefined : endingOf(facts, status.name, ended);
  return {
    state: 'failing',
    cause: ending === undefined ? 'CrashLoop' : `CrashLoop${ending.cause}`,
    sentence: `${what} ${ending?.how ?? 'keeps ending'} and ${ending?.again ?? 'is restarted'} after a back-off${nextTry(facts)}.`,
    evidence: [
      ...(ended === undefined ? [] : [endedText(ended), ...runText(status, ended)]),
      shortly(status.state.waiting.message ?? ''),
      ...oomText(facts),
    ].filter((line) => line !== ''),
    todo: ending?.todo ?? SEE_LOGS,
    container: status.name,
    ...retryOf(facts),
  };
};

const oomText = (facts: PodFacts): string[] => {
  const oom = lastEvent(facts, 'OOMKilling');
  return oom === undefined ? [] : [eventText(oom)];
};

/** Ended, and either not started again yet or not at all. */
export const hasEndedBadly: ContainerRule = (facts, status, kind) => {
  const ended = status.state.terminated;
  if (ended === undefined || (ended.exitCode === 0 && kind === 'init')) return undefined;
  const ending = endingOf(facts, status.name, ended);
  const never =
    facts.pod.spec.restartPolicy === 'Never' || (facts.pod.spec.restartPolicy === 'OnFailure' && ended.exitCode === 0);
  const done = ended.exitCode === 0;
  const what = `${kind === 'init' ? 'Init container' : 'Container'} ${quote(status.name)}`;
  const how = done ? 'has ended without an error (exit code 0)' : ending.how;
  return {
    state: done ? 'progressing' : 'failing',
    cause: done ? 'ContainerCompleted' : ending.cause,
    sentence: `${what} ${how}${never ? ' and is not restarted' : ` and ${ending.again ?? 'is restarted'}${nextTry(facts)}`}.`,
    evidence: [endedText(ended), ...runText(status, ended), ...oomText(facts)],
    todo: done ? '' : ending.todo,
    container: status.name,
    ...(never ? {} : retryOf(facts)),
  };
};

/** Of a pod that failed as a whole: the container that says most about it. */
export function worstEnding(facts: PodFacts): Why | undefined {
  const { initContainerStatuses = [], containerStatuses = [] } = facts.status;
  const bad = [...initContainerStatuses, ...containerStatuses].find((s) => (s.state.terminated?.exitCode ?? 0) !== 0);
  const ended = bad?.state.terminated;
  if (bad === undefined || ended === undefined) return undefined;
  const ending = endingOf(facts, bad.name, ended);
  return {
    state: 'failed',
    cause: ending.cause,
    sentence: `The pod failed: container ${quote(bad.name)} ${ending.how} and is not restarted.`,
    evidence: [endedText(ended), ...runText(bad, ended), ...oomText(facts)],
    todo: ending.todo === SEE_LOGS ? 'Look at what it wrote last: kubectl logs.' : ending.todo,
    container: bad.name,
  };
}
