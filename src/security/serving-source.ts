// Chooses where the serving certificate comes from (configured files, the cluster, self-signed) and gives all three one
// face: what to show now, and a call when that changes.
import type { NodeAddress } from '../core/node.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { CertificateManager } from './certificate-manager.ts';
import { CertificateStore, type CertificateFiles } from './certificate-store.ts';
import { selfSignedServing, SelfSignedWriter } from './self-signed-serving.ts';
import { ServingFiles, servingTemplate, type ServingPair } from './serving-certificate.ts';
import { SERVING_SIGNER, type SigningClient } from './signing-request.ts';

export type ServingDeps = {
  clock: Clock;
  log: Logger;
  /** Absent without an API server: then `serverTLSBootstrap` cannot be had. */
  client?: () => SigningClient;
  /** The node's addresses as last reported. */
  addresses: () => readonly NodeAddress[];
  onChange: () => void;
};

export type ServingOptions = {
  /** `tlsCertFile` and `tlsPrivateKeyFile`. */
  certFile: string;
  keyFile: string;
  /** `serverTLSBootstrap` */
  bootstrap: boolean;
  /** Gate `AllowDNSOnlyNodeCSR`. */
  allowDnsOnly: boolean;
  /** Gate `ReloadKubeletServerCertificateFile`. */
  reload: boolean;
  certDir: string;
  nodeName: string;
};

export interface ServingSource {
  /** Undefined while the cluster has not signed one yet, or not in time: connections are refused until it has. */
  current(): ServingPair | undefined;
  readonly parts: readonly Runnable[];
  readonly manager?: CertificateManager;
}

export async function openServing(deps: ServingDeps, o: ServingOptions): Promise<ServingSource> {
  if (o.bootstrap) return await clusterSigned(deps, o);
  if ((o.certFile === '') !== (o.keyFile === '')) {
    deps.log.error('there is no serving certificate: tlsCertFile and tlsPrivateKeyFile must be given together');
    return { current: () => undefined, parts: [] };
  }
  if (o.certFile === '') return await selfSigned(deps, o);
  return await fromFiles(deps, o, { cert: o.certFile, key: o.keyFile });
}

async function fromFiles(
  { clock, log, onChange }: ServingDeps,
  { reload }: ServingOptions,
  paths: CertificateFiles,
): Promise<ServingSource> {
  const files = new ServingFiles({ clock, log, onChange }, paths);
  await files.load();
  return { current: () => files.current, parts: reload ? [files] : [] };
}

async function selfSigned(deps: ServingDeps, o: ServingOptions): Promise<ServingSource> {
  const { files, unwritten } = await selfSignedServing(deps, o.certDir, o.nodeName);
  if (unwritten === undefined) return await fromFiles(deps, o, files);
  return { current: () => unwritten, parts: [new SelfSignedWriter(deps, files, unwritten)] };
}

async function clusterSigned(deps: ServingDeps, o: ServingOptions): Promise<ServingSource> {
  const { addresses, client, clock, log, onChange } = deps;
  if (client === undefined) throw new KubeletError('invalid', 'serverTLSBootstrap needs an API server');
  const manager = new CertificateManager(
    {
      store: new CertificateStore(o.certDir, 'kubelet-server', { cert: o.certFile, key: o.keyFile }),
      client,
      template: () => servingTemplate(o.nodeName, addresses(), o.allowDnsOnly),
      clock,
      log,
      onRotated: onChange,
    },
    { name: 'kubelet-server', signerName: SERVING_SIGNER, auth: 'server auth' },
  );
  await manager.load();
  const expiry = new ExpiryWatch({ manager, clock, log, onExpired: onChange });
  return { current: () => manager.valid, parts: [manager, expiry], manager };
}

const LOOK_EVERY_MS = 10_000;

type ExpiryWatchDeps = {
  readonly manager: { readonly valid: object | undefined };
  readonly clock: Clock;
  readonly log: Logger;
  readonly onExpired: () => void;
};

/** A certificate that ran out is not shown any more: new connections fail until there is a valid one. */
class ExpiryWatch implements Runnable {
  readonly name = 'serving-certificate-expiry';
  readonly #deps: ExpiryWatchDeps;
  #wasValid = false;

  constructor(deps: ExpiryWatchDeps) {
    this.#deps = deps;
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log, manager, onExpired } = this.#deps;
    const look = (): void => {
      const isValid = manager.valid !== undefined;
      if (this.#wasValid && !isValid) {
        log.error('the serving certificate has expired');
        onExpired();
      }
      this.#wasValid = isValid;
    };
    return runEvery(clock, log, { name: this.name, everyMs: LOOK_EVERY_MS }, look, signal);
  }
}
