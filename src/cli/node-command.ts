// `kubelet node …`: one command from its arguments to its exit code.
import type { KubeEvent } from '../core/node.ts';
import type { PullView } from '../images/pull-progress.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { NowView, PodsView, ProblemView, WorkersView } from '../page/model.ts';
import { NODE_HELP, podOf, readArguments, type NodeArguments } from './arguments.ts';
import { doctor } from './doctor/doctor.ts';
import { socketClient, type Ask } from './socket-client.ts';
import { writeBundle } from './support-bundle.ts';
import { cut } from './table.ts';
import { eventsText, manifestsText, pullsText, topText, whyAllText, whyText, type NamedWhy } from './texts.ts';

export type CliIo = {
  readonly out: (text: string) => void;
  readonly err: (text: string) => void;
  readonly columns: number;
  readonly rows: number;
  readonly isTerminal: boolean;
};

export type CliDeps = { readonly clock: Clock; readonly io: CliIo };

const CODES = { wrong: 1, usage: 2, unreachable: 3, noPod: 4 } as const;
const EVERY_MS = 2000;
const CLEAR = '\u001B[H';
const CLEAR_LINE = '\u001B[K';
const CLEAR_BELOW = '\u001B[J';
/** Everything below is drawn beside what was on the screen, which comes back afterwards. */
const OTHER_SCREEN = '\u001B[?1049h\u001B[?25l';
const FORMER_SCREEN = '\u001B[?25h\u001B[?1049l';

/** What one look gives: for people, for programs, and whether something is wrong. */
type Look = { readonly text: string; readonly json: unknown; readonly code?: number };

export async function nodeCommand(argv: readonly string[], deps: CliDeps, signal: AbortSignal): Promise<number> {
  const { out, err } = deps.io;
  const args = readArguments(argv);
  if (typeof args === 'string') {
    if (args === '') out(NODE_HELP);
    else err(`kubelet node: ${args}\n\n${NODE_HELP}`);
    return args === '' ? 0 : CODES.usage;
  }
  try {
    return await run(args, deps, signal);
  } catch (problem) {
    if (signal.aborted) return 0;
    err(`kubelet node: ${messageOf(problem)}\n`);
    if (isFault(problem, 'unavailable', 'denied', 'deadline')) return CODES.unreachable;
    return isFault(problem, 'notFound') ? CODES.noPod : CODES.wrong;
  }
}

async function run(args: NodeArguments, deps: CliDeps, signal: AbortSignal): Promise<number> {
  const ask = socketClient(args.socket);
  if (args.command === 'support-bundle') return bundle(args, deps, ask, signal);
  const look = (): Promise<Look> => LOOKS[args.command as keyof typeof LOOKS](args, deps, ask, signal);
  const live = args.watch ?? (deps.io.isTerminal && ['top', 'pulls'].includes(args.command));
  if (live && args.output === 'text') return watch(look, deps, signal);
  const { text, json, code = 0 } = await look();
  deps.io.out(args.output === 'json' ? `${JSON.stringify(json)}\n` : printable(text));
  return code;
}

/** Draws anew until it is interrupted. In a pipe each drawing follows the last. */
async function watch(look: () => Promise<Look>, { clock, io }: CliDeps, signal: AbortSignal): Promise<number> {
  if (io.isTerminal) io.out(OTHER_SCREEN);
  try {
    while (!signal.aborted) {
      const text = printable((await look()).text);
      io.out(io.isTerminal ? drawn(text, io) : text);
      await clock.sleep(EVERY_MS, signal);
    }
  } finally {
    if (io.isTerminal) io.out(FORMER_SCREEN);
  }
  return 0;
}

/** Texts of pods and images are anybody's: none of them may speak to the terminal. */
const printable = (text: string): string => text.replace(/[^\P{Cc}\n]/gu, '\uFFFD');

function drawn(text: string, { columns, rows }: CliIo): string {
  const lines = cut(text.trimEnd(), columns)
    .split('\n')
    .slice(0, rows - 1);
  return `${CLEAR}${lines.map((line) => `${line}${CLEAR_LINE}\n`).join('')}${CLEAR_BELOW}`;
}

type LookAt = (args: NodeArguments, deps: CliDeps, ask: Ask, signal: AbortSignal) => Promise<Look>;

const LOOKS: Readonly<Record<'top' | 'why' | 'events' | 'pulls' | 'doctor', LookAt>> = {
  top: async (_args, _deps, ask, signal) => {
    try {
      const [now, pods] = await Promise.all([
        read<NowView>(ask, '/page/api/now', signal),
        read<PodsView>(ask, '/page/api/pods', signal),
      ]);
      return { text: topText(now, pods), json: { now, pods: pods.pods } };
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
      throw new KubeletError('internal', 'this kubelet does not show its views: is enableDebuggingHandlers off?');
    }
  },
  why: async (args, _deps, ask, signal) => {
    const pod = podOf(args);
    if (pod === undefined) {
      const all = await read<{ pods: readonly NamedWhy[] }>(ask, '/debug/why', signal);
      const problems = await manifestProblems(ask, signal);
      const isBad = all.pods.some(isWrong) || problems.some((p) => p.severity === 'error');
      const text = whyAllText(all.pods) + manifestsText(problems);
      return { text, json: { ...all, problems }, code: isBad ? CODES.wrong : 0 };
    }
    const path = `/debug/why/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}`;
    const found = await read<NamedWhy>(ask, path, signal);
    return { text: whyText(found), json: found, code: isWrong(found) ? CODES.wrong : 0 };
  },
  events: async (args, { clock }, ask, signal) => {
    const pod = podOf(args);
    const only = pod ?? (args.namespace === undefined ? {} : { namespace: args.namespace });
    const found = await read<{ events: readonly KubeEvent[] }>(
      ask,
      `/debug/events?${new URLSearchParams({ ...only }).toString()}`,
      signal,
    );
    return { text: eventsText(found.events, clock.now()), json: found };
  },
  pulls: async (_args, { clock }, ask, signal) => {
    const found = await read<{ pulls: readonly PullView[] }>(ask, '/debug/pulls', signal);
    return { text: pullsText(found.pulls, clock.now()), json: found };
  },
  doctor: async (args, { clock }, ask, signal) => {
    const { text, findings, failed } = await doctor({ clock, ask }, args, signal);
    return { text, json: { findings }, code: failed ? CODES.wrong : 0 };
  },
};

/** None where the kubelet does not show its views. */
async function manifestProblems(ask: Ask, signal: AbortSignal): Promise<readonly ProblemView[]> {
  try {
    return (await read<WorkersView>(ask, '/page/api/workers', signal)).problems;
  } catch (err) {
    if (isFault(err, 'notFound')) return [];
    throw err;
  }
}

const isWrong = ({ why: { state } }: NamedWhy): boolean => ['failed', 'failing', 'waiting'].includes(state);

const read = async <T>(ask: Ask, path: string, signal: AbortSignal): Promise<T> =>
  JSON.parse(await ask(path, signal)) as T;

async function bundle(args: NodeArguments, { clock, io }: CliDeps, ask: Ask, signal: AbortSignal): Promise<number> {
  const { file, contents, missing } = await writeBundle({ clock, ask }, args, signal);
  if (args.output === 'json') io.out(`${JSON.stringify({ file, contents, missing })}\n`);
  else {
    io.out(
      `${file}: ${contents.length} files, without secrets: no environment, arguments, logs or annotations of pods\n`,
    );
    for (const { name, why } of missing) io.err(`left out: ${name}: ${why}\n`);
  }
  return 0;
}
