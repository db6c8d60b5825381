// The CA that client certificates are held against, re-read when its file changes. A file that is not usable leaves the
// old one in force.
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';

export type ClientCaDeps = { readonly clock: Clock; readonly log: Logger; readonly onChange: () => void };

const LOOK_EVERY_MS = 10_000;
const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

export class ClientCaFile implements Runnable {
  readonly name = 'client-ca-file';
  readonly #deps: ClientCaDeps;
  readonly #path: string;
  #pem = '';

  constructor(deps: ClientCaDeps, path: string) {
    this.#deps = deps;
    this.#path = path;
  }

  get pem(): string {
    return this.#pem;
  }

  /** Rejects when there is no certificate in the file. */
  async load(): Promise<void> {
    try {
      this.#pem = await readBundle(this.#path);
    } catch (err) {
      throw new KubeletError('invalid', `unable to load client CA file ${this.#path}: ${messageOf(err)}`, {
        cause: err,
      });
    }
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    return runEvery(
      clock,
      log,
      { name: this.name, everyMs: LOOK_EVERY_MS, delayFirst: true },
      async () => {
        const pem = await readBundle(this.#path);
        if (pem === this.#pem) return;
        this.#pem = pem;
        log.info('client CA changed', { path: this.#path });
        this.#deps.onChange();
      },
      signal,
    );
  }
}

async function readBundle(path: string): Promise<string> {
  const text = await readFile(path, 'utf8');
  const certificates = text.match(CERTIFICATE) ?? [];
  if (certificates.length === 0) throw new KubeletError('invalid', 'data does not contain any valid certificates');
  for (const certificate of certificates) void new X509Certificate(certificate);
  return certificates.join('\n');
}
