// The driver as one part: serves the three services on its socket, then offers itself to the kubelet on another.
import { mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { aborted } from '../../lib/abort.ts';
import type { Clock } from '../../lib/clock.ts';
import {
  Controller,
  Identity,
  Node,
  PluginServiceType,
  VolumeExpansionType,
  type NodeRpcType,
} from '../../lib/csi-api/gen/csi.ts';
import { Registration } from '../../lib/csi-api/gen/pluginregistration.ts';
import { messageOf } from '../../lib/errors.ts';
import type { Rpc } from '../../lib/grpc/rpc.ts';
import { GrpcServer } from '../../lib/grpc/server.ts';
import { GrpcError } from '../../lib/grpc/status.ts';
import type { Logger } from '../../lib/logger.ts';
import { readable, type RecordedCall } from './call-log.ts';
import { ControllerService } from './controller-service.ts';
import { DRIVER_NAME } from './driver-name.ts';
import { usualBacking, VolumeDevices } from './devices.ts';
import { suffer, type FaultSource } from './faults.ts';
import { DEFAULT_CAPABILITIES, NodeService } from './node-service.ts';
import { VolumeStore, type Backing } from './volume-store.ts';

export type HostpathOptions = {
  readonly name?: string;
  readonly nodeId: string;
  /** Where the volumes are. */
  readonly directory: string;
  /** The socket of the three services. */
  readonly endpoint: string;
  /** `plugins_registry` of the kubelet; without it the driver does not offer itself. */
  readonly registry?: string;
  readonly maxVolumes?: number;
  readonly topology?: Readonly<Record<string, string>>;
  readonly capabilities?: readonly NodeRpcType[];
  /** Whether volumes must be attached before they are staged; true unless its CSIDriver says otherwise. */
  readonly attach?: boolean;
  /** What new file system volumes are made of; by default what this machine can grow while it is mounted. */
  readonly backing?: Backing;
};

export type HostpathDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly faults?: FaultSource;
  readonly record?: (call: RecordedCall) => void;
  /** What a fault that kills the driver does. */
  readonly die?: () => void;
};

const DEFAULT_MAX_VOLUMES = 100;

export class HostpathDriver {
  readonly name = 'csi-hostpath';
  readonly #deps: HostpathDeps;
  readonly #o: HostpathOptions;
  readonly #driverName: string;

  constructor(deps: HostpathDeps, options: HostpathOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#driverName = options.name ?? DRIVER_NAME;
  }

  /** `ready` is called when both sockets answer. */
  async run(signal: AbortSignal, ready: () => void = () => undefined): Promise<void> {
    const { endpoint, registry, directory } = this.#o;
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const services = new GrpcServer();
    this.#addServices(services, this.#o.backing ?? (await usualBacking()), signal);
    await listenAt(services, endpoint);
    const registration = new GrpcServer();
    const offer = registry === undefined ? undefined : join(registry, `${this.#driverName}-reg.sock`);
    try {
      if (offer !== undefined) {
        this.#addRegistration(registration);
        await listenAt(registration, offer);
      }
      this.#deps.log.info('driver is serving', { driver: this.#driverName, endpoint });
      ready();
      await aborted(signal);
    } finally {
      if (offer !== undefined) await rm(offer, { force: true });
      await Promise.all([registration.close(), services.close()]);
      await rm(endpoint, { force: true });
    }
  }

