// The kubelet's own servers: the main port with its guard and every route, and the read-only port.
import { join } from 'node:path';
import type { KubeletConfig } from '../config/config-fields.ts';
import { toVersionedJson } from '../config/convert.ts';
import { maskConfig } from '../config/mask.ts';
import { KUBERNETES_VERSION } from '../config/version.ts';
import { podUid } from '../core/ids.ts';
import { fullName, type Pod } from '../core/pod.ts';
import type { LogLevels } from '../host/process/log-levels.ts';
import type { Runnable } from '../lib/supervise.ts';
import { readLogs } from '../logs/read-logs.ts';
import type { PodStore } from '../pods/pod-store.ts';
import { certificateMetrics } from '../security/certificate-metrics.ts';
import { AccessReviewer, TokenReviewer } from '../security/reviews.ts';
import { openServing, type ServingSource } from '../security/serving-source.ts';
import { buildGuard, loopbackOnly, type AccessOptions } from '../server/access.ts';
import { ClientCaFile } from '../server/client-ca.ts';
import { accessMetrics, type AccessMetrics } from '../server/access-metrics.ts';
import { HealthMetrics } from '../server/health-metrics.ts';
import { nodeLogs } from '../server/journal.ts';
import { Listener, type TlsSettings } from '../server/listener.ts';
import type { Assigned } from '../server/pod-resources.ts';
import type { PodsFeed } from '../server/pods-feed.ts';
import { localApis } from './local-apis.ts';
import { PodFinder, type PodsView } from '../server/pods-view.ts';
import { RequestMetrics } from '../server/request-metrics.ts';
import { joined, type Endpoint } from '../server/router.ts';
import { checkpointRoutes } from '../server/routes/checkpoint.ts';
import { configzRoutes } from '../server/routes/configz.ts';
import { containerLogRoutes } from '../server/routes/container-logs.ts';
import { debugFlagRoutes } from '../server/routes/debug-flags.ts';
import { debuggingDisabled } from '../server/routes/disabled.ts';
import { healthzRoutes } from '../server/routes/healthz.ts';
import { logFileRoutes } from '../server/routes/log-files.ts';
import { manifestRoutes } from '../server/routes/manifests.ts';
import { metricsRoutes, type MetricsPage } from '../server/routes/metrics.ts';
import { podsRoutes, problemsRoutes, runningPodsRoutes } from '../server/routes/pods.ts';
import { pprofRoutes } from '../server/routes/pprof.ts';
import { runRoutes } from '../server/routes/run.ts';
import { statsRoutes, type SummarySource } from '../server/routes/stats.ts';
import { waterfallRoutes } from '../server/routes/waterfalls.ts';
import { whyRoutes } from '../server/routes/why.ts';
import { flagzRoutes, statuszRoutes } from '../server/routes/zpages.ts';
import { streamRoutes } from '../server/streaming/stream-routes.ts';
import { tlsSettings } from '../server/tls-settings.ts';
import type { StatusStore } from '../status/status-store.ts';
import type { PodExplainer } from '../why/pod-facts.ts';
import { drawn } from '../trace/waterfall.ts';
import type { ClusterPort } from './cluster-port.ts';
import type { Foundation } from './foundation.ts';
import type { RuntimeEdge } from './runtime-edge.ts';
import type { Sources } from './sources.ts';

/** What the statistics give, once they are wired up. */
export type Statistics = {
  readonly summary: SummarySource;
  /** The process' own registry, with the figures of pods brought up to date first. */
  readonly metrics: MetricsPage;
  readonly cadvisorMetrics: MetricsPage;
  readonly resourceMetrics: MetricsPage;
};

export type ProcessFacts = {
  readonly flagValues: ReadonlyMap<string, string>;
  readonly logLevels: LogLevels;
};

export type ServerDeps = {
  readonly base: Foundation;
  readonly edge: RuntimeEdge;
  readonly cluster: ClusterPort;
  readonly store: PodStore;
  readonly statuses: StatusStore;
  readonly sources: Sources;
  readonly active: () => readonly Pod[];
  /** What the resource managers gave to which container. */
  readonly assigned: Assigned;
  readonly explainer: PodExplainer;
  /** Absent without the gate `PodsAPI`. */
  readonly feed: PodsFeed | undefined;
  /** What only the process itself knows. */
  readonly process: ProcessFacts;
  readonly statistics?: Statistics;
};

export type BuiltServer = { readonly parts: readonly Runnable[] };

const NODE_LOGS = '/var/log';

