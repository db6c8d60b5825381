// Decodes small texts at once and large ones in a worker with limits on time and memory.
import { Worker } from 'node:worker_threads';
import { withDeadline } from '../lib/abort.ts';
import { partProgram } from '../lib/built.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { decodeText, locateFields, type Decoded, type Position } from './decode.ts';

export type DecodeJob =
  | { readonly do: 'decode'; readonly text: string }
  | { readonly do: 'locate'; readonly text: string; readonly document: number; readonly fields: readonly string[] };

/** Larger than any pod a person writes; at most some 40 ms of decoding. */
const INLINE_CHARS = 64 * 1024;
const WORKER_MS = 20_000;
const WORKER_MB = 512;

export class Decoder {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  decode(text: string, signal: AbortSignal): Promise<Decoded> {
    if (text.length <= INLINE_CHARS) return Promise.resolve(decodeText(text));
    return this.#inWorker<Decoded>({ do: 'decode', text }, signal);
  }

  locate(text: string, document: number, fields: readonly string[], signal: AbortSignal): Promise<readonly Position[]> {
    if (text.length <= INLINE_CHARS) return Promise.resolve(locateFields(text, document, fields));
    return this.#inWorker<readonly Position[]>({ do: 'locate', text, document, fields }, signal);
  }

  async #inWorker<T>(job: DecodeJob, signal: AbortSignal): Promise<T> {
    const { program, isText } = partProgram('decode-worker', import.meta.url);
    const worker = new Worker(program, {
      eval: isText,
      workerData: job,
      resourceLimits: { maxOldGenerationSizeMb: WORKER_MB },
    });
    try {
      return await withDeadline(this.#clock, signal, WORKER_MS, (scope) => answerOf<T>(worker, scope));
    } finally {
      await worker.terminate();
    }
  }
}

const answerOf = <T>(worker: Worker, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    worker.once('message', (answer: T) => resolve(answer));
    worker.once('error', (err) => reject(new KubeletError('invalid', 'too large to decode', { cause: err })));
    worker.once('exit', () => reject(new KubeletError('internal', 'the decoder ended without an answer')));
    signal.addEventListener('abort', () => reject(new KubeletError('deadline', 'takes too long to decode')), {
      once: true,
    });
  });
