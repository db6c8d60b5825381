// A gRPC probe asks the standard health service.
import { formatDurationMs } from '../core/duration.ts';
import type { Clock } from '../lib/clock.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { GrpcError } from '../lib/grpc/status.ts';
import { Health, ServingStatus } from './gen/health.ts';
import { hostPort } from './net-errors.ts';
import { hostOf, type Answer, type Prober } from './prober.ts';

/** A server that does not listen is tried again while there is time, at gRPC's own pace. */
const RETRY = { firstMs: 1000, factor: 1.6 };
/** A health answer has three bytes; a container may send anything. */
const MAX_ANSWER_BYTES = 4096;
const WINDOW_BYTES = 65_535;
const NAMES = new Map<number, string>(Object.entries(ServingStatus).map(([name, value]) => [value, name]));

export const grpcProber =
  (clock: Clock, userAgent: string): Prober =>
  async ({ probe, podIp, timeoutMs }, signal) => {
    const target = { host: hostOf(undefined, podIp), port: probe.grpc?.port ?? 0 };
    const until = clock.monotonic() + timeoutMs;
    const limits = { userAgent, maxReceiveBytes: MAX_ANSWER_BYTES, windowBytes: WINDOW_BYTES };
    for (let pauseMs = RETRY.firstMs; ; pauseMs *= RETRY.factor) {
      const connectTimeoutMs = until - clock.monotonic();
      const channel = new GrpcChannel(clock, { target, connectTimeoutMs, ...limits });
      try {
        if (await isConnected(channel, signal)) {
          const request = { service: probe.grpc?.service ?? '' };
          const deadlineMs = until - clock.monotonic();
          return judge((await channel.unary(Health.check, request, { signal, deadlineMs })).status);
        }
      } catch (err) {
        if (signal.aborted || !(err instanceof GrpcError)) throw err;
        return failure(failureText(err, formatDurationMs(timeoutMs)));
      } finally {
        channel.close();
      }
      if (clock.monotonic() + pauseMs >= until)
        return failure(
          `timeout: failed to connect service "${hostPort(target.host, target.port)}" within ${formatDurationMs(timeoutMs)}: context deadline exceeded`,
        );
      await clock.sleep(pauseMs, signal);
      signal.throwIfAborted();
    }
  };

async function isConnected(channel: GrpcChannel, signal: AbortSignal): Promise<boolean> {
  try {
    await channel.connect(signal);
    return true;
  } catch (err) {
    if (signal.aborted || !(err instanceof GrpcError)) throw err;
    return false;
  }
}

const judge = (status: number): Answer =>
  status === ServingStatus.SERVING
    ? { result: 'success', output: 'service healthy' }
    : failure(`service unhealthy (responded with "${NAMES.get(status) ?? status}")`);

const failure = (output: string): Answer => ({ result: 'failure', output });

function failureText(err: GrpcError, timeout: string): string {
  if (err.codeName === 'DeadlineExceeded') return `timeout: health rpc did not complete within ${timeout}`;
  if (err.codeName === 'Unimplemented')
    return `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${err.message}`;
  return `error: health rpc probe failed: ${err.fullText}`;
}
