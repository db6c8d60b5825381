// The connection to the API server, with the client identity that goes with it and its rotation, where that is asked for.
import type { Environment } from '../config/environment.ts';
import { goArch } from '../host/host-facts.ts';
import type { CallObserver } from '../kube/client.ts';
import { ExecMetrics } from '../kube/exec-metrics.ts';
import { connectApi, type ApiConnection, type ConnectOptions } from '../kube/connect.ts';
import type { ClusterAccess } from '../kube/kubeconfig.ts';
import type { Runnable } from '../lib/supervise.ts';
import { KUBELET_VERSION } from '../lib/version.ts';
import { certificateMetrics } from './certificate-metrics.ts';
import { ClientCertificateWatch } from './client-certificate-watch.ts';
import { openClientIdentity } from './client-identity.ts';

export type ClusterConnection = {
  readonly api: ApiConnection;
  /** Rotates the client certificate; none with `rotateCertificates: false`. */
  readonly parts: readonly Runnable[];
};

const DEFAULT_QPS = 5;
const DEFAULT_BURST = 10;

/** Those of Go's client where the configuration says 0. */
export const budgetOf = (qps: number, burst: number): readonly [qps: number, burst: number] => [
  qps === 0 ? DEFAULT_QPS : qps,
  burst === 0 ? DEFAULT_BURST : burst,
];

/** Bootstraps a client certificate where there is none and that is allowed. */
export async function connectCluster(
  env: Environment,
  begin: CallObserver,
  signal: AbortSignal,
): Promise<ClusterConnection> {
  const { clock, config, flags, gates, nodeName, registry } = env;
  const log = env.log.child({ component: 'kube' });
  const [qps, burst] = budgetOf(config.kubeAPIQPS, config.kubeAPIBurst);
  const settings: ConnectOptions = {
    version: KUBELET_VERSION,
    architecture: goArch(process.arch),
    qps,
    burst,
    // 0 means no limit, as the field's documentation has it.
    eventQps: config.eventRecordQPS,
    eventBurst: budgetOf(config.eventRecordQPS, config.eventBurst)[1],
    leaseDurationSeconds: config.nodeLeaseDurationSeconds,
    statusUpdateMs: config.nodeStatusUpdateFrequencyMs,
  };
  const trusted = (to: ClusterAccess): ClusterAccess =>
    gates.enabled('ClientsAllowCARotation') ? to : withoutCaFile(to);
  const { access, credentials, manager } = await openClientIdentity(
    {
      clock,
      log,
      execMetrics: new ExecMetrics(clock, registry),
      connect: (to, own) =>
        connectApi({ clock, log, ...(own === undefined ? {} : { credentials: own }) }, trusted(to), settings).main,
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
  const api = connectApi({ clock, log, metrics: registry, credentials, begin }, trusted(access), settings);
  if (manager === undefined) return { api, parts: [] };
  manager.onIssued(() => {
    // A request that comes before it notices as well.
    api.transport.credentialsChanged(signal).catch((err: unknown) => log.debug('credentials not known yet', { err }));
  });
  const { token, tokenFile, exec, basic } = access.auth;
  const hasOthers = [token, tokenFile, exec, basic].some((own) => own !== undefined);
  return { api, parts: hasOthers ? [manager] : [manager, new ClientCertificateWatch({ manager, clock, log })] };
}

/** The authority stays what it is now. */
function withoutCaFile(given: ClusterAccess): ClusterAccess {
  const { caFile: _, ...access } = given;
  return access;
}
