// The kubelet's own identity towards the API server: its rotating client certificate. To ask for a certificate while none
// is valid, the bootstrap credentials serve; for nothing else. `openClientIdentity` puts the pieces together.
import { credentialsFor, type Credentials, type Identity } from '../kube/credentials.ts';
import type { ExecMetrics } from '../kube/exec-metrics.ts';
import { loadKubeconfig, type ClusterAccess, type TlsIdentity } from '../kube/kubeconfig.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { CertificateManager } from './certificate-manager.ts';
import { CertificateStore, type KeptCertificate } from './certificate-store.ts';
import { bootstrapClient, clientTemplate, type BootstrapDeps } from './client-bootstrap.ts';
import { givenCertificate } from './given-certificate.ts';
import { CLIENT_SIGNER, type SigningClient } from './signing-request.ts';

export type ClientIdentityDeps = {
  clock: Clock;
  log: Logger;
  execMetrics?: ExecMetrics;
  /** A client for signing requests with these credentials. */
  connect: (access: ClusterAccess, credentials?: Credentials) => ReturnType<BootstrapDeps['connect']>;
};

export type ClientIdentityOptions = {
  kubeconfig: string;
  /** Empty without `--bootstrap-kubeconfig`. */
  bootstrapKubeconfig: string;
  certDir: string;
  nodeName: string;
  /** `rotateCertificates` */
  rotate: boolean;
};

export type ClientIdentity = {
  readonly access: ClusterAccess;
  /** For the main client; the kubeconfig's own where nothing rotates. */
  readonly credentials: Credentials;
  /** Runs the rotation. Absent with `rotateCertificates: false`. */
  readonly manager?: CertificateManager;
};

/** Bootstraps if needed and says with which credentials to talk to the API server. */
export async function openClientIdentity(
  deps: ClientIdentityDeps,
  o: ClientIdentityOptions,
  signal: AbortSignal,
): Promise<ClientIdentity> {
  const { clock, log, connect, execMetrics } = deps;
  const store = new CertificateStore(o.certDir, 'kubelet-client');
  if (o.bootstrapKubeconfig !== '') await bootstrapClient({ connect, store, clock, log }, o, signal);
  const access = await loadKubeconfig(o.kubeconfig);
  const configured = credentialsFor(access, { clock, log, ...(execMetrics === undefined ? {} : { execMetrics }) });
  if (!o.rotate) return { access, credentials: configured };
  const bootstrap = await bootstrapCredentials(deps, o);
  let client: SigningClient | undefined;
  const manager: CertificateManager = new CertificateManager(
    {
      store,
      client: () => (client ??= connect(access, new SigningCredentials(manager, bootstrap ?? configured))),
      template: () => clientTemplate(o.nodeName),
      clock,
      log,
    },
    { name: 'kubelet-client', signerName: CLIENT_SIGNER, auth: 'client auth' },
  );
  await manager.load(await givenCertificate(access, log));
  return { access, credentials: new CertificateCredentials(manager, configured), manager };
}

async function bootstrapCredentials(
  { clock, log }: ClientIdentityDeps,
  o: ClientIdentityOptions,
): Promise<Credentials | undefined> {
  if (o.bootstrapKubeconfig === '') return undefined;
  try {
    return credentialsFor(await loadKubeconfig(o.bootstrapKubeconfig), { clock, log });
  } catch (err) {
    log.info('the bootstrap kubeconfig is of no use any more', { err }); // many remove it once the node has joined
    return undefined;
  }
}

export interface CertificateHolder {
  readonly current: KeptCertificate | undefined;
  readonly valid: KeptCertificate | undefined;
}

/** Credentials of the main client: the certificate, also an expired one (the server says so itself). */
export class CertificateCredentials implements Credentials {
  readonly #holder: CertificateHolder;
  /** A token in the kubeconfig goes on being used until there is a certificate. */
  readonly #otherwise: Credentials | undefined;
  #from: KeptCertificate | undefined;
  #identity: Identity = {};

  constructor(holder: CertificateHolder, otherwise?: Credentials) {
    this.#holder = holder;
    this.#otherwise = otherwise;
  }

  async current(signal: AbortSignal): Promise<Identity> {
    const kept = this.#holder.current;
    if (kept === undefined) return await this.#withoutCertificate(signal);
    if (kept !== this.#from) {
      this.#from = kept;
      const tls: TlsIdentity = { cert: kept.cert, key: kept.key };
      this.#identity = { tls };
    }
    return this.#identity;
  }

  refused(): boolean {
    return this.#holder.current === undefined && (this.#otherwise?.refused() ?? false);
  }

  /** Its certificate files do not exist before the first certificate: then we are nobody. */
  async #withoutCertificate(signal: AbortSignal): Promise<Identity> {
    return (await this.#otherwise?.current(signal).catch(() => undefined)) ?? {};
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
    return await this.#own.current(signal);
  }

  refused(): boolean {
    return this.#bootstrap?.refused() ?? false;
  }
}