export async function buildServer(deps: ServerDeps): Promise<BuiltServer> {
  const { base } = deps;
  const { config, clock } = base;
  if (!config.enableServer) return { parts: localApis(deps) };
  const log = base.log.child({ component: 'server' });
  const metrics = new RequestMetrics(clock, base.registry);
  let main: Listener | undefined;
  const { tls, parts: tlsParts } = await openTls(deps, () => main?.renewTls());
  const access = accessOptions(base);
  const seen = accessMetrics(base.registry);
  const reviewing = reviews(deps, seen);
  const guard = buildGuard(
    {
      nowMs: () => clock.now(),
      onCertificateLifetime: seen.certificateLifetime,
      ...(reviewing === undefined ? {} : { cluster: reviewing }),
    },
    access,
  );
  const address = loopbackOnly(access, reviewing === undefined) ? '127.0.0.1' : config.address;
  const shared = sharedEndpoints(deps);
  main = new Listener(
    {
      endpoint: mainEndpoint(deps, shared),
      guard,
      log,
      observe: metrics.observer('readwrite'),
    },
    { name: 'server', address, port: config.port, tls },
  );
  const parts: Runnable[] = [main, ...tlsParts, ...localApis(deps)];
  if (config.readOnlyPort > 0)
    parts.push(
      new Listener(
        { endpoint: joined([...shared, debuggingDisabled]), log, observe: metrics.observer('readonly') },
        { name: 'read-only-server', address, port: config.readOnlyPort },
      ),
    );
  return { parts };
}

type OpenTls = { readonly tls: () => TlsSettings; readonly parts: readonly Runnable[] };

/** The certificate to show and the CA to hold others' against; both may change while the port is open. */
async function openTls(deps: ServerDeps, onChange: () => void): Promise<OpenTls> {
  const { clock, config, log, registry } = deps.base;
  const { clientCAFile } = config.authentication.x509;
  const clientCa = clientCAFile === '' ? undefined : new ClientCaFile({ clock, log, onChange }, clientCAFile);
  await clientCa?.load();
  const serving = await servingFor(deps, onChange);
  if (serving.manager !== undefined) certificateMetrics(registry, { clock, server: serving.manager });
  const choice = tlsSettings({
    minVersion: config.tlsMinVersion,
    cipherSuites: config.tlsCipherSuites,
    curves: config.tlsCurvePreferences,
  });
  const tls = (): TlsSettings => {
    const pair = serving.current();
    return {
      ...choice,
      ...(pair === undefined ? {} : { cert: pair.cert, key: pair.key }),
      ...(clientCa === undefined ? {} : { ca: clientCa.pem }),
    };
  };
  return { tls, parts: [...serving.parts, ...(clientCa === undefined ? [] : [clientCa])] };
}

function servingFor({ base, cluster }: ServerDeps, onChange: () => void): Promise<ServingSource> {
  const { clock, config, flags, gates, nodeName } = base;
  const { api } = cluster;
  return openServing(
    {
      clock,
      log: base.log.child({ component: 'serving-certificate' }),
      ...(api === undefined ? {} : { client: () => api.main }),
      addresses: () => cluster.node()?.status?.addresses ?? [],
      onChange,
    },
    {
      certFile: config.tlsCertFile,
      keyFile: config.tlsPrivateKeyFile,
      bootstrap: config.serverTLSBootstrap,
      allowDnsOnly: gates.enabled('AllowDNSOnlyNodeCSR'),
      certDir: flags.certDir,
      nodeName,
    },
  );
}

const accessOptions = ({ config, flags, nodeName }: Foundation): AccessOptions => ({
  nodeName,
  clientCa: config.authentication.x509.clientCAFile !== '',
  webhookAuthentication: config.authentication.webhook.enabled,
  anonymous: config.authentication.anonymous.enabled,
  mode: config.authorization.mode,
  strictStreams: flags.strictStreamAuthorization,
});

function reviews(
  { base, cluster }: ServerDeps,
  { reviewed }: AccessMetrics,
): { tokens: TokenReviewer; access: AccessReviewer } | undefined {
  const { clock, config } = base;
  if (cluster.api === undefined) return undefined;
  const client = cluster.api.reviews;
  const { webhook } = config.authorization;
  return {
    tokens: new TokenReviewer({ client, clock }, { cacheTtlMs: config.authentication.webhook.cacheTTLMs }),
    access: new AccessReviewer(
      { client, clock, observe: reviewed },
      { allowedTtlMs: webhook.cacheAuthorizedTTLMs, deniedTtlMs: webhook.cacheUnauthorizedTTLMs },
    ),
  };
}

/** On both ports. */
function sharedEndpoints(deps: ServerDeps): Endpoint[] {
  const { base, statistics } = deps;
  const health = new HealthMetrics();
  return [
    healthzRoutes(base.health, health.observe),
    podsRoutes(podsView(deps)),
    statsRoutes(statistics?.summary),
    metricsRoutes(
      {
        '/metrics': statistics?.metrics ?? (() => base.registry.render()),
        '/metrics/probes': () => base.probeRegistry.render(),
        '/metrics/slis': () => health.registry.render(),
        '/metrics/cadvisor': statistics?.cadvisorMetrics,
        '/metrics/resource': statistics?.resourceMetrics,
      },
      Math.floor(performance.timeOrigin / 1000),
    ),
  ];
}

