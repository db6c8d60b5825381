// What the kubelet's own server shows: configured files (re-read when they change), a certificate the cluster signed, or
// a self-signed one that stays in the certificate directory.
import { mkdir, readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import type { NodeAddress } from '../core/node.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { issueCertificate, selfSignedAuthority } from '../lib/x509/certificate.ts';
import { newRsaKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { parseKept, type CertificateFiles } from './certificate-store.ts';
import type { CertificateTemplate } from './signing-request.ts';

export type ServingPair = { readonly cert: string; readonly key: string };

const RELOAD_MS = 10_000;
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** `tlsCertFile` and `tlsPrivateKeyFile`. A bad pair on disk does not replace a good one in use. */
export class ServingFiles implements Runnable {
  readonly name = 'serving-certificate-files';
  readonly #deps: { clock: Clock; log: Logger; onChange?: (pair: ServingPair) => void };
  readonly #paths: { cert: string; key: string };
  #current: ServingPair | undefined;
  /** As the files had it. They may change at any time, also while they are read. */
  #taken: ServingPair | undefined;

  constructor(
    deps: { clock: Clock; log: Logger; onChange?: (pair: ServingPair) => void },
    paths: { cert: string; key: string },
  ) {
    this.#deps = deps;
    this.#paths = paths;
  }

  get current(): ServingPair | undefined {
    return this.#current;
  }

  /** Fails when the files are unusable: at start that is fatal. */
  async load(): Promise<ServingPair> {
    return this.#take(await this.#read());
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const options = { name: this.name, everyMs: RELOAD_MS, delayFirst: true };
    return runEvery(clock, log, options, () => this.#reload(), signal);
  }

  async #reload(): Promise<void> {
    const now = await this.#read();
    if (now.cert === this.#taken?.cert && now.key === this.#taken.key) return;
    this.#deps.onChange?.(this.#take(now));
    this.#deps.log.info('serving certificate reloaded', { path: this.#paths.cert });
  }

  #take(texts: ServingPair): ServingPair {
    const { cert, key } = parseKept(texts.cert, texts.key);
    this.#taken = texts;
    this.#current = { cert, key };
    return this.#current;
  }

  async #read(): Promise<ServingPair> {
    const [cert, key] = await Promise.all([readFile(this.#paths.cert, 'utf8'), readFile(this.#paths.key, 'utf8')]);
    return { cert, key };
  }
}

/** `kubelet.crt` and `kubelet.key` in the certificate directory, made if they are missing. Gives their paths. */
export async function selfSignedServing(clock: Clock, certDir: string, hostname: string): Promise<CertificateFiles> {
  const certPath = join(certDir, 'kubelet.crt');
  const keyPath = join(certDir, 'kubelet.key');
  const files = { cert: certPath, key: keyPath };
  const [cert, key] = [await readIfAny(certPath), await readIfAny(keyPath)];
  if (cert !== undefined && key !== undefined) return files;
  if (cert !== undefined || key !== undefined) {
    const missing = cert === undefined ? certPath : keyPath;
    throw new KubeletError('invalid', `error reading ${missing}, certificate and key must be supplied as a pair`);
  }
  const pair = await newSelfSigned(hostname, clock.now());
  await mkdir(certDir, { recursive: true, mode: 0o755 });
  await writeFileAtomic(certPath, pair.cert, 0o644);
  await writeFileAtomic(keyPath, pair.key, 0o600);
  return files;
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

const DNS_TYPES = new Set(['Hostname', 'InternalDNS', 'ExternalDNS']);
const IP_TYPES = new Set(['InternalIP', 'ExternalIP']);

/** What to ask the cluster for; undefined until the node has an IP address. */
export function servingTemplate(
  nodeName: string,
  addresses: readonly NodeAddress[],
  allowDnsOnly = false,
): CertificateTemplate | undefined {
  const pick = (types: ReadonlySet<string>): string[] =>
    [...new Set(addresses.filter((a) => types.has(a.type)).map((a) => a.address))].sort();
  const ipAddresses = [...pick(IP_TYPES), ...pick(DNS_TYPES).filter((name) => isIP(name) !== 0)];
  const dnsNames = pick(DNS_TYPES).filter((name) => isIP(name) === 0);
  if (ipAddresses.length === 0 && !(allowDnsOnly && dnsNames.length > 0)) return undefined;
  return {
    commonName: `system:node:${nodeName}`,
    organizations: ['system:nodes'],
    dnsNames,
    ipAddresses: [...new Set(ipAddresses)].sort(),
  };
}

async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}
