// How runs of the kubeconfig's credential plugin end, and how long the certificates it gives are good and were used.
import { X509Certificate } from 'node:crypto';
import type { Clock } from '../lib/clock.ts';
import type { Counter, Histogram, Registry } from '../lib/metrics.ts';
import type { TlsIdentity } from './kubeconfig.ts';

/** Ten minutes to four years. */
const LIFE_BUCKETS = [
  600, 1800, 3600, 14_400, 86_400, 604_800, 2_592_000, 7_776_000, 15_552_000, 31_104_000, 124_416_000,
];

type CallStatus = 'no_error' | 'plugin_execution_error' | 'plugin_not_found_error' | 'client_internal_error';
export type ProgramError = { readonly code?: string | number | null; readonly signal?: string | null };

/** The exit code is that of the program, or made up as upstream makes it up. */
export function callOutcome(err: ProgramError | null): { readonly code: string; readonly call_status: CallStatus } {
  if (err === null) return { code: '0', call_status: 'no_error' };
  if (typeof err.code === 'number') return { code: String(err.code), call_status: 'plugin_execution_error' };
  if (/^E[A-Z0-9]+$/.test(err.code ?? '')) return { code: '1', call_status: 'plugin_not_found_error' };
  const isKilled = (err.code ?? '') === '' && (err.signal ?? '') !== '';
  return isKilled
    ? { code: '-1', call_status: 'plugin_execution_error' }
    : { code: '1', call_status: 'client_internal_error' };
}

export class ExecMetrics {
  readonly #clock: Clock;
  readonly #calls: Counter;
  readonly #ages: Histogram;
  /** The certificate in use by whoever has it from a plugin. */
  readonly #inUse = new Map<object, { readonly text: string; readonly fromMs: number; readonly untilMs: number }>();

  constructor(clock: Clock, registry: Registry) {
    this.#clock = clock;
    this.#calls = registry.counter(
      'rest_client_exec_plugin_call_total',
      '[ALPHA] Number of calls to an exec plugin, partitioned by the type of event encountered (no_error, plugin_execution_error, plugin_not_found_error, client_internal_error) and an optional exit code. The exit code will be set to 0 if and only if the plugin call was successful.',
      ['call_status', 'code'],
    );
    this.#ages = registry.histogram(
      'rest_client_exec_plugin_certificate_rotation_age',
      '[ALPHA] Histogram of the number of seconds the last auth exec plugin client certificate lived before being rotated. If auth exec plugin client certificates are unused, histogram will contain no data.',
      [],
      LIFE_BUCKETS,
    );
    registry.collected(
      'rest_client_exec_plugin_ttl_seconds',
      '[ALPHA] Gauge of the shortest TTL (time-to-live) of the client certificate(s) managed by the auth exec plugin. The value is in seconds until certificate expiry (negative if already expired). If auth exec plugins are unused or manage no TLS certificates, the value will be +INF.',
      'gauge',
      () => [[{}, this.#ttlSeconds()]],
    );
  }

  called(err: ProgramError | null): void {
    this.#calls.inc(callOutcome(err));
  }

  /** What a plugin gave is used from now on. */
  uses(owner: object, tls: TlsIdentity | undefined): void {
    const before = this.#inUse.get(owner);
    if (before !== undefined && before.text === tls?.cert) return;
    if (before !== undefined) this.#ages.observe((this.#clock.now() - before.fromMs) / 1000);
    const validity = tls === undefined ? undefined : validityOf(tls.cert);
    if (tls === undefined || validity === undefined) this.#inUse.delete(owner);
    else this.#inUse.set(owner, { text: tls.cert, ...validity });
  }

  #ttlSeconds(): number {
    return (Math.min(Infinity, ...[...this.#inUse.values()].map(({ untilMs }) => untilMs)) - this.#clock.now()) / 1000;
  }
}

function validityOf(pem: string): { readonly fromMs: number; readonly untilMs: number } | undefined {
  try {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    return { fromMs: validFromDate.getTime(), untilMs: validToDate.getTime() };
  } catch {
    return undefined; // the connection will say what is wrong with it
  }
}
