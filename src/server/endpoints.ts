// Which endpoints each port serves, by configuration and gates.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { CriRuntime } from '../cri/services.ts';
import { processStartMs, type Clock } from '../lib/clock.ts';
import type { Registry } from '../lib/metrics.ts';
import { KUBERNETES_VERSION } from '../lib/version.ts';
import type { Waterfall } from '../trace/waterfall.ts';
import type { HealthCheck } from './health-checks.ts';
import { HealthMetrics, type LocalHealth } from './health-metrics.ts';
import { nodeLogs } from './journal.ts';
import type { LogQuery } from './log-query.ts';
import { PodFinder, type ObservedPods, type PodsView } from './pods-view.ts';
import { joined, type Endpoint } from './router.ts';
import { checkpointRoutes } from './routes/checkpoint.ts';
import { configzRoutes } from './routes/configz.ts';
import { containerLogRoutes, type LogPlaces } from './routes/container-logs.ts';
import { debugFlagRoutes, type DebugFlagDeps } from './routes/debug-flags.ts';
import { debuggingDisabled } from './routes/disabled.ts';
import { healthzRoutes } from './routes/healthz.ts';
import { logFileRoutes } from './routes/log-files.ts';
import { manifestRoutes, type Manifests } from './routes/manifests.ts';
import { metricsRoutes, type MetricsPage } from './routes/metrics.ts';
import { podsRoutes, problemsRoutes, runningPodsRoutes, type Problems } from './routes/pods.ts';
import { nodeViewRoutes, type NodeViewDeps } from './routes/node-views.ts';
import { pprofRoutes } from './routes/pprof.ts';
import { runRoutes } from './routes/run.ts';
import { statsRoutes, type SummarySource } from './routes/stats.ts';
import { waterfallRoutes, type WaterfallDeps } from './routes/waterfalls.ts';
import { whyRoutes, type Explainer } from './routes/why.ts';
import { flagzRoutes, statuszRoutes } from './routes/zpages.ts';
import { streamRoutes } from './streaming/stream-routes.ts';

/** What the statistics give. */
export type Statistics = SummarySource & {
  /** Brings the figures of pods in the process' own registry up to date. */
  refresh(signal: AbortSignal): Promise<void>;
  readonly cadvisorMetrics: MetricsPage;
  readonly resourceMetrics: MetricsPage;
};

export type EndpointDeps = {
  readonly health: readonly HealthCheck[];
  readonly localHealth: LocalHealth;
  readonly pods: PodsView;
  readonly observed: ObservedPods;
  readonly runtime: CriRuntime;
  readonly statistics: Statistics;
  /** Served apart, on /metrics/probes. */
  readonly probeRegistry: Registry;
  readonly sources: {
    readonly problems: Problems;
    /** With --enable-manifest-api. */
    readonly manifests?: Manifests;
  };
  readonly explainer: Explainer;
  readonly nodeViews: NodeViewDeps;
  /** Below /page/. */
  readonly page: { endpoint(): Endpoint };
  readonly tracing: WaterfallDeps<Waterfall>;
  /** The v1beta1 form, with credentials hidden. */
  readonly configz: () => object;
  readonly readLogs: (
    path: string,
    query: LogQuery & { readonly clock: Clock },
    isRunning: () => boolean,
    signal: AbortSignal,
  ) => AsyncIterable<Buffer>;
  /** What only the process itself knows: every flag as /flagz shows it, and the way to change the verbosity. */
  readonly process: {
    readonly flagValues: ReadonlyMap<string, string>;
    readonly logLevels: Pick<DebugFlagDeps, 'setVerbosity'>;
  };
};

const NODE_LOGS = '/var/log';

/** On both ports. */
export function sharedEndpoints({ clock, registry }: Environment, deps: EndpointDeps): readonly Endpoint[] {
  const { statistics, probeRegistry } = deps;
  const health = new HealthMetrics(deps.localHealth, processStartMs(clock));
  return [
    healthzRoutes(deps.health, health.observe),
    podsRoutes(deps.pods),
    statsRoutes(statistics),
    metricsRoutes(
      {
        '/metrics': async (signal) => {
          await statistics.refresh(signal);
          return registry.render();
        },
        '/metrics/probes': () => probeRegistry.render(),
        '/metrics/slis': () => health.render(),
        '/metrics/cadvisor': (signal) => statistics.cadvisorMetrics(signal),
        '/metrics/resource': (signal) => statistics.resourceMetrics(signal),
      },
      Math.floor(processStartMs(clock) / 1000),
    ),
  ];
}

