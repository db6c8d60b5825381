// The device plugins that are registered: one connection for each resource, the newest registration winning. Tells the
// inventory's owner of lists and of plugins that left.
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Devices } from './device.ts';
import { PluginConnection } from './plugin-connection.ts';

export type PluginsDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: {
    onConnected(resource: string): void;
    onDevices(resource: string, devices: Devices): void;
    onStopped(resource: string): void;
  };
};

export class Plugins {
  readonly #deps: PluginsDeps;
  readonly #connections = new Map<string, PluginConnection>();
  /** Connections that were replaced or ended and are being closed. */
  readonly #closing = new Set<Promise<void>>();
  readonly #life = new AbortController();

  constructor(deps: PluginsDeps) {
    this.#deps = deps;
  }

  /** Also one that left: what it asked for still holds. */
  get(resource: string): PluginConnection | undefined {
    return this.#connections.get(resource);
  }

  /** Connects to a plugin; rejects when it does not answer. Its devices come later. */
  async connect(resource: string, socketPath: string, signal: AbortSignal): Promise<void> {
    const { clock, log, events } = this.#deps;
    const connection = await PluginConnection.open(clock, { resource, socketPath }, this.#life.signal, signal);
    this.#drop(resource);
    this.#connections.set(resource, connection);
    events.onConnected(resource);
    log.info('device plugin registered', { resource, socketPath });
    connection.watch({
      onDevices: (devices) => events.onDevices(resource, devices),
      onEnd: (err) => {
        log.warn('device plugin is gone', { resource, err });
        events.onStopped(resource);
      },
    });
  }

  /** The plugin's socket is gone: it is not called any more. One that took its place meanwhile stays. */
  disconnect(resource: string, socketPath: string): void {
    const known = this.#connections.get(resource);
    if (known === undefined || known.socketPath !== socketPath) return;
    this.#end(known);
    this.#deps.events.onStopped(resource);
  }

  /** The resource is gone for good. */
  forget(resource: string): void {
    this.#drop(resource);
  }

  async close(): Promise<void> {
    this.#life.abort();
    for (const resource of this.#connections.keys()) this.#drop(resource);
    await Promise.all(this.#closing);
  }

  #drop(resource: string): void {
    const old = this.#connections.get(resource);
    this.#connections.delete(resource);
    if (old !== undefined) this.#end(old);
  }

  #end(connection: PluginConnection): void {
    const closed = connection.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }
}
