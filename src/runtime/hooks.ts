// Lifecycle hooks. A hook that fails throws; the text goes to the container's status, never to an event, because what a
// hook prints may be secret.
import type { CriRuntime } from '../cri/services.ts';
import { goQuote } from '../core/downward.ts';
import type { EventRecorder } from '../core/events.ts';
import { podRef, type Container, type HttpGetAction, type LifecycleHandler, type Pod } from '../core/pod.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import type { HeaderFields } from '../lib/http/header-fields.ts';
import type { Infra } from './needs.ts';

export type HookTarget = {
  readonly pod: Pod;
  readonly container: Container;
  readonly containerId: string;
  readonly podIps: readonly string[];
};
export type HookDeps = {
  readonly cri: CriRuntime;
  readonly events: EventRecorder;
  readonly infra: Infra;
  /** Pods on the host's network are reached there. */
  readonly nodeIps: () => readonly string[];
};

/** As much of what a command prints is kept. */
const MAX_OUTPUT_BYTES = 10 * 1024;

/** The other side answered HTTPS with plain HTTP. */
const PLAIN_HTTP_CODES = [
  'ERR_SSL_WRONG_VERSION_NUMBER',
  'ERR_SSL_PACKET_LENGTH_TOO_LONG',
  'ERR_SSL_HTTP_REQUEST',
  'ERR_SSL_UNKNOWN_PROTOCOL',
  'EPROTO',
];

export class HookRunner {
  readonly #deps: HookDeps;
  readonly #userAgent: string;

  constructor(deps: HookDeps, opts: { readonly kubernetesVersion: string }) {
    this.#deps = deps;
    this.#userAgent = `kube-lifecycle/${opts.kubernetesVersion}`;
  }

  async run(handler: LifecycleHandler, target: HookTarget, signal: AbortSignal): Promise<void> {
    if (handler.exec !== undefined) return this.#exec(handler.exec.command ?? [], target, signal);
    if (handler.httpGet !== undefined) return this.#http(handler.httpGet, target, signal);
    if (handler.sleep !== undefined) {
      await this.#deps.infra.clock.sleep(handler.sleep.seconds * 1000, signal);
      if (signal.aborted) this.#deps.infra.metrics.hookSleepCutShort();
      return signal.throwIfAborted();
    }
    throw new KubeletError('invalid', 'invalid handler');
  }

  async #exec(command: readonly string[], target: HookTarget, signal: AbortSignal): Promise<void> {
    let output = '';
    try {
      const done = await this.#deps.cri.execSync({ containerId: target.containerId, cmd: command, timeout: 0 }, signal);
      output = Buffer.concat([done.stdout, done.stderr]).subarray(0, MAX_OUTPUT_BYTES).toString();
      if (done.exitCode === 0) return;
      throw new KubeletError(
        'internal',
        `command '${command.join(' ')}' exited with ${done.exitCode}: ${Buffer.from(done.stderr).subarray(0, MAX_OUTPUT_BYTES).toString()}`,
      );
    } catch (err) {
      throw failure(`Exec lifecycle hook ([${command.join(' ')}])`, target, err, output);
    }
  }

  async #http(action: HttpGetAction, target: HookTarget, signal: AbortSignal): Promise<void> {
    const ips = target.pod.spec.hostNetwork === true ? this.#deps.nodeIps() : target.podIps;
    const url = hookUrl(action, target.container, ips);
    try {
      await this.#get(url, headersOf(action, this.#userAgent), target, signal);
    } catch (err) {
      throw failure(`HTTP lifecycle hook (${action.path ?? ''})`, target, err);
    }
  }

  async #get(url: URL, headers: HeaderFields, target: HookTarget, signal: AbortSignal): Promise<void> {
    try {
      await this.#deps.infra.http.get(url, headers, signal);
    } catch (err) {
      if (url.protocol !== 'https:' || !spokePlainHttp(err)) throw err;
      const plain = new URL(url);
      plain.protocol = 'http:';
      const { authorization: _, ...rest } = headers;
      await this.#deps.infra.http.get(plain, rest, signal);
      this.#deps.infra.metrics.hookFellBackToHttp();
      this.#deps.events.pod(
        target.pod,
        'Warning',
        'LifecycleHTTPFallback',
        `request to HTTPS lifecycle hook ${url.host} got HTTP response, retry with HTTP succeeded`,
      );
    }
  }
}

const spokePlainHttp = (err: unknown): boolean =>
  err instanceof Error && PLAIN_HTTP_CODES.includes(errnoOf(err.cause) ?? '');

function hookUrl(action: HttpGetAction, container: Container, ips: readonly string[]): URL {
  const host = action.host || ips[0];
  if (host === undefined) throw new KubeletError('invalid', 'failed to find networking container: no pod IP');
  const port = portOf(action.port, container);
  const scheme = (action.scheme ?? 'HTTP').toLowerCase();
  const authority = host.includes(':') && !host.startsWith('[') ? `[${host}]` : host;
  const path = action.path ?? '';
  return new URL(`${scheme}://${authority}:${port}${path.startsWith('/') ? '' : '/'}${path}`);
}

/** The hook's own headers, each as often as it is given; an empty `Accept` leaves it out. */
function headersOf(action: HttpGetAction, userAgent: string): HeaderFields {
  const headers = Object.create(null) as Record<string, string[]>;
  for (const { name, value } of action.httpHeaders ?? []) (headers[name.toLowerCase()] ??= []).push(value);
  const { host, accept = ['*/*'], 'user-agent': agent = [userAgent], ...others } = headers;
  return {
    ...others,
    'user-agent': agent[0] ?? '',
    ...(accept[0] === '' ? {} : { accept }),
    ...(host?.[0] ? { host: host[0] } : {}),
  };
}

/** A number, a number as text, or the name of one of the container's ports. */
function portOf(port: number | string, container: Container): number {
  const named = (container.ports ?? []).find((p) => p.name === port)?.containerPort;
  const number = typeof port === 'number' ? port : (named ?? Number(port));
  if (Number.isInteger(number) && number > 0 && number < 65536) return number;
  throw new KubeletError('invalid', `couldn't find port: "${port}" in container "${container.name}"`);
}

/** `output`: of a command. */
const failure = (what: string, { pod, container }: HookTarget, err: unknown, output?: string): KubeletError =>
  new KubeletError(
    'internal',
    `${what} for Container ${goQuote(container.name)} in Pod ${goQuote(podRef(pod))} failed - error: ${messageOf(err)}` +
      (output === undefined ? '' : `, message: ${goQuote(output)}`),
    { cause: err },
  );
