// Sends finished waterfalls to an OpenTelemetry collector (OTLP over gRPC), a chosen share of them, in batches. A
// collector that is away costs a log line and the spans of that time, never a pod.
import { randomBytes, type Clock } from '../lib/clock.ts';
import { GrpcChannel, type Target } from '../lib/grpc/channel.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';
import { TraceService, type ExportTraceServiceRequest, type KeyValue, type Span as WireSpan } from './gen/otlp.ts';
import type { Span, Waterfall } from './waterfall.ts';

export type OtlpExporterDeps = { readonly clock: Clock; readonly log: Logger };

export type OtlpExporterOptions = {
  /** `host:port` or `unix:///path`; empty means the collector's usual place on this machine. */
  readonly endpoint: string;
  readonly samplingRatePerMillion: number;
  readonly nodeName: string;
  readonly version: string;
};

const FLUSH_MS = 5000;
const MAX_WAITING = 1000;
const CALL_MS = 10_000;
const INTERNAL = 1;
const FAILED = 2;

export class OtlpExporter implements Runnable {
  readonly name = 'trace-export';
  readonly #deps: OtlpExporterDeps;
  readonly #o: OtlpExporterOptions;
  #waiting: Waterfall[] = [];
  #isAway = false;

  constructor(deps: OtlpExporterDeps, options: OtlpExporterOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** Beyond a bound the newest is dropped: old ones show how the trouble began. */
  offer(waterfall: Waterfall): void {
    const chosen = this.#deps.clock.random() * 1e6 < this.#o.samplingRatePerMillion;
    if (chosen && this.#waiting.length < MAX_WAITING) this.#waiting.push(waterfall);
  }

  /** How many wait to be sent. */
  get waiting(): number {
    return this.#waiting.length;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    const channel = new GrpcChannel(clock, { target: targetOf(this.#o.endpoint), connectTimeoutMs: CALL_MS });
    try {
      const tick = (stop: AbortSignal): Promise<void> => this.#flush(channel, stop);
      await runEvery(clock, log, { name: this.name, everyMs: FLUSH_MS, delayFirst: true }, tick, signal);
      await this.#flush(channel, new AbortController().signal);
    } finally {
      channel.close();
    }
  }

  async #flush(channel: GrpcChannel, signal: AbortSignal): Promise<void> {
    if (this.#waiting.length === 0) return;
    const { clock, log } = this.#deps;
    const batch = this.#waiting;
    this.#waiting = [];
    try {
      await channel.unary(TraceService.export, exportRequest(batch, this.#o, clock), { signal, deadlineMs: CALL_MS });
      if (this.#isAway) log.info('the trace collector answers again', { endpoint: this.#o.endpoint });
      this.#isAway = false;
    } catch (err) {
      if (!this.#isAway) log.warn('spans could not be sent', { endpoint: this.#o.endpoint, err });
      this.#isAway = true;
    }
  }
}

const DEFAULT_PORT = 4317;

export function targetOf(endpoint: string): Target {
  if (endpoint.startsWith('unix:')) return { socketPath: endpoint.replace(/^unix:(\/\/)?/, '') };
  const [, host = '', port] = /^(?:https?:\/\/)?(\[[^\]]+\]|[^:/]*)(?::(\d+))?\/?$/.exec(endpoint) ?? [];
  return {
    host: host === '' ? 'localhost' : host.replace(/^\[|\]$/g, ''),
    port: port === undefined ? DEFAULT_PORT : Number(port),
  };
}

/** One trace per waterfall: a root span with the pieces below it. */
export function exportRequest(
  waterfalls: readonly Waterfall[],
  { nodeName, version }: Pick<OtlpExporterOptions, 'nodeName' | 'version'>,
  clock: Pick<Clock, 'random'>,
): ExportTraceServiceRequest {
  const attributes = attributesOf({ 'service.name': 'kubelet', 'service.version': version, 'host.name': nodeName });
  const spans = waterfalls.flatMap((waterfall) => spansOf(waterfall, clock));
  return {
    resourceSpans: [{ resource: { attributes }, scopeSpans: [{ scope: { name: 'kubelet', version }, spans }] }],
  };
}

function spansOf(waterfall: Waterfall, clock: Pick<Clock, 'random'>): WireSpan[] {
  const { kind, uid, namespace, name, startedAtMs, tookMs = 0, spans } = waterfall;
  const traceId = randomBytes(clock, 16);
  const rootId = randomBytes(clock, 8);
  const nanos = (ms: number): bigint => BigInt(Math.round((startedAtMs + ms) * 1000)) * 1000n;
  const root: WireSpan = {
    traceId,
    spanId: rootId,
    parentSpanId: new Uint8Array(0),
    name: kind === 'start' ? 'startPod' : 'stopPod',
    kind: INTERNAL,
    startTimeUnixNano: nanos(0),
    endTimeUnixNano: nanos(tookMs),
    attributes: attributesOf({ 'k8s.pod.uid': uid, 'k8s.pod.name': name, 'k8s.namespace.name': namespace }),
    status: undefined,
  };
  const child = (span: Span): WireSpan => ({
    traceId,
    spanId: randomBytes(clock, 8),
    parentSpanId: rootId,
    name: span.name,
    kind: INTERNAL,
    startTimeUnixNano: nanos(span.fromMs),
    endTimeUnixNano: nanos(span.toMs ?? tookMs),
    attributes: attributesOf({ 'k8s.pod.uid': uid, ...(span.of === undefined ? {} : { of: span.of }) }),
    status: span.error === undefined ? undefined : { code: FAILED, message: span.error },
  });
  return [root, ...spans.map(child)];
}

const attributesOf = (values: Readonly<Record<string, string>>): KeyValue[] =>
  Object.entries(values).map(([key, stringValue]) => ({ key, value: { stringValue } }));
