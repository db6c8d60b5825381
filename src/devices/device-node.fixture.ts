// A device manager for tests, with the registration socket that plugins call.
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { uidOf, type Container, type Pod } from '../core/pod.ts';
import { nextTurn, systemClock, type Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { Registry } from '../lib/metrics.ts';
import { DeviceHook } from './device-hook.ts';
import { DeviceManager } from './device-manager.ts';
import { Plugins } from './plugins.ts';
import { DeviceRegistration } from './registration.ts';

export const { signal } = new AbortController();
export const R = 'example.com/card';

export const container = (name: string, count: number, more: Partial<Container> = {}): Container => ({
  name,
  resources: { limits: { [R]: String(count) } },
  ...more,
});
export const pod = (uid: string, main: readonly Container[], init: readonly Container[] = []): Pod => ({
  metadata: { name: uid, namespace: 'n', uid },
  spec: { containers: main, initContainers: init },
});

/** A device manager with its socket, as the kubelet has it. */
export class DeviceNode {
  readonly directory: string;
  readonly registry = new Registry();
  readonly active = new Map<string, Pod>();
  readonly running = new Set<string>();
  readonly woken: string[] = [];
  readonly gone: string[] = [];
  skipMs = 0;
  synced = true;
  manager!: DeviceManager;
  hook!: DeviceHook;
  registration!: DeviceRegistration;
  #plugins!: Plugins;
  #stop = new AbortController();
  #serving: Promise<void> = Promise.resolve();

  constructor(directory: string) {
    this.directory = directory;
  }

  async start(): Promise<this> {
    const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + this.skipMs };
    const registry = new Registry();
    this.#plugins = new Plugins({
      clock,
      log: silentLogger,
      events: {
        onConnected: (r) => this.manager.connected(r),
        onDevices: (r, d) => this.manager.listed(r, d),
        onStopped: (r) => this.manager.stopped(r),
      },
    });
    this.manager = new DeviceManager(
      {
        clock,
        log: silentLogger,
        plugins: this.#plugins,
        pods: {
          alive: () => [...this.active.values()],
          sourcesReady: () => this.synced,
          isRunning: (uid) => this.running.has(uid),
        },
        numaNodes: () => [0, 1],
        onHealthChange: (uid) => void this.woken.push(uid),
        onAmounts: () => undefined,
        onGone: (resource) => {
          this.#plugins.forget(resource);
          this.gone.push(resource);
        },
        durations: registry.histogram('d', 'd', ['resource_name']),
      },
      { checkpoint: join(this.directory, 'kubelet_internal_checkpoint') },
    );
    this.hook = new DeviceHook(this.manager);
    this.registration = new DeviceRegistration(
      {
        clock: systemClock,
        plugins: this.#plugins,
        log: silentLogger,
        registrations: registry.counter('r', 'r', ['resource_name']),
      },
      { directory: this.directory },
    );
    await this.manager.load();
    this.#stop = new AbortController();
    this.#serving = this.registration.run(this.#stop.signal);
    while (!existsSync(join(this.directory, 'kubelet.sock'))) await nextTurn();
    return this;
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#serving;
    await this.#plugins.close();
    await this.manager.saved();
  }

  /** Admits a pod as the topology manager does without a policy. */
  async admit(wanted: Pod): Promise<string> {
    this.active.set(uidOf(wanted), wanted);
    try {
      for (const c of [...(wanted.spec.initContainers ?? []), ...wanted.spec.containers])
        await this.manager.allocate(wanted, c, { numaNodes: undefined, preferred: true }, signal);
      return 'admitted';
    } catch (err) {
      this.active.delete(uidOf(wanted));
      return `UnexpectedAdmissionError: Allocate failed due to ${messageOf(err)}, which is unexpected`;
    }
  }

  held(uid: string, name = 'c'): string {
    return this.manager
      .devicesOf(uidOf(pod(uid, [])), name)
      .map((d) => d.id)
      .sort()
      .join(' ');
  }

  isConnected(): boolean {
    return this.#plugins.get(R) !== undefined;
  }

  amounts(): string {
    const { capacity, allocatable } = this.manager.amounts();
    return `${allocatable.get(R) ?? '-'}/${capacity.get(R) ?? '-'}`;
  }
}
