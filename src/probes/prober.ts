// One probe run: picks the means, retries what could not be asked at all.
import { isFault, KubeletError } from '../lib/errors.ts';
import { goQuote } from '../core/downward.ts';
import type { Container, Probe } from '../core/pod.ts';

/** What a container answered. `warning` counts as success and is told to people. */
export type Answer = { readonly result: 'success' | 'warning' | 'failure'; readonly output: string };

export const MAX_OUTPUT_BYTES = 10 * 1024;

export type ProbeTarget = {
  readonly probe: Probe;
  readonly container: Container;
  readonly containerId: string;
  readonly podIp: string;
  readonly timeoutMs: number;
  /**
   * What must not be cut off once it has begun ends with this one, though nobody listens any more; with the call's own
   * signal where it is absent.
   */
  readonly life?: AbortSignal;
};

/** An answer began and could not be read: it changes nothing either, but is told as a failure. */
export class BrokenAnswer extends KubeletError {}

/** Rejects when the question could not be asked; an unhealthy container is an answer. */
export type Prober = (target: ProbeTarget, signal: AbortSignal) => Promise<Answer>;

export type Probers = {
  readonly exec: Prober;
  readonly httpGet: Prober;
  readonly tcpSocket: Prober;
  readonly grpc: Prober;
};

const TRIES = 3;

export const probeOnce =
  (probers: Probers): Prober =>
  async (target, signal) => {
    const kind = (['exec', 'httpGet', 'tcpSocket', 'grpc'] as const).find((k) => target.probe[k] !== undefined);
    if (kind === undefined) throw new KubeletError('invalid', `missing probe handler for ${target.container.name}`);
    for (let attempt = 1; ; attempt++) {
      try {
        return await probers[kind](target, signal);
      } catch (err) {
        if (signal.aborted || attempt === TRIES || isFault(err, 'invalid')) throw err;
      }
    }
  };

/** The probe's own host or the pod's address. An empty one would end up at the node itself. */
export function hostOf(host: string | undefined, podIp: string): string {
  const address = host || podIp;
  if (address === '') throw new KubeletError('invalid', 'the pod has no IP address yet');
  return address;
}

/** A number, or a name among the container's ports. Of a name that is not there upstream says that it is no number. */
export function portOf(port: number | string, container: Container): number {
  const found =
    typeof port === 'number'
      ? port
      : (container.ports?.find((p) => p.name === port)?.containerPort ??
        (/^\d+$/.test(port) ? Number(port) : undefined));
  if (found === undefined)
    throw new KubeletError('invalid', `strconv.Atoi: parsing ${goQuote(String(port))}: invalid syntax`);
  if (found <= 0 || found > 65_535) throw new KubeletError('invalid', `invalid port number: ${found}`);
  return found;
}