function mainEndpoint(deps: ServerDeps, shared: readonly Endpoint[]): Endpoint {
  const { config, clock, gates } = deps.base;
  if (!config.enableDebuggingHandlers) return joined([...shared, debuggingDisabled]);
  const all: Endpoint[] = [...shared, ...debugEndpoints(deps)];
  if (gates.enabled('ComponentStatusz'))
    all.push(
      statuszRoutes({
        clock,
        startedAtMs: performance.timeOrigin,
        version: KUBERNETES_VERSION.slice(1),
        runtimeVersion: `node ${process.version}`,
        paths: () => all.flatMap((e) => e.roots.filter((r) => r.exact === true).map((r) => r.prefix)),
      }),
    );
  return joined(all);
}

function debugEndpoints(deps: ServerDeps): Endpoint[] {
  const { base, edge, sources } = deps;
  const { clock, config, gates } = base;
  const { runtime } = edge.cri;
  const view = podsView(deps);
  const observed = edge.observer.cache;
  const finder = new PodFinder(view, observed);
  const webSockets = base.registry.counter(
    'kubelet_websocket_streaming_requests_total',
    'Number of WebSocket streaming requests that end at the kubelet, by subresource',
    ['subresource'],
  );
  return [
    runningPodsRoutes(observed),
    problemsRoutes(sources.problems),
    waterfallRoutes({ waterfalls: base.tracer, drawn }),
    whyRoutes(deps.explainer),
    configzRoutes(() => maskConfig(toVersionedJson(inForce(deps)))),
    ...processEndpoints(deps),
    ...(gates.enabled('ContainerCheckpoint')
      ? [
          checkpointRoutes({
            finder,
            runtime,
            directory: join(base.flags.rootDir, 'checkpoints'),
            nowMs: () => clock.now(),
          }),
        ]
      : []),
    ...(sources.manifests === undefined ? [] : [manifestRoutes(sources.manifests)]),
    logFileRoutes({
      root: NODE_LOGS,
      enabled: config.enableSystemLogHandler,
      ...(config.enableSystemLogQuery && config.enableSystemLogHandler ? { nodeLogs: nodeLogs(clock, NODE_LOGS) } : {}),
    }),
    runRoutes({ finder, runtime }),
    streamRoutes({
      finder,
      runtime,
      clock,
      idleMs: config.streamingConnectionIdleTimeoutMs,
      endWebSockets: gates.enabled('ExtendWebSocketsToKubelet'),
      onWebSocket: (subresource) => webSockets.inc({ subresource }),
    }),
    containerLogRoutes({
      finder,
      places: {
        pathOf: async (containerId, signal) =>
          (await runtime.containerStatus({ containerId }, signal)).status?.logPath ?? '',
        isRunning: (pod, containerId) =>
          observed.get(view.translate(pod.metadata.uid ?? ''))?.containers.find((c) => c.id === containerId)?.state ===
          'running',
      },
      read: (path, options, isRunning, signal) => readLogs(path, { ...options, clock }, isRunning, signal),
      splitStreams: gates.enabled('PodLogsQuerySplitStreams'),
      nowMs: () => clock.now(),
    }),
  ];
}

/** About the process itself. */
function processEndpoints({ base, process: facts }: ServerDeps): Endpoint[] {
  const { clock, config, gates } = base;
  return [
    pprofRoutes({ clock, enabled: config.enableProfilingHandler }),
    debugFlagRoutes({
      enabled: config.enableDebugFlagsHandler,
      setVerbosity: (level) => facts.logLevels.setVerbosity(level),
    }),
    ...(gates.enabled('ComponentFlagz') ? [flagzRoutes({ clock, flags: facts.flagValues })] : []),
  ];
}

/** As configured, but for what was found out since: the runtime's cgroup driver, the certificate made here. */
function inForce({ base, edge }: ServerDeps): KubeletConfig {
  const { flags, updates } = base;
  const config = updates.published;
  const own = config.tlsCertFile === '' && !config.serverTLSBootstrap;
  return {
    ...config,
    cgroupDriver: edge.cgroupDriver,
    ...(own
      ? { tlsCertFile: join(flags.certDir, 'kubelet.crt'), tlsPrivateKeyFile: join(flags.certDir, 'kubelet.key') }
      : {}),
  };
}

function podsView({ store, statuses }: ServerDeps): PodsView {
  const withStatus = (pod: Pod): Pod => {
    const status = statuses.statusOf(podUid(pod.metadata.uid ?? ''));
    return status === undefined ? pod : { ...pod, status };
  };
  return {
    all: () => store.all().map(withStatus),
    byName: (namespace, name) => {
      const found = store.byFullName(fullName({ metadata: { name, namespace } } as Pod));
      return found === undefined ? undefined : withStatus(found);
    },
    translate: (uid) => store.translate(podUid(uid)),
  };
}
