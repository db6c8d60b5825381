// Ends the process when there has been no valid client certificate for five minutes although the API server answers: only
// a new start reads the credentials that somebody may have laid down since.
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';

export type ClientCertificateWatchDeps = {
  readonly manager: { readonly valid: object | undefined; readonly serverAnswers: boolean };
  readonly clock: Clock;
  readonly log: Logger;
};

const LOOK_EVERY_MS = 10_000;
const GIVE_UP_MS = 5 * 60_000;

export class ClientCertificateWatch implements Runnable {
  readonly name = 'client-certificate-watch';
  readonly #deps: ClientCertificateWatchDeps;

  constructor(deps: ClientCertificateWatchDeps) {
    this.#deps = deps;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, manager } = this.#deps;
    let validAt = clock.monotonic();
    for (;;) {
      await clock.sleep(LOOK_EVERY_MS, signal);
      if (signal.aborted) return;
      const now = clock.monotonic();
      if (manager.valid !== undefined) validAt = now;
      if (now - validAt <= GIVE_UP_MS) continue;
      if (manager.serverAnswers)
        throw new KubeletError('denied', 'No valid client certificate is found and the server is responsive, exiting.');
      log.error(
        'No valid client certificate is found but the server is not responsive. A restart may be necessary to retrieve new initial credentials.',
      );
    }
  }
}
