// The logs of one or more containers of a pod, in one stream by time: what is there to begin with, then what comes.
import type { ServerResponse } from 'node:http';
import { once } from 'node:events';
import { SHOWN_LINE_CHARACTERS } from '../core/bounds.ts';
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

/** Of a line, its name and time, in the size of what waits. */
const LINE_SIZE = 128;
const GATHER_MS = 100;
/** Characters of lines that wait for the browser. */
const MAX_WAITING = 1024 * 1024;

export const MAX_TAIL_LINES = 10_000;

/** Complete lines out of chunks that may end anywhere. Each character is looked at once, and of a long line the end is dropped. */
export class LineReader {
  /** The beginning of a line that is not complete. */
  #rest = '';
  #isCut = false;
  readonly #decoder = new TextDecoder();
  readonly #container: string;

  constructor(container: string) {
    this.#container = container;
  }

  read(chunk: Buffer): LogLine[] {
    const parts = this.#decoder.decode(chunk, { stream: true }).split('\n');
    const lines: LogLine[] = [];
    for (const [i, part] of parts.entries()) {
      if (i > 0) lines.push(this.#take());
      this.#add(part);
    }
    return lines;
  }

  end(): LogLine[] {
    return this.#rest === '' ? [] : [this.#take()];
  }

  #add(part: string): void {
    const room = SHOWN_LINE_CHARACTERS - this.#rest.length;
    if (part.length > room) this.#isCut = true;
    if (room > 0) this.#rest += part.slice(0, room);
  }

  #take(): LogLine {
    const line = lineOf(this.#container, this.#isCut ? `${this.#rest}…` : this.#rest);
    this.#rest = '';
    this.#isCut = false;
    return line;
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
  let waitingSize = 0;
  const add = (lines: readonly LogLine[]): void => {
    for (const line of lines) {
      waiting.push(line);
      waitingSize += LINE_SIZE + line.s.length;
    }
  };
  let open = request.containers.length;
  let wake: () => void = () => undefined;
  signal.addEventListener('abort', () => wake(), { once: true });
  const readOne = async (container: string): Promise<void> => {
    const reader = new LineReader(container);
    try {
      for await (const chunk of source.read(pod, container, request, signal)) {
        add(reader.read(chunk));
        // A container that writes faster than the browser reads is read more slowly.
        while (waitingSize > MAX_WAITING && !signal.aborted) await clock.sleep(GATHER_MS, signal);
        wake();
      }
      add(reader.end());
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
    waitingSize = 0;
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
