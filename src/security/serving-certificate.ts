// Serving certificates: files that are re-read when they change, and what the cluster is asked to sign.
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { NodeAddress } from '../core/node.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { parseKept, type CertificateFiles, type KeptCertificate } from './certificate-store.ts';
import type { CertificateTemplate } from './signing-request.ts';

export type ServingPair = { readonly cert: string; readonly key: string };

const RELOAD_MS = 10_000;

/** `tlsCertFile` and `tlsPrivateKeyFile`. A bad pair on disk does not replace a good one in use. */
export class ServingFiles implements Runnable {
  readonly name = 'serving-certificate-files';
  readonly #deps: { clock: Clock; log: Logger; onChange?: (pair: ServingPair) => void };
  readonly #paths: CertificateFiles;
  #current: ServingPair | undefined;
  /** As the files had it. They may change at any time, also while they are read. */
  #taken: ServingPair | undefined;

  constructor(deps: { clock: Clock; log: Logger; onChange?: (pair: ServingPair) => void }, paths: CertificateFiles) {
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
    const { cert, key } = this.#parse(texts);
    this.#taken = texts;
    this.#current = { cert, key };
    return this.#current;
  }

  #parse(texts: ServingPair): KeptCertificate {
    try {
      return parseKept(texts.cert, texts.key);
    } catch (err) {
      const { cert, key } = this.#paths;
      const what = `the serving certificate ${cert} with the key ${key} cannot be used`;
      throw new KubeletError('invalid', `${what}: ${messageOf(err)}`);
    }
  }

  async #read(): Promise<ServingPair> {
    const [cert, key] = await Promise.all([readFile(this.#paths.cert, 'utf8'), readFile(this.#paths.key, 'utf8')]);
    return { cert, key };
  }
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
