// A device plugin on the simulated machine: the one of the other tests, started again by its supervisor, and registered
// again whenever the agent is another one or its own socket is gone.
import { FakeDevicePlugin, type FakeDevice } from '../../fakes/fake-device-plugin.ts';
import type { World } from './world.ts';

export const RESOURCE = 'sim.test/card';
export const DEVICES_ENV = 'DEVICES';
const DIRECTORY = '/var/lib/kubelet/device-plugins';
const LOOK_MS = 3000;
const CARDS: readonly FakeDevice[] = Array.from({ length: 10 }, (_, i) => ({ id: `card-${i}` }));

export class DevicePlugin {
  readonly #world: World;
  readonly #plugin = new FakeDevicePlugin({ directory: DIRECTORY, resource: RESOURCE, devices: CARDS });
  /** The agent it registered with. */
  #registeredWith = 0;
  #isStarting = false;
  isWanted = true;

  constructor(world: World) {
    this.#world = world;
    this.#look();
  }

  get fault(): FakeDevicePlugin['fault'] {
    return this.#plugin.fault;
  }

  set fault(fault: FakeDevicePlugin['fault']) {
    this.#plugin.fault = fault;
  }

  /** Those with these numbers are not well. */
  sicken(numbers: ReadonlySet<number>): void {
    this.#plugin.list(CARDS.map((card, i) => (numbers.has(i) ? { ...card, health: 'Unhealthy' } : card)));
  }

  stop(): void {
    this.#registeredWith = 0;
    this.#plugin.stop().catch(() => undefined);
  }

  #look(): void {
    const { scheduler, agent, files, isUp } = this.#world;
    scheduler.after(LOOK_MS, () => this.#look(), scheduler.world);
    if (agent === undefined || !this.isWanted || !isUp || !agent.isRunning || this.#isStarting) return;
    const isThere = files.find(DIRECTORY, 'open').inode !== undefined && this.#hasSocket();
    if (!isThere || this.#registeredWith !== agent.starts) void this.#start(agent.starts);
  }

  #hasSocket(): boolean {
    return this.#world.files.find(this.#plugin.socketPath, 'open').inode !== undefined;
  }

  async #start(starts: number): Promise<void> {
    this.#isStarting = true;
    try {
      await this.#plugin.start();
      if (this.isWanted) this.#registeredWith = starts;
    } catch (err) {
      this.#world.trace(`the device plugin is not registered: ${(err as Error).message}`);
    } finally {
      this.#isStarting = false;
    }
  }
}
