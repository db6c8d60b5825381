// The connection to the API server, with the client identity that goes with it and its rotation, where that is asked for.
import type { Environment } from '../config/environment.ts';
import { goArch } from '../host/host-facts.ts';
import type { CallObserver } from '../kube/client.ts';
import { connectApi, type ApiConnection, type ConnectOptions } from '../kube/connect.ts';
import type { Runnable } from '../lib/supervise.ts';
import { KUBELET_VERSION } from '../lib/version.ts';
import { certificateMetrics } from './certificate-metrics.ts';
import { openClientIdentity } from './client-identity.ts';

export type ClusterConnection = {
  readonly api: ApiConnection;
  /** Rotates the client certificate; none with `rotateCertificates: false`. */
  readonly parts: readonly Runnable[];
};

/** Bootstraps a client certificate where there is none and that is allowed. */
export async function connectCluster(
  env: Environment,
  begin: CallObserver,
  signal: AbortSignal,
): Promise<ClusterConnection> {
  const { clock, config, flags, nodeName, registry } = env;
  const log = env.log.child({ component: 'kube' });
  const settings: ConnectOptions = {
    version: KUBELET_VERSION,
    architecture: goArch(process.arch),
    qps: config.kubeAPIQPS,
    burst: config.kubeAPIBurst,
    eventQps: config.eventRecordQPS,
    eventBurst: config.eventBurst,
    leaseDurationSeconds: config.nodeLeaseDurationSeconds,
  };
  const { access, credentials, manager } = await openClientIdentity(
    {
      clock,
      log,
      connect: (to, own) =>
        connectApi({ clock, log, ...(own === undefined ? {} : { credentials: own }) }, to, settings).main,
    },
    {
      kubeconfig: flags.kubeconfig,
      bootstrapKubeconfig: flags.bootstrapKubeconfig,
      certDir: flags.certDir,
      nodeName,
      rotate: config.rotateCertificates,
    },
    signal,
  );
  if (manager !== undefined) certificateMetrics(registry, { clock, client: manager });
  const api = connectApi({ clock, log, metrics: registry, credentials, begin }, access, settings);
  return { api, parts: manager === undefined ? [] : [manager] };
}
