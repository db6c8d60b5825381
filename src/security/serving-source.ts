// Chooses where the serving certificate comes from (configured files, the cluster, self-signed) and gives all three one
// face: what to show now, and a call when that changes.
import type { NodeAddress } from '../core/node.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { CertificateManager } from './certificate-manager.ts';
import { CertificateStore } from './certificate-store.ts';
import { ServingFiles, selfSignedServing, servingTemplate, type ServingPair } from './serving-certificate.ts';
import { SERVING_SIGNER, type SigningClient } from './signing-request.ts';

export type ServingDeps = {
  clock: Clock;
  log: Logger;
  /** Absent without an API server: then `serverTLSBootstrap` cannot be had. */
  client?: () => SigningClient;
  /** The node's addresses as last reported. */
  addresses: () => readonly NodeAddress[];
  onChange: (pair: ServingPair) => void;
};

export type ServingOptions = {
  /** `tlsCertFile` and `tlsPrivateKeyFile`, both or neither. */
  certFile: string;
  keyFile: string;
  /** `serverTLSBootstrap` */
  bootstrap: boolean;
  /** Gate `AllowDNSOnlyNodeCSR`. */
  allowDnsOnly: boolean;
  certDir: string;
  nodeName: string;
};

export interface ServingSource {
  /** Undefined while the cluster has not signed one yet: `no serving certificate available for the kubelet`. */
  current(): ServingPair | undefined;
  readonly parts: readonly Runnable[];
  readonly manager?: CertificateManager;
}

export async function openServing(deps: ServingDeps, o: ServingOptions): Promise<ServingSource> {
  const { clock, log, onChange } = deps;
  if (o.certFile !== '' && o.keyFile !== '') {
    const files = new ServingFiles({ clock, log, onChange }, { cert: o.certFile, key: o.keyFile });
    await files.load();
    return { current: () => files.current, parts: [files] };
  }
  if (o.bootstrap) return await clusterSigned(deps, o);
  const pair = await selfSignedServing(clock, o.certDir, o.nodeName);
  return { current: () => pair, parts: [] };
}

async function clusterSigned(deps: ServingDeps, o: ServingOptions): Promise<ServingSource> {
  const { addresses, client, clock, log, onChange } = deps;
  if (client === undefined) throw new KubeletError('invalid', 'serverTLSBootstrap needs an API server');
  const manager = new CertificateManager(
    {
      store: new CertificateStore(o.certDir, 'kubelet-server'),
      client,
      template: () => servingTemplate(o.nodeName, addresses(), o.allowDnsOnly),
      clock,
      log,
      onRotated: ({ cert, key }) => onChange({ cert, key }),
    },
    { name: 'kubelet-server', signerName: SERVING_SIGNER, auth: 'server auth' },
  );
  await manager.load();
  return { current: () => manager.current, parts: [manager], manager };
}
