// What every part is built from, and what the process as a whole owns: health checks, traces, memory.
import { hostname } from 'node:os';
import type { Environment } from '../config/environment.ts';
import type { LogOutput } from '../host/process/log-output.ts';
import { systemBus, type SystemBus } from '../host/systemd/system-bus.ts';
import { QuietMemory } from '../host/process/quiet-memory.ts';
import { Registry } from '../lib/metrics.ts';
import { nodeNameOf } from '../node/node-name.ts';
import type { HealthCheck } from '../server/health-checks.ts';
import type { LocalHealth } from '../server/health-metrics.ts';
import { pageRecords, type PageRecords } from '../page/records.ts';
import { processChecks } from '../server/kubelet-health.ts';
import { createTracing, type Tracing } from '../trace/create.ts';

export type Foundation = Environment &
  Tracing & {
    /** Served apart, on /metrics/probes. */
    readonly probeRegistry: Registry;
    readonly memory: QuietMemory;
    /** What the node page shows of the past. */
    readonly records: PageRecords;
    /** systemd and logind; connected on first use. */
    readonly systemBus: SystemBus;
    /** For /healthz and systemd's watchdog; the parts that bring a check add it here. */
    readonly health: HealthCheck[];
    readonly localHealth: LocalHealth;
  };

type Given = Omit<Environment, 'registry' | 'nodeName'> & {
  readonly logOutput: Pick<LogOutput, 'stuckForMs'>;
  readonly localHealth: LocalHealth;
};

export function buildFoundation({ logOutput, ...given }: Given): Foundation {
  const nodeName = nodeNameOf(given.flags.hostnameOverride, hostname());
  const environment = { ...given, nodeName, registry: new Registry() };
  return {
    ...environment,
    ...createTracing(environment),
    probeRegistry: new Registry(),
    memory: new QuietMemory({ clock: given.clock, log: given.log.child({ component: 'memory' }) }),
    records: pageRecords(given.clock, given.log, given.flags.rootDir),
    systemBus: systemBus(given.clock),
    health: processChecks(logOutput),
  };
}
