// The header blocks of calls. Those of a channel differ in their paths and deadlines, of which there are few: they are made once.
import { encodeHeaders } from '../http2/hpack-encoder.ts';

const MAX_TIMEOUT_VALUE = 99_999_999;
/** Who asks for deadlines of all lengths gets no more of them kept. */
const MAX_KEPT = 256;

/** The wire allows eight digits and a unit: milliseconds reach 27 hours, seconds three years, hours further than anybody waits. */
export function grpcTimeout(ms: number): string {
  const units = [
    ['m', 1],
    ['S', 1000],
    ['M', 60_000],
    ['H', 3_600_000],
  ] as const;
  for (const [unit, size] of units) {
    const value = Math.max(1, Math.ceil(ms / size));
    if (value <= MAX_TIMEOUT_VALUE) return `${value}${unit}`;
  }
  return `${MAX_TIMEOUT_VALUE}H`;
}

export class CallHeaders {
  readonly #userAgent: string;
  readonly #kept = new Map<string, Buffer>();

  constructor(userAgent: string) {
    this.#userAgent = userAgent;
  }

  of(path: string, deadlineMs?: number, metadata?: Readonly<Record<string, string>>): Buffer {
    if (metadata !== undefined) return this.#encode(path, deadlineMs, metadata);
    const key = deadlineMs === undefined ? path : `${path} ${deadlineMs}`;
    let block = this.#kept.get(key);
    if (block !== undefined) return block;
    block = this.#encode(path, deadlineMs, {});
    if (this.#kept.size < MAX_KEPT) this.#kept.set(key, block);
    return block;
  }

  #encode(path: string, deadlineMs: number | undefined, metadata: Readonly<Record<string, string>>): Buffer {
    const fields: Record<string, string> = {
      ':method': 'POST',
      ':scheme': 'http',
      ':path': path,
      ':authority': 'localhost',
      'content-type': 'application/grpc',
      te: 'trailers',
      'user-agent': this.#userAgent,
      ...metadata,
    };
    if (deadlineMs !== undefined) fields['grpc-timeout'] = grpcTimeout(deadlineMs);
    return encodeHeaders(Object.entries(fields));
  }
}
