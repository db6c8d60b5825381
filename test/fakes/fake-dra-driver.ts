// A DRA driver: it registers by a socket in the plugin folder, prepares claims and tells of its devices' health. Its faults
// are those of real ones: it fails a claim, forgets one, answers for another one, hangs, dies, sends garbage.
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { DRAResourceHealth, type NodeWatchResourcesResponse } from '../../src/dra/gen/dra-health.ts';
import { DRAPlugin, type Claim, type Device } from '../../src/dra/gen/dra-plugin.ts';
import { aborted } from '../../src/lib/abort.ts';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';
import { Registration } from '../../src/lib/csi-api/gen/pluginregistration.ts';

export type FakeDraDriverOptions = {
  /** Where its own socket is. */
  readonly directory: string;
  readonly driver: string;
  readonly versions?: readonly string[];
  readonly socketName?: string;
  /** The devices of a claim; by default one for each. */
  readonly devices?: (claim: Claim) => readonly Partial<Device>[];
  /** Serve the health of devices; without it that call is unimplemented. */
  readonly health?: boolean;
};

/** What happens instead of an answer. */
export type DraFault = 'refuse' | 'claim' | 'skip' | 'stranger' | 'hang' | 'die' | undefined;

export class FakeDraDriver {
  readonly #o: FakeDraDriverOptions;
  readonly endpoint: string;
  readonly calls: string[] = [];
  /** What the kubelet said to its registration. */
  readonly told: { readonly registered: boolean; readonly error: string }[] = [];
  readonly #watchers = new Set<(message: NodeWatchResourcesResponse) => void>();
  fault: DraFault;
  #server: GrpcServer | undefined;
  #registration: GrpcServer | undefined;
  #stopped: Promise<void> = Promise.resolve();

  constructor(options: FakeDraDriverOptions) {
    this.#o = options;
    this.endpoint = join(options.directory, options.socketName ?? 'dra.sock');
  }

  async listen(): Promise<this> {
    await this.stop();
    const server = new GrpcServer();
    this.#server = server;
    for (const version of ['v1', 'v1beta1']) {
      const prepare = DRAPlugin.nodePrepareResources;
      const unprepare = DRAPlugin.nodeUnprepareResources;
      const inVersion = (path: string): string => path.replace('.dra.v1.', `.dra.${version}.`);
      server.unary({ ...prepare, path: inVersion(prepare.path) }, async ({ claims }, signal) => {
        const served = await this.#serve(`${version} prepare`, claims, signal);
        return {
          claims: served.map(({ claim, error }) => ({
            key: claim.uid,
            value: { error, devices: error === '' ? this.#devicesOf(claim) : [] },
          })),
        };
      });
      server.unary({ ...unprepare, path: inVersion(unprepare.path) }, async ({ claims }, signal) => {
        const served = await this.#serve(`${version} unprepare`, claims, signal);
        return { claims: served.map(({ claim, error }) => ({ key: claim.uid, value: { error } })) };
      });
    }
    if (this.#o.health === true)
      server.serverStream(DRAResourceHealth.nodeWatchResources, async (_, signal, send) => {
        this.#watchers.add(send);
        await aborted(signal);
        this.#watchers.delete(send);
      });
    await server.listen(this.endpoint);
    return this;
  }

  get watched(): boolean {
    return this.#watchers.size > 0;
  }

  /** Makes itself known in the kubelet's plugin folder. */
  async register(registry: string): Promise<void> {
    const registration = new GrpcServer();
    this.#registration = registration;
    registration.unary(Registration.getInfo, async () => ({
      type: 'DRAPlugin',
      name: this.#o.driver,
      endpoint: this.endpoint,
      supportedVersions: [...(this.#o.versions ?? ['v1.DRAPlugin'])],
    }));
    registration.unary(Registration.notifyRegistrationStatus, async ({ pluginRegistered, error }) => {
      this.told.push({ registered: pluginRegistered, error });
      return {};
    });
    await registration.listen(join(registry, `${this.#o.driver}-reg.sock`));
  }

  /** 1 is healthy, 2 is not. */
  tellHealth(pool: string, device: string, health: number, message = ''): void {
    const told = {
      device: { poolName: pool, deviceName: device },
      health,
      lastUpdatedTime: 0,
      healthCheckTimeoutSeconds: 0,
      message,
    };
    for (const send of this.#watchers) send({ devices: [told] });
  }

  /** One after the other: the end of a driver that died must not take the socket of the one after it. */
  stop(): Promise<void> {
    return (this.#stopped = this.#stopped.then(() => this.#stopNow()));
  }

  async #stopNow(): Promise<void> {
    await Promise.all([this.#server?.close(), this.#registration?.close()]);
    this.#server = undefined;
    this.#registration = undefined;
    await rm(this.endpoint, { force: true });
  }

  #devicesOf(claim: Claim): Device[] {
    const usual = [{ poolName: 'pool', deviceName: claim.name, cdiDeviceIds: [`${this.#o.driver}/dev=${claim.name}`] }];
    return (this.#o.devices?.(claim) ?? usual).map((device) => ({
      requestNames: [],
      poolName: '',
      deviceName: '',
      cdiDeviceIds: [],
      shareId: '',
      ...device,
    }));
  }

  async #serve(
    what: string,
    claims: readonly Claim[],
    signal: AbortSignal,
  ): Promise<readonly { readonly claim: Claim; readonly error: string }[]> {
    this.calls.push(`${what} ${claims.map((c) => c.name).join(' ')}`);
    const served = claims.map((claim) => ({ claim, error: '' }));
    switch (this.fault) {
      case 'refuse':
        throw new GrpcError(GrpcCode.Unknown, 'no power');
      case 'claim':
        return claims.map((claim) => ({ claim, error: 'device is broken' }));
      case 'skip':
        return served.slice(1);
      case 'stranger':
        return claims.map((claim) => ({ claim: { ...claim, uid: 'stranger' }, error: '' }));
      case 'hang':
        await aborted(signal);
        return served;
      case 'die':
        await this.stop();
        return served;
      default:
        return served;
    }
  }
}
