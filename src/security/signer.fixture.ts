// A signer in memory, and a certificate manager that asks it.
import assert from 'node:assert/strict';
import { RecordingClient, type Call } from '../kube/recording-client.ts';
import { systemClock } from '../lib/clock.ts';
import { silentLogger as log } from '../lib/logger.ts';
import type { ManualClock } from '../lib/manual-clock.ts';
import { issueCertificate, selfSignedAuthority } from '../lib/x509/certificate.ts';
import { readSigningRequest } from '../lib/x509/csr.ts';
import { newKeyPair } from '../lib/x509/keys.ts';
import { CertificateManager } from './certificate-manager.ts';
import { CertificateStore } from './certificate-store.ts';
import { CLIENT_SIGNER, type CertificateTemplate } from './signing-request.ts';

export const START = Date.UTC(2026, 5, 1);
export const HOUR = 3_600_000;
const never = new AbortController().signal;

/** Signs every request that is posted, or answers with `conditions`. */
export class Signer {
  readonly posted: { signerName: string; usages: string[]; subject: string }[] = [];
  conditions: object[] | undefined;
  readonly client: RecordingClient;
  readonly #clock: { now(): number };
  readonly #keys = newKeyPair();
  readonly #ca: string;
  #issued: object | undefined;

  constructor(clock: { now(): number }) {
    this.#clock = clock;
    const validity = { notBeforeMs: START - HOUR, notAfterMs: START + 1e12 };
    this.#ca = selfSignedAuthority({ commonName: 'ca' }, this.#keys, validity);
    this.client = new RecordingClient((call) => this.#answer(call));
  }

  #answer(call: Call): unknown {
    const end = { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } };
    if (call.verb === 'WATCH') {
      return [
        { type: 'ADDED', object: this.#issued },
        { type: 'BOOKMARK', object: { metadata: end } },
      ];
    }
    const body = call.body as {
      metadata: { name?: string };
      spec: { request: string; signerName: string; usages: string[] };
    };
    const request = readSigningRequest(Buffer.from(body.spec.request, 'base64').toString());
    const { commonName, organizations } = request.subject;
    this.posted.push({ ...body.spec, subject: `${commonName} ${organizations.join()} ${request.ipAddresses.join()}` });
    const now = this.#clock.now();
    const cert = issueCertificate(
      { certificatePem: this.#ca, privateKey: this.#keys.privateKey },
      {
        ...request,
        notBeforeMs: now,
        notAfterMs: now + 10 * HOUR,
        usages: ['clientAuth'],
      },
    );
    const metadata = { name: body.metadata.name ?? 'csr-x1', uid: `u${this.posted.length}`, resourceVersion: '1' };
    const status =
      this.conditions === undefined
        ? { certificate: Buffer.from(cert).toString('base64') }
        : { conditions: this.conditions };
    this.#issued = { metadata, spec: body.spec, status };
    return this.#issued;
  }
}

export function openManager(
  dir: string,
  template: () => CertificateTemplate | undefined,
  clock: ManualClock,
): {
  manager: CertificateManager;
  signer: Signer;
  store: CertificateStore;
  stop: () => Promise<void>;
  run: () => void;
} {
  const signer = new Signer(clock);
  const store = new CertificateStore(dir, 'kubelet-client');
  const manager = new CertificateManager(
    { store, client: () => signer.client, template, clock, log },
    { name: 'client', signerName: CLIENT_SIGNER, auth: 'client auth' },
  );
  const end = new AbortController();
  let running: Promise<void> | undefined;
  const stop = async (): Promise<void> => {
    end.abort();
    await running;
  };
  return { manager, signer, store, stop, run: () => void (running = manager.run(end.signal)) };
}

/** Time stands still while file operations are under way: only who waits for the clock has it moved on. */
export async function steps(clock: ManualClock, ms: number, until: () => boolean): Promise<void> {
  for (const end = performance.now() + 30_000; performance.now() < end && !until();) {
    if (clock.pending > 0) await clock.advance(ms);
    await systemClock.sleep(1, never);
  }
  assert.ok(until(), 'it never happened');
}
