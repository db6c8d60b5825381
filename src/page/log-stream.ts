// The logs of one or more containers of a pod, in one stream by time: what is there to begin with, then what comes.
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import type { Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import { beginEvents, send } from './live.ts';
import type { LogSource } from './ports.ts';

export type LogLine = { readonly c: string; readonly t: string; readonly s: string };
export type LogRequest = {
  readonly containers: readonly string[];
  readonly follow: boolean;
  readonly previous: boolean;
  readonly tailLines: number;
};

const GATHER_MS = 100;
const MAX_BATCH = 2000;

export const MAX_TAIL_LINES = 10_000;

/** Complete lines out of chunks that may end anywhere. */
export class LineReader {
  #rest = '';
  readonly #decoder = new TextDecoder();
  readonly #container: string;

  constructor(container: string) {
    this.#container = container;
  }

  read(chunk: Buffer): LogLine[] {
    const parts = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n');
    this.#rest = parts.pop() ?? '';
    return parts.map((line) => lineOf(this.#container, line));
  }

  end(): LogLine[] {
    return this.#rest === '' ? [] : [lineOf(this.#container, this.#rest)];
  }
}

function lineOf(container: string, text: string): LogLine {
  const at = text.indexOf(' ');
  return { c: container, t: at < 0 ? text : text.slice(0, at), s: at < 0 ? '' : text.slice(at + 1) };
}

export const byTime = (lines: readonly LogLine[]): readonly LogLine[] =>
  lines.toSorted((a, b) => (a.t < b.t ? -1 : a.t > b.t ? 1 : 0));

export async function streamLogs(
  { clock, source }: { readonly clock: Clock; readonly source: LogSource },
  pod: Pod,
  request: LogRequest,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  beginEvents(response);
  let waiting: LogLine[] = [];
  let open = request.containers.length;
  let wake: () => void = () => undefined;
  signal.addEventListener('abort', () => wake(), { once: true });
  const readOne = async (container: string): Promise<void> => {
    const reader = new LineReader(container);
    try {
      for await (const chunk of source.read(pod, container, request, signal)) {
        waiting.push(...reader.read(chunk));
        // A container that writes faster than the browser reads is read more slowly.
        while (waiting.length > MAX_BATCH && !signal.aborted) await clock.sleep(GATHER_MS, signal);
        wake();
      }
      waiting.push(...reader.end());
    } catch (err) {
      if (!signal.aborted)
        send(response, { event: 'problem', data: JSON.stringify({ c: container, s: messageOf(err) }) });
    } finally {
      open--;
      wake();
    }
  };
  const reading = Promise.all(request.containers.map(readOne));
  while (!signal.aborted) {
    await clock.sleep(GATHER_MS, signal);
    const lines = byTime(waiting);
    waiting = [];
    if (lines.length > 0 && !send(response, { event: 'lines', data: JSON.stringify(lines) }))
      await once(response, 'drain', { signal });
    if (open === 0 && waiting.length === 0) break;
    if (waiting.length === 0) {
      await new Promise<void>((resolve) => {
        wake = resolve;
        if (open === 0 || waiting.length > 0 || signal.aborted) resolve();
      });
    }
  }
  await reading;
  send(response, { event: 'end', data: '{}' });
  response.end();
}
