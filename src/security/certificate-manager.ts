// Keeps one certificate valid: asks for the first, replaces it when most of its life is over, when it no longer fits its
// template, or when it has expired. Never gives up; what was valid stays in use until the new one is there. A signed
// certificate is used at once; storing it is repeated by itself and never leads to another request.
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { sameData } from '../lib/same-data.ts';
import type { Runnable } from '../lib/supervise.ts';
import { subjectOf } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { parseKept, type CertificateStore, type KeptCertificate } from './certificate-store.ts';
import { CertificateWriter } from './certificate-writer.ts';
import { prefersStored, type GivenCertificate } from './given-certificate.ts';
import { requestCertificate, usagesFor, type CertificateTemplate, type SigningClient } from './signing-request.ts';

export type CertificateManagerDeps = {
  store: CertificateStore;
  /** Asked anew for every request: who we are may have changed. */
  client: () => SigningClient;
  /** Undefined while there is nothing to ask for (the node has no address yet). */
  template: () => CertificateTemplate | undefined;
  clock: Clock;
  log: Logger;
  onRotated?: (certificate: KeptCertificate) => void;
};

export type CertificateManagerOptions = { name: string; signerName: string; auth: 'client auth' | 'server auth' };

const POLL_MS = 1000;
const WAIT_MS = 15 * 60_000;
const RETRY_WAITS = [2000, 4000, 8000, 16_000, 32_000];

export class CertificateManager implements Runnable {
  readonly name: string;
  readonly #deps: CertificateManagerDeps;
  readonly #o: CertificateManagerOptions;
  readonly #writer: CertificateWriter;
  #current: KeptCertificate | undefined;
  #deadlineMs = 0;
  #renewErrors = 0;
  #serverAnswers = false;
  #onReplaced: (livedMs: number) => void = () => undefined;
  #onIssued: () => void = () => undefined;

  constructor(deps: CertificateManagerDeps, options: CertificateManagerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.name = options.name;
    this.#writer = new CertificateWriter(deps, options.name);
  }

  /** The certificate in use; may have expired. */
  get current(): KeptCertificate | undefined {
    return this.#current;
  }

  /** The certificate in use if it is valid now. */
  get valid(): KeptCertificate | undefined {
    const now = this.#deps.clock.now();
    const kept = this.#current;
    return kept !== undefined && now < kept.notAfterMs ? kept : undefined;
  }

  get renewErrors(): number {
    return this.#renewErrors;
  }

  /** The last request was granted, or refused by the API server itself: it is there. */
  get serverAnswers(): boolean {
    return this.#serverAnswers;
  }

  /** Told how long a certificate had been valid when the next one took its place. */
  onReplaced(listener: (livedMs: number) => void): void {
    this.#onReplaced = listener;
  }

  /** Told when there is a new certificate, also the first one. */
  onIssued(listener: () => void): void {
    this.#onIssued = listener;
  }

