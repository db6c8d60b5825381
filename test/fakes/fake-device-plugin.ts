// A device plugin: as an object in a test's own process, or as a process of its own (`fake-device-plugin-main.ts`). Its
// faults are those of real ones: it dies in the middle of a call, answers late or never, sends garbage.
import { rm } from 'node:fs/promises';
import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { join } from 'node:path';
import {
  DevicePlugin,
  Registration,
  type AllocateResponse,
  type ContainerAllocateResponse,
  type Device,
  type DevicePluginOptions,
} from '../../src/devices/gen/device-plugin.ts';
import { aborted } from '../../src/lib/abort.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';

export type FakeDevice = { readonly id: string; readonly health?: string; readonly nodes?: readonly number[] };

export type FakeDevicePluginOptions = {
  /** The kubelet's `device-plugins` directory. */
  readonly directory: string;
  readonly resource: string;
  readonly devices: readonly FakeDevice[];
  readonly socketName?: string;
  readonly options?: Partial<DevicePluginOptions>;
  /** What a container gets for its devices. */
  readonly answer?: (ids: readonly string[]) => Partial<ContainerAllocateResponse>;
  readonly prefer?: (available: readonly string[], mustInclude: readonly string[], size: number) => readonly string[];
};

/** What happens instead of an answer to Allocate. */
export type AllocateFault = 'die' | 'hang' | 'refuse' | 'empty' | undefined;

export class FakeDevicePlugin {
  readonly #o: FakeDevicePluginOptions;
  readonly socketPath: string;
  readonly #watchers = new Set<(devices: Device[]) => void>();
  #server: GrpcServer | undefined;
  #stopped: Promise<void> = Promise.resolve();
  #devices: readonly FakeDevice[];
  fault: AllocateFault;
  /** Every call, in order: its name and the ids it was about. */
  readonly calls: { readonly call: string; readonly ids: readonly string[] }[] = [];

  constructor(options: FakeDevicePluginOptions) {
    this.#o = options;
    this.#devices = options.devices;
    this.socketPath = join(options.directory, options.socketName ?? `${options.resource.replaceAll('/', '-')}.sock`);
  }

  /** Serves without telling the kubelet. */
  async listen(): Promise<void> {
    await this.stop();
    const server = new GrpcServer();
    this.#server = server;
    server.unary(DevicePlugin.getDevicePluginOptions, async () => ({
      preStartRequired: this.#o.options?.preStartRequired ?? false,
      getPreferredAllocationAvailable: this.#o.options?.getPreferredAllocationAvailable ?? false,
    }));
    server.serverStream(DevicePlugin.listAndWatch, async (_, signal, send) => {
      const tell = (devices: Device[]): void => void send({ devices });
      this.#watchers.add(tell);
      tell(this.#listed());
      await aborted(signal);
      this.#watchers.delete(tell);
    });
    server.unary(DevicePlugin.allocate, (request, signal) =>
      this.#allocate(request.containerRequests[0]?.devicesIds ?? [], signal),
    );
    server.unary(DevicePlugin.getPreferredAllocation, async ({ containerRequests: [request] }) => {
      const { availableDeviceIDs = [], mustIncludeDeviceIDs = [], allocationSize = 0 } = request ?? {};
      this.calls.push({ call: 'GetPreferredAllocation', ids: availableDeviceIDs });
      const preferred = this.#o.prefer?.(availableDeviceIDs, mustIncludeDeviceIDs, allocationSize) ?? [];
      return { containerResponses: [{ deviceIDs: [...preferred] }] };
    });
    server.unary(DevicePlugin.preStartContainer, async ({ devicesIds }) => {
      this.calls.push({ call: 'PreStartContainer', ids: devicesIds });
      return {};
    });
    await server.listen(this.socketPath);
  }

  async register(version = 'v1beta1'): Promise<void> {
    const channel = new GrpcChannel(systemClock, { target: { socketPath: join(this.#o.directory, 'kubelet.sock') } });
    const request = {
      version,
      endpoint: this.socketPath.slice(this.#o.directory.length + 1),
      resourceName: this.#o.resource,
    };
    try {
      await channel.unary(Registration.register, request, { signal: new AbortController().signal, deadlineMs: 30_000 });
    } finally {
      channel.close();
    }
  }

  async start(): Promise<this> {
    await this.listen();
    await this.register();
    return this;
  }

  /** The kubelet hears of other devices. */
  list(devices: readonly FakeDevice[]): void {
    this.#devices = devices;
    for (const tell of this.#watchers) tell(this.#listed());
  }

  /** One after the other: the end of a plugin that died must not take the socket of the one after it. */
  stop(): Promise<void> {
    return (this.#stopped = this.#stopped.then(() => this.#stopNow()));
  }

  async #stopNow(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#watchers.clear();
    await server?.close();
    await rm(this.socketPath, { force: true });
  }

  #listed(): Device[] {
    return this.#devices.map(({ id, health = 'Healthy', nodes }) => ({
      ID: id,
      health,
      ...(nodes === undefined ? {} : { topology: { nodes: nodes.map((ID) => ({ ID })) } }),
    }));
  }

  async #allocate(ids: readonly string[], signal: AbortSignal): Promise<AllocateResponse> {
    this.calls.push({ call: 'Allocate', ids });
    switch (this.fault) {
      case 'die':
        await this.stop();
        break;
      case 'hang':
        await aborted(signal);
        break;
      case 'refuse':
        throw new GrpcError(GrpcCode.Unknown, 'the card is on fire');
      case 'empty':
        return { containerResponses: [] };
      default:
    }
    const answer = this.#o.answer?.(ids) ?? { envs: { DEVICES: ids.join(',') } };
    return {
      containerResponses: [{ envs: {}, mounts: [], devices: [], annotations: {}, cdiDevices: [], ...answer }],
    };
  }
}

/** Something that speaks HTTP/2 and answers every call with bytes that are no message. */
export async function serveGarbage(socketPath: string): Promise<Http2Server> {
  await rm(socketPath, { force: true });
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' });
    stream.end(Buffer.from([0, 0, 0, 0, 4, 0xff, 0xff, 0xff, 0xff]));
  });
  await new Promise<void>((resolve) => server.listen(socketPath, resolve));
  return server;
}
