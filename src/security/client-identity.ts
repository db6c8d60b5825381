// The kubelet's own identity towards the API server: its rotating client certificate. To ask for a certificate while none
// is valid, the bootstrap credentials serve; for nothing else.
import type { Credentials, Identity } from '../kube/credentials.ts';
import type { TlsIdentity } from '../kube/kubeconfig.ts';
import type { KeptCertificate } from './certificate-store.ts';

export interface CertificateHolder {
  readonly current: KeptCertificate | undefined;
  readonly valid: KeptCertificate | undefined;
}

/** Credentials of the main client: always the certificate, also an expired one (the server says so itself). */
export class CertificateCredentials implements Credentials {
  readonly #holder: CertificateHolder;
  #from: KeptCertificate | undefined;
  #identity: Identity = {};

  constructor(holder: CertificateHolder) {
    this.#holder = holder;
  }

  current(): Promise<Identity> {
    const kept = this.#holder.current;
    if (kept !== this.#from) {
      this.#from = kept;
      const tls: TlsIdentity | undefined = kept === undefined ? undefined : { cert: kept.cert, key: kept.key };
      this.#identity = tls === undefined ? {} : { tls };
    }
    return Promise.resolve(this.#identity);
  }

  refused(): boolean {
    return false;
  }
}

/** Credentials for signing requests: the certificate while it is valid, else the bootstrap ones. */
export class SigningCredentials implements Credentials {
  readonly #holder: CertificateHolder;
  readonly #own: CertificateCredentials;
  readonly #bootstrap: Credentials | undefined;

  constructor(holder: CertificateHolder, bootstrap: Credentials | undefined) {
    this.#holder = holder;
    this.#own = new CertificateCredentials(holder);
    this.#bootstrap = bootstrap;
  }

  async current(signal: AbortSignal): Promise<Identity> {
    if (this.#holder.valid === undefined && this.#bootstrap !== undefined) return await this.#bootstrap.current(signal);
    return await this.#own.current();
  }

  refused(): boolean {
    return this.#bootstrap?.refused() ?? false;
  }
}