  /**
   * Reads the store, else takes `given`, a kubeconfig's own certificate. An embedded one is replaced at once. Call once,
   * before `current` is read.
   */
  async load(given?: GivenCertificate): Promise<void> {
    try {
      const kept = await this.#deps.store.load();
      if (kept !== undefined && prefersStored(kept, given?.certificate, this.#deps.clock.now())) {
        this.#use(kept);
        if (given?.replaceNow === true && given.certificate.cert === kept.cert) this.#deadlineMs = 0;
        return;
      }
    } catch (err) {
      this.#deps.log.warn('the stored certificate is unusable, a new one is needed', { certificate: this.name, err });
    }
    if (given === undefined) return;
    this.#use(given.certificate);
    if (this.valid === undefined)
      this.#deps.log.warn('the certificate of the kubeconfig has expired', {
        certificate: this.name,
        until: given.certificate.leaf.validTo,
      });
    if (!given.replaceNow) return;
    this.#deadlineMs = 0;
    // Where kubeadm and others look for it.
    await this.#writer.write(given.certificate);
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#rotateWhenDue(signal), this.#writer.run(signal)]);
  }

  async #rotateWhenDue(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      const template = this.#deps.template();
      if (template !== undefined && this.#isDue(template)) await this.#rotate(signal);
      await clock.sleep(POLL_MS, signal);
    }
  }

  #isDue(template: CertificateTemplate): boolean {
    const kept = this.#current;
    return kept === undefined || this.#deps.clock.now() >= this.#deadlineMs || !covers(kept, template);
  }

  async #rotate(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    for (let attempt = 0; !signal.aborted; attempt++) {
      const template = this.#deps.template();
      if (template === undefined || !this.#isDue(template)) return;
      try {
        await this.#requestOnce(template, signal);
        return;
      } catch (err) {
        if (signal.aborted) return;
        this.#renewErrors++;
        log.error('certificate request failed', { certificate: this.name, reason: messageOf(err) });
      }
      await clock.sleep(RETRY_WAITS[Math.min(attempt, RETRY_WAITS.length - 1)] ?? 0, signal);
    }
  }

  async #requestOnce(template: CertificateTemplate, signal: AbortSignal): Promise<void> {
    const { client, clock, log } = this.#deps;
    const keys = newKeyPair('ec');
    const usages = usagesFor(keys, this.#o.auth);
    const onRefused = (err: unknown): void => {
      this.#serverAnswers = isFault(err, 'denied') || isFault(err, 'notFound');
    };
    const ask = { template, signerName: this.#o.signerName, usages, waitMs: WAIT_MS, onRefused };
    const cert = await this.#whileWanted(template, signal, (own) =>
      requestCertificate({ client: client(), clock, log }, ask, keys, own),
    );
    const kept = parseKept(cert, privateKeyPem(keys.privateKey));
    if (this.#current !== undefined) this.#onReplaced(clock.now() - this.#current.notBeforeMs);
    this.#use(kept);
    this.#serverAnswers = true;
    log.info('certificate rotated', { certificate: this.name, until: kept.leaf.validTo });
    this.#deps.onRotated?.(kept);
    this.#onIssued();
    await this.#writer.write(kept);
  }

  /** A request that somebody has to approve may wait long. When the node has another address by then, it is given up. */
  async #whileWanted<T>(
    asked: CertificateTemplate,
    signal: AbortSignal,
    ask: (own: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { clock } = this.#deps;
    const scope = childScope(signal);
    const watch = async (): Promise<void> => {
      while (!scope.signal.aborted) {
        await clock.sleep(POLL_MS, scope.signal);
        if (this.#isOutdated(asked))
          scope.abort(new KubeletError('conflict', 'what the certificate has to say changed before it was issued'));
      }
    };
    const watching = watch();
    try {
      return await ask(scope.signal);
    } finally {
      scope.abort();
      scope.release();
      await watching;
    }
  }

  #isOutdated(asked: CertificateTemplate): boolean {
    const wanted = this.#deps.template();
    if (wanted === undefined || sameData(wanted, asked)) return false;
    return this.#current === undefined || !covers(this.#current, wanted);
  }

  #use(kept: KeptCertificate): void {
    this.#current = kept;
    this.#deadlineMs = rotationDeadline(kept, this.#deps.clock.random());
  }
}

/** Between 70 and 90 % of the certificate's life, `random` in [0, 1). */
export const rotationDeadline = (kept: { notBeforeMs: number; notAfterMs: number }, random: number): number =>
  kept.notBeforeMs + (kept.notAfterMs - kept.notBeforeMs) * (0.7 + 0.2 * random);

/** Whether the certificate says everything the template asks for. What its signer put in besides does no harm. */
export function covers({ leaf }: Pick<KeptCertificate, 'leaf'>, template: CertificateTemplate): boolean {
  const subject = subjectOf(leaf);
  if (subject.commonName !== template.commonName) return false;
  if (!template.organizations.every((name) => subject.organizations.includes(name))) return false;
  const names = (leaf.subjectAltName ?? '').split(', ');
  return (
    template.dnsNames.every((name) => names.includes(`DNS:${name}`)) &&
    template.ipAddresses.every((ip) => leaf.checkIP(ip) !== undefined)
  );
}
