// The connection to one device plugin: its options, the stream of its devices, and the calls that give them out. Ends with
// the stream; a plugin that comes back registers again.
import { childScope, type Scope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import { devicesOf, type Devices } from './device.ts';
import {
  DevicePlugin,
  type ContainerAllocateResponse,
  type ContainerPreferredAllocationRequest,
  type DevicePluginOptions,
} from './gen/device-plugin.ts';

/** Upstream waits for ever for Allocate, and everything else on the node with it. */
const CALL_MS = 60_000;
const PRE_START_MS = 30_000;
const CONNECT_MS = 10_000;

export type PluginEvents = {
  /** The plugin's list, whenever it changes. */
  onDevices(devices: Devices): void;
  /** The stream ended, for whatever reason. */
  onEnd(err: unknown): void;
};

type PluginAddress = { readonly resource: string; readonly socketPath: string };

export class PluginConnection {
  readonly resource: string;
  readonly socketPath: string;
  readonly options: DevicePluginOptions;
  readonly #channel: GrpcChannel;
  readonly #scope: Scope;
  #streaming: Promise<void> = Promise.resolve();
  #stopped = false;

  private constructor(plugin: PluginAddress, options: DevicePluginOptions, channel: GrpcChannel, scope: Scope) {
    this.resource = plugin.resource;
    this.socketPath = plugin.socketPath;
    this.options = options;
    this.#channel = channel;
    this.#scope = scope;
  }

  /** `life` ends the connection; `signal` only the attempt to make it. */
  static async open(
    clock: Clock,
    plugin: PluginAddress,
    life: AbortSignal,
    signal: AbortSignal,
  ): Promise<PluginConnection> {
    const channel = new GrpcChannel(clock, {
      target: { socketPath: plugin.socketPath },
      connectTimeoutMs: CONNECT_MS,
    });
    try {
      await channel.connect(signal).catch((err: unknown) => {
        throw new KubeletError('unavailable', `failed to dial device plugin: ${fullErrorText(err)}`, { cause: err });
      });
      const call = { signal, deadlineMs: CALL_MS };
      const options = await channel.unary(DevicePlugin.getDevicePluginOptions, {}, call).catch((err: unknown) => {
        const text = `failed to get device plugin options: ${fullErrorText(err)}`;
        throw new KubeletError('unavailable', text, { cause: err });
      });
      return new PluginConnection(plugin, options, channel, childScope(life));
    } catch (err) {
      channel.close();
      throw err;
    }
  }

  /** Begins to listen for the plugin's devices. */
  watch(events: PluginEvents): void {
    const onMessage = (message: { devices: Parameters<typeof devicesOf>[0] }): void => {
      if (!this.#scope.signal.aborted) events.onDevices(devicesOf(message.devices));
    };
    this.#streaming = this.#channel
      .serverStream(DevicePlugin.listAndWatch, {}, { signal: this.#scope.signal }, onMessage)
      .catch((err: unknown) => err)
      .then((err) => {
        this.#stopped = true;
        this.#channel.close();
        if (!this.#scope.signal.aborted) events.onEnd(err);
        this.#scope.release();
      });
  }

  /** Resolves when nothing of it is left. No event comes any more. */
  async close(): Promise<void> {
    this.#stopped = true;
    this.#scope.abort();
    await this.#streaming;
  }

  /** The plugin must register again before it is called again. */
  #checkAlive(): void {
    if (this.#stopped) throw new KubeletError('unavailable', `endpoint ${this.resource} has been stopped`);
  }

  async allocate(ids: readonly string[], signal: AbortSignal): Promise<ContainerAllocateResponse> {
    this.#checkAlive();
    const request = { containerRequests: [{ devicesIds: [...ids] }] };
    const answer = await this.#channel
      .unary(DevicePlugin.allocate, request, { signal, deadlineMs: CALL_MS })
      .catch(rethrown(''));
    const [response] = answer.containerResponses;
    // Upstream prints the answer behind it, of which there is nothing to print.
    if (response === undefined) throw new KubeletError('invalid', 'no containers return in allocation response ');
    return response;
  }

  async preferred(request: ContainerPreferredAllocationRequest, signal: AbortSignal): Promise<readonly string[]> {
    this.#checkAlive();
    const answer = await this.#channel
      .unary(DevicePlugin.getPreferredAllocation, { containerRequests: [request] }, { signal, deadlineMs: CALL_MS })
      .catch(rethrown('device plugin GetPreferredAllocation rpc failed with err: '));
    return answer.containerResponses[0]?.deviceIDs ?? [];
  }

  async preStart(ids: readonly string[], signal: AbortSignal): Promise<void> {
    this.#checkAlive();
    await this.#channel
      .unary(DevicePlugin.preStartContainer, { devicesIds: [...ids] }, { signal, deadlineMs: PRE_START_MS })
      .catch(rethrown('device plugin PreStartContainer rpc failed with err: '));
  }
}

/** What people see of a failed call is Go's text. */
const rethrown =
  (prefix: string) =>
  (err: unknown): never => {
    throw new KubeletError('unavailable', `${prefix}${fullErrorText(err)}`, { cause: err });
  };
