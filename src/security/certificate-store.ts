// Certificates on disk as upstream keeps them: `NAME-<date>.pem` (certificates, then key), and the link
// `NAME-current.pem`, which is swapped through `NAME-updated.pem` so that it always points somewhere. The certificate before
// the current one is kept; older ones are removed with their keys.
import { createPrivateKey, X509Certificate } from 'node:crypto';
import { mkdir, readdir, readFile, readlink, rename, rm, symlink } from 'node:fs/promises';
import { basename, join, resolve } from 'node:path';
import { syncDirectory, writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import { keyMatches, readCertificates } from '../lib/x509/certificate.ts';

export type KeptCertificate = {
  /** PEM texts. */
  readonly cert: string;
  readonly key: string;
  readonly leaf: X509Certificate;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
};

export type CertificateFiles = { readonly cert: string; readonly key: string };

export class CertificateStore {
  readonly #dir: string;
  readonly #name: string;
  readonly #given: CertificateFiles | undefined;
  readonly #sync: typeof syncDirectory;

  /** `name` is `kubelet-client` or `kubelet-server`; `given` is a pair to begin with. */
  constructor(dir: string, name: string, given?: CertificateFiles, sync = syncDirectory) {
    this.#dir = resolve(dir);
    this.#name = name;
    this.#given = given;
    this.#sync = sync;
  }

  get currentPath(): string {
    return this.#path('current.pem');
  }

  /** What `current` points to, else the given pair, else a `NAME.crt` and `NAME.key` that somebody put there. */
  async load(): Promise<KeptCertificate | undefined> {
    const both = await readIfAny(this.currentPath);
    if (both !== undefined) return parseKept(both, both);
    const place = join(this.#dir, this.#name);
    for (const files of [this.#given, { cert: `${place}.crt`, key: `${place}.key` }]) {
      if (files === undefined) continue;
      const [cert, key] = [await readIfAny(files.cert), await readIfAny(files.key)];
      if (cert !== undefined && key !== undefined) return parseKept(cert, key);
    }
    return undefined;
  }

  async save(cert: string, key: string, nowMs: number): Promise<KeptCertificate> {
    const kept = parseKept(cert, key);
    await mkdir(this.#dir, { recursive: true, mode: 0o755 });
    const stamp = new Date(nowMs).toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '-');
    const file = this.#path(`${stamp}.pem`);
    await writeFileAtomic(file, `${cert.trimEnd()}\n${key.trimEnd()}\n`, 0o600);
    const updated = this.#path('updated.pem');
    await rm(updated, { force: true });
    const before = await readlink(this.currentPath).catch(() => undefined);
    await symlink(file, updated);
    await rename(updated, this.currentPath);
    await this.#sync(this.#dir);
    // A file that cannot be removed is tried again with the next certificate.
    await this.#removeOlder(basename(file), before && basename(before)).catch(() => undefined);
    return kept;
  }

  /** Without a link the one before is the latest. */
  async #removeOlder(current: string, before?: string): Promise<void> {
    const dated = new RegExp(`^${this.#name}-\\d{4}(-\\d\\d){5}\\.pem$`);
    const others = (await readdir(this.#dir)).filter((name) => dated.test(name) && name !== current).sort();
    const kept = before !== undefined && others.includes(before) ? before : others.at(-1);
    for (const name of others) if (name !== kept) await rm(join(this.#dir, name));
  }

  #path(suffix: string): string {
    return join(this.#dir, `${this.#name}-${suffix}`);
  }
}

/** Throws where certificate and key are unreadable or do not belong together. */
export function parseKept(certText: string, keyText: string): KeptCertificate {
  const [leaf] = readCertificates(certText);
  const keyPem = /-----BEGIN ([A-Z ]*PRIVATE KEY)-----[^-]*-----END \1-----/.exec(keyText)?.[0];
  if (leaf === undefined || keyPem === undefined) {
    throw new KubeletError('invalid', 'no certificate and key in PEM format found');
  }
  const cert = readCertificates(certText)
    .map((c) => c.toString())
    .join('');
  if (!keyMatches(cert, createPrivateKey(keyPem))) {
    throw new KubeletError('invalid', 'private key does not match the certificate');
  }
  const notBeforeMs = Date.parse(leaf.validFrom);
  const notAfterMs = Date.parse(leaf.validTo);
  return { cert, key: `${keyPem}\n`, leaf, notBeforeMs, notAfterMs };
}

async function readIfAny(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}
