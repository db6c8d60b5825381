// Probes and lifecycle hooks.
import { httpHeaderName, portName, portNumber } from '../names.ts';
import type { HttpGetAction, Lifecycle, LifecycleHandler, Probe } from '../pod.ts';
import type { Findings } from './field-error.ts';
import { STOP_SIGNALS } from './stop-signals.ts';

export type ProbeKind = 'livenessProbe' | 'readinessProbe' | 'startupProbe';

export function checkProbe(
  f: Findings,
  container: string,
  kind: ProbeKind,
  probe: Probe | undefined,
  graceSeconds: number,
): void {
  if (probe === undefined) return;
  const field = `${container}.${kind}`;
  checkHandler(f, field, probe, graceSeconds);
  for (const part of [
    'initialDelaySeconds',
    'timeoutSeconds',
    'periodSeconds',
    'successThreshold',
    'failureThreshold',
  ] as const)
    f.nonNegative(`${field}.${part}`, probe[part]);
  const own = probe.terminationGracePeriodSeconds;
  if (own !== undefined && own <= 0) f.invalid(`${field}.terminationGracePeriodSeconds`, own, 'must be greater than 0');
  if (kind === 'readinessProbe') {
    if (own !== undefined)
      f.invalid(`${field}.terminationGracePeriodSeconds`, own, 'must not be set for readinessProbes');
  } else if ((probe.successThreshold ?? 1) !== 1) {
    f.invalid(`${field}.successThreshold`, probe.successThreshold, 'must be 1');
  }
}

export function checkLifecycle(
  f: Findings,
  field: string,
  lifecycle: Lifecycle,
  graceSeconds: number,
  os: string | undefined,
): void {
  if (lifecycle.postStart !== undefined) checkHandler(f, `${field}.postStart`, lifecycle.postStart, graceSeconds);
  if (lifecycle.preStop !== undefined) checkHandler(f, `${field}.preStop`, lifecycle.preStop, graceSeconds);
  const signal = lifecycle.stopSignal;
  if (signal === undefined) return;
  const at = `${field}.stopSignal`;
  if (os === undefined) return f.forbidden(at, 'may not be set for containers with empty `spec.os.name`');
  const supported = os === 'windows' ? ['SIGKILL', 'SIGTERM'] : STOP_SIGNALS;
  if (!supported.includes(signal)) f.notSupported(at, signal, supported);
}

type Handler = LifecycleHandler & Pick<Probe, 'grpc'>;

function checkHandler(f: Findings, field: string, handler: Handler, graceSeconds: number): void {
  let found = false;
  for (const kind of ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const) {
    if (handler[kind] === undefined) continue;
    const at = `${field}.${kind}`;
    if (found) f.forbidden(at, 'may not specify more than 1 handler type');
    else checkAction(f, at, { [kind]: handler[kind] }, graceSeconds);
    found = true;
  }
  if (!found) f.required(field, 'must specify a handler type');
}

function checkAction(f: Findings, field: string, only: Handler, graceSeconds: number): void {
  if (only.exec !== undefined && (only.exec.command ?? []).length === 0) f.required(`${field}.command`);
  if (only.httpGet !== undefined) checkHttpGet(f, field, only.httpGet);
  if (only.tcpSocket !== undefined) checkPort(f, `${field}.port`, only.tcpSocket.port);
  if (only.grpc !== undefined) checkPort(f, `${field}.port`, only.grpc.port);
  const seconds = only.sleep?.seconds;
  if (only.sleep !== undefined && (seconds === undefined || seconds < 0 || seconds > graceSeconds))
    f.invalid(
      field,
      seconds ?? 0,
      `must be non-negative and less than terminationGracePeriodSeconds (${graceSeconds})`,
    );
}

function checkHttpGet(f: Findings, field: string, action: HttpGetAction): void {
  if (!action.path) f.required(`${field}.path`);
  checkPort(f, `${field}.port`, action.port);
  if (action.scheme !== 'HTTP' && action.scheme !== 'HTTPS')
    f.notSupported(`${field}.scheme`, action.scheme ?? '', ['HTTP', 'HTTPS']);
  for (const header of action.httpHeaders ?? [])
    f.reasons(`${field}.httpHeaders`, header.name, httpHeaderName(header.name ?? ''));
}

function checkPort(f: Findings, field: string, port: number | string | undefined): void {
  if (typeof port === 'string') f.reasons(field, port, portName(port));
  else f.reasons(field, port ?? 0, portNumber(port ?? 0));
}
