// Fits the parts of this folder together: the tracer, and the exporter where `tracing` is configured.
import type { Environment } from '../config/environment.ts';
import type { KubeletConfig } from '../config/config-fields.ts';
import { KUBELET_VERSION } from '../lib/version.ts';
import { OtlpExporter, type OtlpExporterOptions } from './otlp-exporter.ts';
import { PodTracer } from './pod-tracer.ts';

export type Tracing = {
  /** What each pod's start waits for. */
  readonly tracer: PodTracer;
  /** Where `tracing` is configured. */
  readonly traceExport: OtlpExporter | undefined;
};

/** With this verbosity every finished waterfall is in the log. */
const WATERFALL_LEVEL = 4;

export function createTracing({
  config,
  clock,
  log,
  nodeName,
}: Pick<Environment, 'config' | 'clock' | 'log' | 'nodeName'>): Tracing {
  const settings = exportSettings(config);
  const traceExport =
    settings &&
    new OtlpExporter(
      { clock, log: log.child({ component: 'tracing' }) },
      { ...settings, nodeName, version: KUBELET_VERSION },
    );
  const tracer = new PodTracer({
    clock,
    onFinished: (waterfall) => {
      traceExport?.offer(waterfall);
      if (log.enabled(WATERFALL_LEVEL)) log.debug('waterfall', { waterfall: JSON.stringify(waterfall) });
    },
  });
  return { tracer, traceExport };
}

/** Nothing is sent where no share of the starts was asked for. */
export function exportSettings({
  tracing,
}: Pick<KubeletConfig, 'tracing'>): Pick<OtlpExporterOptions, 'endpoint' | 'samplingRatePerMillion'> | undefined {
  const samplingRatePerMillion = tracing?.samplingRatePerMillion ?? 0;
  return samplingRatePerMillion > 0 ? { endpoint: tracing?.endpoint ?? '', samplingRatePerMillion } : undefined;
}
