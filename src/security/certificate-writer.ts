// Stores the certificate that is in use, again and again until that succeeds.
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { CertificateStore, KeptCertificate } from './certificate-store.ts';

type CertificateWriterDeps = {
  readonly store: CertificateStore;
  readonly clock: Clock;
  readonly log: Logger;
};

const POLL_MS = 1000;
const WRITE_AGAIN = { baseMs: 5000, maxMs: 5 * 60_000 };

export class CertificateWriter {
  readonly #deps: CertificateWriterDeps;
  readonly #name: string;
  readonly #backoff = new Backoff(WRITE_AGAIN);
  /** In use and not stored; `atMs` names its file, one for all attempts. */
  #waiting: { readonly certificate: KeptCertificate; readonly atMs: number } | undefined;
  #writing: Promise<void> | undefined;
  #againAt = -Infinity;

  constructor(deps: CertificateWriterDeps, name: string) {
    this.#deps = deps;
    this.#name = name;
  }

  /** Settles after the first attempt. */
  async write(certificate: KeptCertificate): Promise<void> {
    this.#waiting = { certificate, atMs: this.#deps.clock.now() };
    await this.#attempt();
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      if (this.#waiting !== undefined && clock.monotonic() >= this.#againAt) await this.#attempt();
      await clock.sleep(POLL_MS, signal);
    }
  }

  /** One at a time: the last certificate has to be the current one. */
  async #attempt(): Promise<void> {
    await this.#writing;
    this.#writing ??= this.#try().finally(() => (this.#writing = undefined));
    await this.#writing;
  }

  async #try(): Promise<void> {
    const { clock, log, store } = this.#deps;
    const given = this.#waiting;
    if (given === undefined) return;
    const { cert, key } = given.certificate;
    try {
      await store.save(cert, key, given.atMs);
      if (this.#backoff.failures > 0) log.info('certificate stored', { certificate: this.#name });
      this.#backoff.succeeded();
      if (this.#waiting === given) this.#waiting = undefined;
    } catch (err) {
      this.#againAt = clock.monotonic() + this.#backoff.failed(clock.monotonic());
      log.error('the certificate in use could not be stored; until it is, a restart uses the one before', {
        certificate: this.#name,
        path: store.currentPath,
        reason: messageOf(err),
      });
    }
  }
}
