// A request's body, whole, up to a limit.
import type { IncomingMessage } from 'node:http';
import { KubeletError } from '../lib/errors.ts';

/** Rejects with `exhausted` when it is longer. */
export async function bodyOf(request: IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > maxBytes) throw new KubeletError('exhausted', `the body is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}
