// What every part is built from: configuration, clock, log, metrics, the node's name and where things are on disk.
import { hostname } from 'node:os';
import type { KubeletConfig } from '../config/config-fields.ts';
import type { FeatureGates } from '../config/feature-gates.ts';
import type { KubeletFlags } from '../config/flags.ts';
import { KUBELET_VERSION } from '../config/version.ts';
import type { ConfigUpdates } from '../config/updates.ts';
import { systemBus, type SystemBus } from '../host/systemd/system-bus.ts';
import type { LogOutput } from '../host/process/log-output.ts';
import { QuietMemory } from '../host/process/quiet-memory.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import type { HealthCheck } from '../server/health-checks.ts';
import { nodeNameOf } from '../node/node-name.ts';
import { OtlpExporter } from '../trace/otlp-exporter.ts';
import { PodTracer } from '../trace/pod-tracer.ts';
import { processChecks } from '../server/kubelet-health.ts';

export type Foundation = {
  readonly config: KubeletConfig;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Served apart, on /metrics/probes. */
  readonly probeRegistry: Registry;
  readonly nodeName: string;
  /** What each pod's start waits for. */
  readonly tracer: PodTracer;
  readonly memory: QuietMemory;
  /** systemd and logind; connected on first use. */
  readonly systemBus: SystemBus;
  /** For /healthz and systemd's watchdog; the parts that bring a check add it here. */
  readonly health: HealthCheck[];
  /** Where `tracing` is configured. */
  readonly traceExport: OtlpExporter | undefined;
  /** The configuration as it changes; parts that read it here follow a SIGHUP. */
  readonly updates: ConfigUpdates;
};

/** Options read from the configuration in force at every use: `fields` can change while the kubelet runs. */
export function live<T>(
  { updates }: Pick<Foundation, 'updates'>,
  fields: readonly string[],
  read: (updates: ConfigUpdates) => T,
): T {
  updates.subscribe(fields, () => undefined);
  return read(updates);
}

/** With this verbosity every finished waterfall is in the log. */
const WATERFALL_LEVEL = 4;

type Made = 'registry' | 'probeRegistry' | 'nodeName' | 'tracer' | 'traceExport' | 'memory' | 'health' | 'systemBus';
type Given = Omit<Foundation, Made> & { readonly logOutput: Pick<LogOutput, 'stuckForMs'> };

export function buildFoundation({ logOutput, ...parts }: Given): Foundation {
  const nodeName = nodeNameOf(parts.flags.hostnameOverride, hostname());
  const traceExport = exporterOf(parts, nodeName);
  const tracer = new PodTracer({
    clock: parts.clock,
    onFinished: (waterfall) => {
      traceExport?.offer(waterfall);
      if (parts.log.enabled(WATERFALL_LEVEL)) parts.log.debug('waterfall', { waterfall: JSON.stringify(waterfall) });
    },
  });
  const memory = new QuietMemory({ clock: parts.clock, log: parts.log.child({ component: 'memory' }) });
  const health = processChecks(logOutput);
  const registries = { registry: new Registry(), probeRegistry: new Registry() };
  return { ...parts, ...registries, nodeName, tracer, traceExport, memory, health, systemBus: systemBus(parts.clock) };
}

function exporterOf({ config, clock, log }: Omit<Given, 'logOutput'>, nodeName: string): OtlpExporter | undefined {
  const rate = config.tracing?.samplingRatePerMillion ?? 0;
  if (config.tracing === undefined || rate <= 0) return undefined;
  return new OtlpExporter(
    { clock, log: log.child({ component: 'tracing' }) },
    { endpoint: config.tracing.endpoint ?? '', samplingRatePerMillion: rate, nodeName, version: KUBELET_VERSION },
  );
}