  #addServices(server: GrpcServer, backing: Backing, signal: AbortSignal): void {
    const store = new VolumeStore(this.#o.directory);
    const devices = new VolumeDevices(this.#deps.clock, signal);
    const maxVolumes = this.#o.maxVolumes ?? DEFAULT_MAX_VOLUMES;
    const { nodeId, directory, topology = {}, capabilities = DEFAULT_CAPABILITIES, attach = true } = this.#o;
    const controller = new ControllerService({ store, devices }, { nodeId, maxVolumes, directory, attach, backing });
    const condition = async (): ReturnType<FaultSource['condition']> => this.#deps.faults?.condition();
    const options = { nodeId, maxVolumes, topology, capabilities, attach, backing };
    const node = new NodeService({ store, devices, condition }, options);
    this.#addIdentity(server, signal);
    for (const name of Object.keys(Controller) as (keyof typeof Controller)[])
      this.#add(server, Controller[name] as Rpc<unknown, unknown>, methodOf(controller, name), signal);
    for (const name of Object.keys(Node) as (keyof typeof Node)[])
      this.#add(server, Node[name] as Rpc<unknown, unknown>, methodOf(node, name), signal);
  }

  #addIdentity(server: GrpcServer, signal: AbortSignal): void {
    const add = <Req, Res>(rpc: Rpc<Req, Res>, answer: Res): void =>
      this.#add(server, rpc, () => Promise.resolve(answer), signal);
    add(Identity.getPluginInfo, { name: this.#driverName, vendorVersion: '1', manifest: {} });
    add(Identity.probe, { ready: { value: true } });
    add(Identity.getPluginCapabilities, {
      capabilities: [
        { service: { type: PluginServiceType.CONTROLLER_SERVICE } },
        { volumeExpansion: { type: VolumeExpansionType.ONLINE } },
      ],
    });
  }

  /** Faults, the record of the call and the life of the driver around one method. */
  #add<Req, Res>(
    server: GrpcServer,
    rpc: Rpc<Req, Res>,
    method: (request: Req) => Promise<Res>,
    stopping: AbortSignal,
  ): void {
    const call = rpc.path.slice(rpc.path.lastIndexOf('/') + 1);
    const { faults, record, clock } = this.#deps;
    const die = this.#deps.die ?? ((): void => undefined);
    server.unary(rpc, async (request, caller) => {
      const from = clock.monotonic();
      const shown = { atMs: Math.round(clock.now()), call, request: readable(rpc.request.spec, request) };
      const tookMs = (): number => clock.monotonic() - from;
      try {
        const volumeId = (request as { volumeId?: string }).volumeId ?? '';
        const fault = await faults?.take(call, volumeId);
        if (fault !== undefined && fault.after !== true) await suffer(fault, { clock, die }, caller);
        stopping.throwIfAborted();
        const response = await method(request);
        if (fault?.after === true) await suffer(fault, { clock, die }, caller);
        record?.({ ...shown, tookMs: tookMs(), response: readable(rpc.response.spec, response) });
        return response;
      } catch (err) {
        const code = err instanceof GrpcError ? err.codeName : 'Unknown';
        record?.({ ...shown, tookMs: tookMs(), error: { code, message: messageOf(err) } });
        throw err;
      }
    });
  }

  #addRegistration(server: GrpcServer): void {
    server.unary(Registration.getInfo, () =>
      Promise.resolve({
        type: 'CSIPlugin',
        name: this.#driverName,
        endpoint: this.#o.endpoint,
        supportedVersions: ['1.0.0'],
      }),
    );
    server.unary(Registration.notifyRegistrationStatus, ({ pluginRegistered, error }) => {
      // The kubelet tries again as long as the socket is there.
      if (pluginRegistered) this.#deps.log.info('registered with the kubelet');
      else this.#deps.log.error('the kubelet refused the registration', { error });
      return Promise.resolve({});
    });
  }
}

async function listenAt(server: GrpcServer, path: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o750 });
  await rm(path, { force: true });
  await server.listen(path);
}

/** The service's method of this name: the tables and the classes use the same names. */
const methodOf = (service: object, name: string): ((request: unknown) => Promise<unknown>) => {
  const method = (service as Record<string, unknown>)[name];
  if (typeof method !== 'function') throw new TypeError(`no method ${name}`);
  return (request) => (method as (request: unknown) => Promise<unknown>).call(service, request);
};
