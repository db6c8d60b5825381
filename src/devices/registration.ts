// How device plugins make themselves known: on the kubelet's own socket (`device-plugins/kubelet.sock`) or through the
// folder of plugin sockets. Both end in `Plugins.connect`.
import { lstat, mkdir, readdir, rename, rm } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { isExtendedResource } from '../core/resource-names.ts';
import { aborted } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { errnoOf, isUnwritable, KubeletError, messageOf } from '../lib/errors.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import type { Counter } from '../lib/metrics.ts';
import { retryUntilDone } from '../lib/retry.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Registration, type RegisterRequest } from './gen/device-plugin.ts';

const VERSION = 'v1beta1';
const SOCKET = 'kubelet.sock';
const DIRECTORY_MODE = 0o750;
/** A registration is a few names. */
const MAX_REQUEST_BYTES = 64 * 1024;

export type DeviceRegistrationDeps = {
  readonly plugins: {
    connect(resource: string, socketPath: string, signal: AbortSignal): Promise<void>;
    disconnect(resource: string, socketPath: string): void;
  };
  readonly clock: Clock;
  readonly log: Logger;
  /** Lets plugins in containers reach what is in the directory. */
  readonly label?: (directory: string) => Promise<void>;
  /** `kubelet_device_plugin_registration_total{resource_name}`. */
  readonly registrations: Counter;
};

/** What the plugin folder says of a plugin; `plugins/` has the same. */
type FoundPlugin = { readonly name: string; readonly endpoint: string; readonly versions: readonly string[] };

export class DeviceRegistration implements Runnable {
  readonly name = 'device-plugin-registration';
  readonly #deps: DeviceRegistrationDeps;
  readonly #directory: string;
  #failure: unknown;

  constructor(deps: DeviceRegistrationDeps, options: { readonly directory: string }) {
    this.#deps = deps;
    this.#directory = options.directory;
  }

  /** For /healthz: why no plugin can register. A disk without room is no reason to restart the kubelet. */
  failing(): string | undefined {
    if (this.#failure === undefined || isUnwritable(this.#failure)) return undefined;
    return `device registration error: device plugin registration gRPC server failed and no device plugins can register: ${messageOf(this.#failure)}`;
  }

  async run(signal: AbortSignal): Promise<void> {
    const message = 'device plugins cannot register, trying again';
    const at = { message, path: this.#directory };
    const server = await retryUntilDone(this.#deps, at, () => this.#open(), signal);
    if (server === undefined) return;
    await aborted(signal);
    await server.close();
    await rm(join(this.#directory, SOCKET), { force: true });
  }

  async #open(): Promise<GrpcServer> {
    const server = new GrpcServer({ maxRequestBytes: MAX_REQUEST_BYTES });
    server.unary(Registration.register, (request, gone) => this.#register(request, gone));
    const path = join(this.#directory, SOCKET);
    try {
      await this.#removeSockets();
      // A plugin calls as soon as the name is there, which is before anybody listens: the name comes last.
      await server.listen(`${path}.new`);
      await rename(`${path}.new`, path);
    } catch (err) {
      this.#failure = err;
      await server.close();
      throw err;
    }
    this.#failure = undefined;
    return server;
  }

  /**
   * A plugin watches its socket: when it is gone, the kubelet is new and wants to hear from it again. The socket that the
   * kubelet before left goes first, or a plugin that is quick would call a dead one.
   */
  async #removeSockets(): Promise<void> {
    await mkdir(this.#directory, { recursive: true, mode: DIRECTORY_MODE });
    await this.#deps.label?.(this.#directory);
    await rm(join(this.#directory, SOCKET), { force: true });
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      const isSocket = await lstat(path).then(
        (found) => found.isSocket(),
        (err: unknown) => {
          if (errnoOf(err) !== 'ENOENT') throw err;
          return false;
        },
      );
      if (isSocket) await rm(path, { force: true });
    }
  }

  async #register(request: RegisterRequest, signal: AbortSignal): Promise<Record<string, never>> {
    const { version, endpoint, resourceName } = request;
    const { plugins, registrations, log } = this.#deps;
    try {
      if (version !== VERSION) throw unsupported(version);
      checkName(resourceName);
      registrations.inc({ resource_name: resourceName });
      await plugins.connect(resourceName, join(this.#directory, endpoint), signal);
    } catch (err) {
      log.warn('device plugin not registered', { resource: resourceName, endpoint, err });
      throw new GrpcError(GrpcCode.Unknown, messageOf(err), err);
    }
    return {};
  }

  /** For plugins found in the plugin folder. */
  readonly handler = {
    type: 'DevicePlugin' as const,
    validate: ({ name, endpoint, versions }: FoundPlugin): void => {
      if (!versions.includes(VERSION))
        throw new KubeletError(
          'invalid',
          `manager version, ${VERSION}, is not among plugin supported versions [${versions.join(' ')}]`,
        );
      if (!isExtendedResource(name))
        throw new KubeletError('invalid', `invalid name of device plugin socket: ${invalidName(name)}`);
      if (!isAbsolute(endpoint)) throw new KubeletError('invalid', `the endpoint ${endpoint} is not an absolute path`);
    },
    register: ({ name, endpoint }: FoundPlugin, signal: AbortSignal): Promise<void> => {
      this.#deps.registrations.inc({ resource_name: name });
      return this.#deps.plugins.connect(name, endpoint, signal);
    },
    deregister: ({ name, endpoint }: FoundPlugin): void => this.#deps.plugins.disconnect(name, endpoint),
  };
}

const unsupported = (version: string): KubeletError =>
  new KubeletError(
    'invalid',
    `requested API version ${JSON.stringify(version)} is not supported by kubelet. Supported version is ["${VERSION}"]`,
  );

const invalidName = (name: string): string => `the ResourceName ${JSON.stringify(name)} is invalid`;

function checkName(name: string): void {
  if (!isExtendedResource(name)) throw new KubeletError('invalid', invalidName(name));
}