export const readOnlyEndpoint = (shared: readonly Endpoint[]): Endpoint => joined([...shared, debuggingDisabled]);

export function mainEndpoint(
  env: Environment,
  deps: EndpointDeps,
  shared: readonly Endpoint[],
  streams: Endpoint,
): Endpoint {
  const { config, clock, gates } = env;
  if (!config.enableDebuggingHandlers) return joined([...shared, debuggingDisabled]);
  const all: Endpoint[] = [...shared, ...podEndpoints(env, deps), streams, ...processEndpoints(env, deps)];
  if (gates.enabled('ComponentStatusz'))
    all.push(
      statuszRoutes({
        clock,
        startedAtMs: processStartMs(clock),
        version: KUBERNETES_VERSION.slice(1),
        runtimeVersion: `node ${process.version}`,
        paths: () => all.flatMap((e) => e.roots.filter((r) => r.exact === true).map((r) => r.prefix)),
      }),
    );
  return joined(all);
}

/** About pods and their containers. */
function podEndpoints({ clock, flags, gates }: Environment, deps: EndpointDeps): Endpoint[] {
  const { runtime, pods, observed, sources } = deps;
  const finder = new PodFinder(pods, observed);
  const directory = join(flags.rootDir, 'checkpoints');
  const nowMs = (): number => clock.now();
  return [
    runningPodsRoutes(observed),
    problemsRoutes(sources.problems),
    waterfallRoutes(deps.tracing),
    whyRoutes(deps.explainer),
    nodeViewRoutes(deps.nodeViews),
    deps.page.endpoint(),
    ...(gates.enabled('ContainerCheckpoint') ? [checkpointRoutes({ finder, runtime, directory, nowMs })] : []),
    ...(sources.manifests === undefined ? [] : [manifestRoutes(sources.manifests)]),
    runRoutes({ finder, runtime }),
    containerLogRoutes({
      finder,
      places: logPlaces(deps),
      read: (path, query, isRunning, signal) => deps.readLogs(path, { ...query, clock }, isRunning, signal),
      splitStreams: gates.enabled('PodLogsQuerySplitStreams'),
      nowMs,
    }),
  ];
}

/** exec, attach and port-forward. */
export function streamEndpoint({ clock, config, gates, registry }: Environment, deps: EndpointDeps): Endpoint {
  const webSockets = registry.counter(
    'kubelet_websocket_streaming_requests_total',
    '[ALPHA] Total number of WebSocket streaming requests (exec/attach/portforward) received by the kubelet.',
    ['subresource'],
  );
  return streamRoutes({
    finder: new PodFinder(deps.pods, deps.observed),
    runtime: deps.runtime,
    clock,
    idleMs: config.streamingConnectionIdleTimeoutMs,
    endWebSockets: gates.enabled('ExtendWebSocketsToKubelet'),
    onWebSocket: (subresource) => webSockets.inc({ subresource }),
  });
}

export const logPlaces = ({
  runtime,
  pods,
  observed,
}: {
  readonly runtime: Pick<CriRuntime, 'containerStatus'>;
  readonly pods: Pick<PodsView, 'translate'>;
  readonly observed: Pick<ObservedPods, 'get'>;
}): LogPlaces => ({
  pathOf: async (containerId, signal) => (await runtime.containerStatus({ containerId }, signal)).status?.logPath ?? '',
  isRunning: (pod, containerId) =>
    observed.get(pods.translate(pod.metadata.uid ?? ''))?.containers.find((c) => c.id === containerId)?.state ===
    'running',
});

/** About the process itself and the machine's logs. */
function processEndpoints({ clock, config, gates }: Environment, deps: EndpointDeps): Endpoint[] {
  const { flagValues, logLevels } = deps.process;
  return [
    configzRoutes(deps.configz),
    pprofRoutes({ clock, enabled: config.enableProfilingHandler }),
    debugFlagRoutes({
      enabled: config.enableDebugFlagsHandler,
      setVerbosity: (level) => logLevels.setVerbosity(level),
    }),
    ...(gates.enabled('ComponentFlagz') ? [flagzRoutes({ clock, flags: flagValues })] : []),
    logFileRoutes({
      root: NODE_LOGS,
      enabled: config.enableSystemLogHandler,
      ...(config.enableSystemLogQuery && config.enableSystemLogHandler ? { nodeLogs: nodeLogs(clock, NODE_LOGS) } : {}),
    }),
  ];
}
