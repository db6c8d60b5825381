// Registers the plugins whose sockets are under `plugins_registry`, as long as the sockets are there. Every socket has its
// own turn: introduce, validate, register, notify. A socket that goes is deregistered; one that another took the place of
// is deregistered and registered anew. What fails is tried again with a growing pause for as long as the socket exists.
import { mkdir } from 'node:fs/promises';
import { childScope, type Scope } from '../lib/abort.ts';
import { Backoff } from '../lib/backoff.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { KeyedRunner } from '../lib/keyed-runner.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import { Registration } from '../lib/csi-api/gen/pluginregistration.ts';
import type { PluginHandler, PluginInfo } from './plugin-handler.ts';
import { SocketTree, type Sockets } from './socket-tree.ts';

export type PluginRegistryDeps = {
  readonly handlers: readonly PluginHandler[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Lets plugins in containers reach the directories of their sockets. */
  readonly label?: () => Promise<void>;
  readonly metrics?: Registry;
};

/** `dir`: `<root>/plugins_registry`. */
export type PluginRegistryOpts = { readonly dir: string; readonly rescanMs?: number };

const RESCAN_MS = 60_000;
const CONNECT_MS = 10_000;
/** What a plugin says of itself: its name, its socket and a few versions. */
const MAX_INFO_BYTES = 64 * 1024;
const INFO_MS = 5_000;
const NOTIFY_MS = 5_000;
/** A socket is there a moment before its plugin listens on it, so the first tries come soon. */
const RETRY = { baseMs: 50, maxMs: 122_000 };

type Registered = { readonly stamp: string; readonly plugin: PluginInfo; readonly handler: PluginHandler };

class Entry {
  /** The socket that is there now; undefined when there is none. */
  stamp: string | undefined;
  registered: Registered | undefined;
  notBefore = 0;
  timer: Timer | undefined;
  /** The registration under way. */
  scope: Scope | undefined;
  readonly backoff = new Backoff(RETRY);
}

export class PluginRegistry implements Runnable {
  readonly name = 'plugin-registry';
  readonly #deps: PluginRegistryDeps;
  readonly #opts: PluginRegistryOpts;
  readonly #entries = new Map<string, Entry>();
  readonly #wake = new Wake();
  readonly #runner = new KeyedRunner<string>({ work: (path) => this.#work(path) });
  #signal: AbortSignal | undefined;

  constructor(deps: PluginRegistryDeps, opts: PluginRegistryOpts) {
    this.#deps = deps;
    this.#opts = opts;
  }

  /** Plugins stay registered when this ends: the next run finds their sockets again. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    this.#signal = signal;
    this.#showTotals();
    await this.#deps.label?.();
    const tree = new SocketTree(this.#opts.dir, log, () => this.#wake.wake());
    try {
      while (!signal.aborted) {
        try {
          await mkdir(this.#opts.dir, { recursive: true, mode: 0o755 });
          this.#found(await tree.scan());
        } catch (err) {
          log.error('plugin sockets could not be listed', { path: this.#opts.dir, err });
        }
        await this.#wake.rest(clock, this.#opts.rescanMs ?? RESCAN_MS, signal);
      }
    } finally {
      tree.close();
      for (const entry of this.#entries.values()) {
        entry.timer?.cancel();
        entry.scope?.abort(signal.reason);
      }
      await this.#runner.stop();
    }
  }

  #found(sockets: Sockets): void {
    for (const path of sockets.keys()) if (!this.#entries.has(path)) this.#entries.set(path, new Entry());
    for (const [path, entry] of this.#entries) {
      const stamp = sockets.get(path);
      if (entry.stamp === stamp) continue;
      entry.stamp = stamp;
      entry.notBefore = 0;
      entry.backoff.succeeded();
      entry.scope?.abort(new KubeletError('cancelled', 'the socket is gone'));
      this.#runner.wake(path);
    }
  }

  async #work(path: string): Promise<void> {
    const entry = this.#entries.get(path);
    if (entry === undefined || this.#signal === undefined || this.#signal.aborted) return;
    entry.timer?.cancel();
    this.#deregister(path, entry);
    const { stamp } = entry;
    if (stamp === undefined) return void this.#entries.delete(path);
    if (entry.registered !== undefined) return;
    const { clock, log } = this.#deps;
    const pauseMs = entry.notBefore - clock.monotonic();
    if (pauseMs > 0) return this.#later(path, entry, pauseMs);
    const scope = childScope(this.#signal);
    entry.scope = scope;
    try {
      entry.registered = await this.#register(path, stamp, scope.signal);
      entry.backoff.succeeded();
      log.info('plugin registered', { socket: path, ...named(entry.registered.plugin) });
    } catch (err) {
      if (scope.signal.aborted) return;
      const retryMs = entry.backoff.failed(clock.monotonic());
      entry.notBefore = clock.monotonic() + retryMs;
      this.#later(path, entry, retryMs);
      log.warn('plugin could not be registered', { socket: path, err, retryMs });
    } finally {
      scope.release();
      entry.scope = undefined;
    }
  }

  #deregister(path: string, entry: Entry): void {
    const { registered } = entry;
    if (registered === undefined || registered.stamp === entry.stamp) return;
    entry.registered = undefined;
    registered.handler.deregister(registered.plugin);
    this.#deps.log.info('plugin deregistered', { socket: path, ...named(registered.plugin) });
  }

  #later(path: string, entry: Entry, ms: number): void {
    entry.timer?.cancel();
    entry.timer = this.#deps.clock.after(ms, () => this.#runner.wake(path));
  }

  async #register(path: string, stamp: string, signal: AbortSignal): Promise<Registered> {
    const { clock, handlers } = this.#deps;
    const channel = new GrpcChannel(clock, {
      target: { socketPath: path },
      connectTimeoutMs: CONNECT_MS,
      maxReceiveBytes: MAX_INFO_BYTES,
    });
    const notify = (pluginRegistered: boolean, error: string): Promise<unknown> => {
      const status = { pluginRegistered, error };
      return channel.unary(Registration.notifyRegistrationStatus, status, { signal, deadlineMs: NOTIFY_MS });
    };
    try {
      const info = await channel.unary(Registration.getInfo, {}, { signal, deadlineMs: INFO_MS });
      const endpoint = info.endpoint === '' ? path : info.endpoint;
      const plugin = { type: info.type, name: info.name, endpoint, versions: info.supportedVersions };
      const handler = handlers.find(({ type }) => type === plugin.type);
      try {
        if (handler === undefined)
          throw refusal(`no handler registered for plugin type: ${plugin.type} at socket ${path}`);
        await takeIn(handler, plugin, signal);
      } catch (err) {
        signal.throwIfAborted();
        // A plugin that does not even listen to why it was refused changes nothing about the refusal.
        await notify(false, messageOf(err)).catch(() => undefined);
        throw err;
      }
      try {
        await notify(true, '');
      } catch (err) {
        handler.deregister(plugin);
        throw err;
      }
      return { stamp, plugin, handler };
    } finally {
      channel.close();
    }
  }

  #showTotals(): void {
    const entries = this.#entries;
    this.#deps.metrics?.collected(
      'plugin_manager_total_plugins',
      '[ALPHA] Number of plugins in Plugin Manager',
      'gauge',
      function* () {
        for (const [socket_path, { stamp, registered }] of entries) {
          if (registered !== undefined) yield [{ socket_path, state: 'actual_state_of_world' }, 1] as const;
          if (stamp !== undefined) yield [{ socket_path, state: 'desired_state_of_world' }, 1] as const;
        }
      },
    );
  }
}

const named = ({ type, name }: PluginInfo): { type: string; plugin: string } => ({ type, plugin: name });

const refusal = (why: string, cause?: unknown): KubeletError =>
  new KubeletError('invalid', `RegisterPlugin error -- ${why}`, { cause });

async function takeIn(handler: PluginHandler, plugin: PluginInfo, signal: AbortSignal): Promise<void> {
  try {
    await handler.validate(plugin);
  } catch (err) {
    throw refusal(`plugin validation failed with err: ${messageOf(err)}`, err);
  }
  try {
    await handler.register(plugin, signal);
  } catch (err) {
    throw refusal(`plugin registration failed with err: ${messageOf(err)}`, err);
  }
}
