// The connection to one instance of a DRA driver: its calls in the version it speaks, the stream of its devices' health,
// and whether it is connected. A connection that breaks is made again, for as long as the driver is registered.
import { abortable, childScope, type Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock } from '../lib/clock.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import type { Rpc } from '../lib/grpc/rpc.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import type { Histogram } from '../lib/metrics.ts';
import { DRAResourceHealth, type DeviceHealth } from './gen/dra-health.ts';
import {
  DRAPlugin,
  type Claim,
  type NodePrepareResourcesResponse,
  type NodeUnprepareResourcesResponse,
} from './gen/dra-plugin.ts';

export type DraVersion = 'v1' | 'v1beta1';

export type DriverInstance = { readonly driver: string; readonly endpoint: string; readonly version: DraVersion };

export type DriverDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  /** `dra_grpc_operations_duration_seconds{driver_name,method_name,grpc_status_code}`. */
  readonly durations: Histogram;
  readonly events: {
    /** It was connected, or is not any more. */
    onConnection(): void;
    onHealth(devices: readonly DeviceHealth[]): void;
    /** Nothing is known of the devices' health any more. */
    onHealthLost(): void;
  };
};

const CALL_MS = 45_000;
const CONNECT_MS = 10_000;
const HEALTH_RETRY_MS = 5000;
const REDIAL = { baseMs: 100, maxMs: 10_000 };

export class DriverConnection {
  readonly instance: DriverInstance;
  readonly #deps: DriverDeps;
  readonly #channel: GrpcChannel;
  readonly #scope: Scope;
  #connected = false;
  #broken = Promise.withResolvers<void>();
  #running: Promise<unknown> = Promise.resolve();

  constructor(deps: DriverDeps, instance: DriverInstance, life: AbortSignal) {
    this.instance = instance;
    this.#deps = deps;
    this.#scope = childScope(life);
    this.#channel = new GrpcChannel(deps.clock, {
      target: { socketPath: instance.endpoint },
      connectTimeoutMs: CONNECT_MS,
      onDisconnect: () => this.#broken.resolve(),
    });
  }

  get connected(): boolean {
    return this.#connected;
  }

  start(): void {
    this.#running = Promise.all([this.#stayConnected(this.#scope.signal), this.#watchHealth(this.#scope.signal)]);
  }

  /** Resolves when nothing of it is left. No event comes any more. */
  async close(): Promise<void> {
    this.#scope.abort();
    this.#channel.close();
    await this.#running;
    this.#scope.release();
  }

  prepare(claims: readonly Claim[], signal: AbortSignal): Promise<NodePrepareResourcesResponse> {
    return this.#call(DRAPlugin.nodePrepareResources, { claims: [...claims] }, signal);
  }

  unprepare(claims: readonly Claim[], signal: AbortSignal): Promise<NodeUnprepareResourcesResponse> {
    return this.#call(DRAPlugin.nodeUnprepareResources, { claims: [...claims] }, signal);
  }

  async #call<Req, Res>(rpc: Rpc<Req, Res>, request: Req, signal: AbortSignal): Promise<Res> {
    const { clock, durations } = this.#deps;
    const { driver, version } = this.instance;
    const begun = clock.monotonic();
    const path = rpc.path.replace('.dra.v1.', `.dra.${version}.`);
    let code: string = 'OK';
    try {
      return await this.#channel.unary({ ...rpc, path }, request, { signal, deadlineMs: CALL_MS });
    } catch (err) {
      code = err instanceof GrpcError ? err.codeName : 'Unknown';
      throw err;
    } finally {
      const labels = { driver_name: driver, method_name: path, grpc_status_code: code };
      durations.observe((clock.monotonic() - begun) / 1000, labels);
    }
  }

  async #stayConnected(signal: AbortSignal): Promise<void> {
    const { clock, log, events } = this.#deps;
    const backoff = new Backoff(REDIAL);
    while (!signal.aborted) {
      this.#broken = Promise.withResolvers<void>();
      try {
        await this.#channel.connect(signal);
        this.#connected = true;
        events.onConnection();
        await abortable(signal, this.#broken.promise);
      } catch (err) {
        if (!signal.aborted) log.debug('DRA driver does not answer', { ...this.instance, err });
      }
      if (this.#connected && !signal.aborted) {
        this.#connected = false;
        events.onConnection();
      }
      await clock.sleep(backoff.failed(clock.monotonic()), signal);
    }
  }

  async #watchHealth(signal: AbortSignal): Promise<void> {
    const { clock, log, events } = this.#deps;
    while (!signal.aborted) {
      try {
        await this.#channel.serverStream(DRAResourceHealth.nodeWatchResources, {}, { signal }, ({ devices }) => {
          if (!signal.aborted) events.onHealth(devices);
        });
      } catch (err) {
        if (signal.aborted) return;
        // Most drivers do not tell.
        if (err instanceof GrpcError && err.code === GrpcCode.Unimplemented) return;
        log.debug('stream of device health ended', { ...this.instance, err });
      }
      events.onHealthLost();
      await clock.sleep(HEALTH_RETRY_MS, signal);
    }
  }
}
