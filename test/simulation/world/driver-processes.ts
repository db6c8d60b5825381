// The processes of a driver on the simulated machine, each with a socket of its own and one it registers by. One that cannot
// make them is started again. For the time of an update there are two.
import { Registration } from '../../../src/lib/csi-api/gen/pluginregistration.ts';
import { GrpcServer } from '../../../src/lib/grpc/server.ts';
import { makeDirs } from './host.ts';
import type { World } from './world.ts';

const PLUGINS = '/var/lib/kubelet/plugins';
const REGISTRY = '/var/lib/kubelet/plugins_registry';
const AGAIN_MS = 5000;

export type DriverKind = {
  readonly type: 'CSIPlugin' | 'DRAPlugin';
  readonly name: string;
  readonly supportedVersions: readonly string[];
  readonly serve: (server: GrpcServer) => void;
};

type Process = { readonly sockets: readonly [string, string]; readonly servers: readonly [GrpcServer, GrpcServer] };

export class DriverProcesses {
  readonly #world: World;
  readonly #kind: DriverKind;
  #running: readonly Process[] = [];
  #version = 0;
  #attempt = 0;

  constructor(world: World, kind: DriverKind) {
    this.#world = world;
    this.#kind = kind;
  }

  get isRunning(): boolean {
    return this.#running.length > 0;
  }

  /** Where its sockets cannot be made (a full disk), whoever started it tries again. */
  async start(): Promise<void> {
    const { scheduler } = this.#world;
    const attempt = ++this.#attempt;
    const made = this.#make();
    try {
      await this.#listen(made);
      if (attempt === this.#attempt) this.#running = [...this.#running, made];
      else this.#end(made, true);
    } catch (err) {
      this.#world.trace(`the driver ${this.#kind.name} cannot start: ${(err as Error).message}`);
      this.#end(made, true);
      const again = (): unknown => this.#attempt === attempt && !this.isRunning && this.start();
      scheduler.after(AGAIN_MS, () => void again(), scheduler.world);
    }
  }

  #make(): Process {
    const { type, name, serve, supportedVersions } = this.#kind;
    const at = `${PLUGINS}/${name}/plugin-${this.#version}.sock`;
    const plugin = new GrpcServer();
    const registration = new GrpcServer();
    serve(plugin);
    registration.unary(Registration.getInfo, async () => ({
      type,
      name,
      endpoint: at,
      supportedVersions: [...supportedVersions],
    }));
    registration.unary(Registration.notifyRegistrationStatus, async () => ({}));
    return { sockets: [at, `${REGISTRY}/${name}-${this.#version}-reg.sock`], servers: [plugin, registration] };
  }

  async #listen({ sockets, servers }: Process): Promise<void> {
    for (const path of [`${PLUGINS}/${this.#kind.name}`, REGISTRY]) makeDirs(this.#world.files, path);
    for (const path of sockets) this.#unlink(path);
    await servers[0].listen(sockets[0]);
    await servers[1].listen(sockets[1]);
  }

  /** All of them end. `isKilled`: their sockets stay. */
  stop(isKilled: boolean): void {
    this.#attempt++;
    const gone = this.#running;
    this.#running = [];
    for (const process of gone) this.#end(process, isKilled);
  }

  /** Another version of it comes up beside this one, which ends when `endOld` is called. */
  async update(): Promise<void> {
    if (!this.isRunning) return;
    this.#version++;
    await this.start();
  }

  endOld(): void {
    const old = this.#running.slice(0, -1);
    this.#running = this.#running.slice(-1);
    for (const process of old) this.#end(process, false);
  }

  #end({ servers, sockets }: Process, isKilled: boolean): void {
    for (const server of servers) void server.close();
    if (isKilled) return;
    try {
      for (const path of sockets) this.#unlink(path);
    } catch {
      // A disk that cannot be written: as if it was killed.
    }
  }

  #unlink(path: string): void {
    const { files } = this.#world;
    if (files.find(path, 'unlink').inode !== undefined) files.unlink(path);
  }
}
