// Whom the API server's certificate must be signed by. An authority in a file of its own is read again for every new
// connection: a cluster that gets another authority needs no restart of its nodes.
import { readFile } from 'node:fs/promises';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { readCertificates } from '../lib/x509/certificate.ts';
import type { ClusterAccess } from './kubeconfig.ts';

export class Authority {
  readonly #log: Logger;
  readonly #path: string | undefined;
  #pem: string | undefined;
  /** It has been said that the file is of no use. */
  #isBroken = false;

  constructor({ log }: { log: Logger }, { ca, caFile }: Pick<ClusterAccess, 'ca' | 'caFile'>) {
    this.#log = log;
    this.#path = caFile;
    this.#pem = ca;
  }

  /** PEM text; undefined: any that the system knows. A file that is not usable leaves the last one in force. */
  async current(): Promise<string | undefined> {
    const path = this.#path;
    if (path === undefined) return this.#pem;
    try {
      const text = await readFile(path, 'utf8');
      if (text !== this.#pem) this.#change(path, text);
      this.#isBroken = false;
    } catch (err) {
      if (!this.#isBroken)
        this.#log.error('the certificate authority is unusable, keeping the last one', { path, err });
      this.#isBroken = true;
    }
    return this.#pem;
  }

  #change(path: string, text: string): void {
    if (readCertificates(text).length === 0) throw new KubeletError('invalid', 'it holds no certificate');
    this.#pem = text;
    this.#log.info('the certificate authority of the API server changed', { path });
  }
}
