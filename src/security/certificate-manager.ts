// Keeps one certificate valid: asks for the first, replaces it when most of its life is over, when it no longer fits its
// template, or when it has expired. Never gives up; what was valid stays in use until the new one is there.
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { subjectOf } from '../lib/x509/certificate.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import type { CertificateStore, KeptCertificate } from './certificate-store.ts';
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
  #current: KeptCertificate | undefined;
  #deadlineMs = 0;
  #renewErrors = 0;

  constructor(deps: CertificateManagerDeps, options: CertificateManagerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.name = options.name;
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

  /**
   * Reads what is on disk, else takes `given` (a kubeconfig's own certificate, to be replaced at once when it is not in a
   * file of ours). Call once, before anybody asks for `current`.
   */
  async load(given?: { certificate: KeptCertificate; replaceNow: boolean }): Promise<void> {
    try {
      const kept = await this.#deps.store.load();
      if (kept !== undefined) return this.#use(kept);
    } catch (err) {
      this.#deps.log.warn('the stored certificate is unusable, a new one is needed', { certificate: this.name, err });
    }
    if (given === undefined) return;
    this.#use(given.certificate);
    if (given.replaceNow) this.#deadlineMs = 0;
  }

  async run(signal: AbortSignal): Promise<void> {
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
    const { client, clock, log, store } = this.#deps;
    const keys = newKeyPair('ec');
    const usages = usagesFor(keys, this.#o.auth);
    const ask = { template, signerName: this.#o.signerName, usages, waitMs: WAIT_MS };
    const cert = await requestCertificate({ client: client(), clock, log }, ask, keys, signal);
    const kept = await store.save(cert, privateKeyPem(keys.privateKey), clock.now());
    this.#use(kept);
    log.info('certificate rotated', { certificate: this.name, until: kept.leaf.validTo });
    this.#deps.onRotated?.(kept);
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
