// A gRPC probe asks the standard health service.
import { formatDurationMs } from '../core/duration.ts';
import type { Clock } from '../lib/clock.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { GrpcError } from '../lib/grpc/status.ts';
import { Health, ServingStatus } from './gen/health.ts';
import { hostPort } from './net-errors.ts';
import { hostOf, type Answer, type Prober } from './prober.ts';

/** The call outlives a connection attempt a little, so that the two timeouts can be told apart. */
const MARGIN_MS = 20;
/** A health answer has three bytes; a container may send anything. */
const MAX_ANSWER_BYTES = 4096;
const WINDOW_BYTES = 65_535;
const NAMES = new Map<number, string>(Object.entries(ServingStatus).map(([name, value]) => [value, name]));

export const grpcProber =
  (clock: Clock, userAgent: string): Prober =>
  async ({ probe, podIp, timeoutMs }, signal) => {
    const port = probe.grpc?.port ?? 0;
    const host = hostOf(undefined, podIp);
    const channel = new GrpcChannel(clock, {
      target: { host, port },
      connectTimeoutMs: timeoutMs,
      userAgent,
      maxReceiveBytes: MAX_ANSWER_BYTES,
      windowBytes: WINDOW_BYTES,
    });
    try {
      const request = { service: probe.grpc?.service ?? '' };
      const { status } = await channel.unary(Health.check, request, { signal, deadlineMs: timeoutMs + MARGIN_MS });
      if (status === ServingStatus.SERVING) return { result: 'success', output: 'service healthy' };
      return failure(`service unhealthy (responded with "${NAMES.get(status) ?? status}")`);
    } catch (err) {
      if (signal.aborted || !(err instanceof GrpcError)) throw err;
      return failure(failureText(err, hostPort(host, port), formatDurationMs(timeoutMs)));
    } finally {
      channel.close();
    }
  };

const failure = (output: string): Answer => ({ result: 'failure', output });

function failureText(err: GrpcError, address: string, timeout: string): string {
  // A status that the server sent has no cause; a connection that failed has.
  if (err.codeName === 'Unavailable' && err.cause !== undefined)
    return `timeout: failed to connect service "${address}" within ${timeout}: context deadline exceeded`;
  if (err.codeName === 'DeadlineExceeded') return `timeout: health rpc did not complete within ${timeout}`;
  if (err.codeName === 'Unimplemented')
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${err.message}`;
  return `error: health rpc probe failed: ${err.fullText}`;
}
