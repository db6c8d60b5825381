// The agent's own serving certificate: `kubelet.crt` and `kubelet.key` in the certificate directory, made where they are missing
// or cannot be used. A disk that takes no files costs nothing but their names: the pair is used from memory.
import { mkdir, readFile, rename, rm } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { aborted } from '../lib/abort.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { issueCertificate, readCertificates, selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newRsaKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { parseKept, type CertificateFiles } from './certificate-store.ts';
import type { ServingPair } from './serving-certificate.ts';

export type SelfSignedDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly write?: typeof writeFileAtomic;
};

export type SelfSigned = {
  readonly files: CertificateFiles;
  /** A new pair that could not be written. */
  readonly unwritten?: ServingPair;
};

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
const WRITE_AGAIN = { baseMs: 10_000, maxMs: 10 * 60_000 };
const SET_ASIDE = '.unusable';

export async function selfSignedServing(deps: SelfSignedDeps, certDir: string, hostname: string): Promise<SelfSigned> {
  const { clock, log } = deps;
  const files = { cert: join(certDir, 'kubelet.crt'), key: join(certDir, 'kubelet.key') };
  const state = pairState(await readIfAny(files.cert), await readIfAny(files.key), clock.now());
  if (state.is === 'usable') return { files };
  if (state.is === 'refused')
    throw new KubeletError(
      'invalid',
      `the serving certificate ${files.cert} with the key ${files.key} cannot be used: ${state.reason}`,
    );
  if (state.is === 'unusable') {
    const kept = `${files.cert}${SET_ASIDE}, ${files.key}${SET_ASIDE}`;
    log.warn('the self-signed serving certificate is made anew', { path: files.cert, reason: state.reason, kept });
  }
  const pair = await newSelfSigned(hostname, clock.now());
  try {
    if (state.is === 'unusable') await setAside(files);
    await mkdir(certDir, { recursive: true, mode: 0o755 });
    await writePair(files, pair, deps.write);
    return { files };
  } catch (err) {
    log.error('the self-signed serving certificate could not be written', { path: files.cert, reason: messageOf(err) });
    return { files, unwritten: pair };
  }
}

export type PairState =
  | { readonly is: 'missing' | 'usable' }
  /** Made by a kubelet, or without any content that somebody else may have meant. */
  | { readonly is: 'unusable'; readonly reason: string }
  /** An administrator's certificate, which is not replaced. */
  | { readonly is: 'refused'; readonly reason: string };

export function pairState(cert: string | undefined, key: string | undefined, nowMs: number): PairState {
  if (cert === undefined && key === undefined) return { is: 'missing' };
  const issuer = issuerOf(cert ?? '');
  const isOwn = issuer === undefined || /-ca@\d+$/.test(issuer);
  try {
    if (cert === undefined || key === undefined)
      throw new KubeletError('invalid', 'certificate and key must be supplied as a pair');
    const { notAfterMs } = parseKept(cert, key);
    if (nowMs < notAfterMs || !isOwn) return { is: 'usable' };
    return { is: 'unusable', reason: `expired on ${new Date(notAfterMs).toISOString()}` };
  } catch (err) {
    return { is: isOwn ? 'unusable' : 'refused', reason: messageOf(err) };
  }
}

/** Undefined for what is no certificate. */
function issuerOf(text: string): string | undefined {
  try {
    return readCertificates(text)[0]?.issuer;
  } catch {
    return undefined; // damaged
  }
}

async function setAside(files: CertificateFiles): Promise<void> {
  for (const path of [files.cert, files.key])
    await rename(path, `${path}${SET_ASIDE}`).catch((err: unknown) => {
      if (errnoOf(err) !== 'ENOENT') throw err;
    });
}

/** Both or none: a half that was written is removed. */
async function writePair(files: CertificateFiles, pair: ServingPair, write = writeFileAtomic): Promise<void> {
  try {
    await write(files.key, pair.key, 0o600);
    await write(files.cert, pair.cert, 0o644);
  } catch (err) {
    for (const path of [files.cert, files.key]) await rm(path, { force: true });
    throw err;
  }
}

/** Writes a pair that could not be written, unless an administrator has put one there since. */
export class SelfSignedWriter implements Runnable {
  readonly name = 'self-signed-serving';
  readonly #deps: SelfSignedDeps;
  readonly #files: CertificateFiles;
  readonly #pair: ServingPair;

  constructor(deps: SelfSignedDeps, files: CertificateFiles, pair: ServingPair) {
    this.#deps = deps;
    this.#files = files;
    this.#pair = pair;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    const backoff = new Backoff(WRITE_AGAIN);
    do await clock.sleep(backoff.failed(clock.monotonic()), signal);
    while (!signal.aborted && !(await this.#attempt()));
    await aborted(signal);
  }

  async #attempt(): Promise<boolean> {
    const { log, write } = this.#deps;
    const { cert, key } = this.#files;
    try {
      if (((await readIfAny(cert)) ?? (await readIfAny(key))) !== undefined) return true;
      await mkdir(join(cert, '..'), { recursive: true, mode: 0o755 });
      await writePair(this.#files, this.#pair, write);
      log.info('the self-signed serving certificate was written', { path: cert });
      return true;
    } catch (err) {
      log.debug('the self-signed serving certificate could not be written', { path: cert, reason: messageOf(err) });
      return false;
    }
  }
}

/** A leaf and the throw-away authority that signed it. */
export async function newSelfSigned(hostname: string, nowMs: number): Promise<ServingPair> {
  const validity = { notBeforeMs: nowMs - HOUR_MS, notAfterMs: nowMs - HOUR_MS + YEAR_MS };
  const seconds = Math.floor(nowMs / 1000);
  const [authority, keys] = await Promise.all([newRsaKeyPair(), newRsaKeyPair()]);
  const ca = selfSignedAuthority({ commonName: `${hostname}-ca@${seconds}` }, authority, validity);
  const leaf = issueCertificate(
    { certificatePem: ca, privateKey: authority.privateKey },
    {
      ...validity,
      subject: { commonName: `${hostname}@${seconds}` },
      publicKey: keys.publicKey,
      usages: ['serverAuth'],
      ...(isIP(hostname) === 0 ? { dnsNames: [hostname] } : { ipAddresses: [hostname] }),
    },
  );
  return { cert: leaf + ca, key: privateKeyPem(keys.privateKey) };
}

/** A directory in the place of a file has no content. */
async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    if (errnoOf(err) === 'EISDIR') return '';
    if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return undefined;
    throw err;
  }
}
