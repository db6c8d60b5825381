// Volumes that pods share: staged once, unstaged when nobody is left. One piece of work on a volume at a time. A pod counts
// as a user from the moment it asks, so that nothing is unstaged under somebody who waits for its turn.
import { Semaphore } from '../../lib/semaphore.ts';

export type SharedDevice = {
  readonly driver: string;
  readonly handle: string;
  /** Every pod that has the volume, may have it, or waits for it. */
  readonly users: Set<string>;
  readonly turn: Semaphore;
  /** The driver has staged it, as far as this process knows. */
  isStaged: boolean;
  /** What it was staged with. */
  selinuxLabel?: string | undefined;
};

/** Stands for an earlier run that left a volume staged. It keeps no pod from having the volume taken down. */
const NOBODY = '';

export class SharedDevices {
  readonly #devices = new Map<string, SharedDevice>();
  /** Of an earlier run, and being taken down right now. */
  readonly #removing = new Set<SharedDevice>();

  /** Makes somebody a user. */
  use(driver: string, handle: string, user: string): SharedDevice {
    const key = keyOf(driver, handle);
    let device = this.#devices.get(key);
    if (device === undefined) {
      device = { driver, handle, users: new Set(), turn: new Semaphore(1), isStaged: false };
      this.#devices.set(key, device);
    }
    device.users.add(user);
    return device;
  }

  /** An earlier run staged it, or began to: until it is taken down it is in use, whether or not a pod has it. */
  found(driver: string, handle: string): void {
    this.use(driver, handle, NOBODY);
  }

  /** What was found and is not taken down yet. */
  left(): SharedDevice[] {
    return this.all().filter(({ users }) => users.has(NOBODY));
  }

  all(): SharedDevice[] {
    return [...this.#devices.values()];
  }

  ofUser(user: string): SharedDevice | undefined {
    for (const device of this.#devices.values()) if (device.users.has(user)) return device;
    return undefined;
  }

  /**
   * Takes down what an earlier run staged, unless a pod has it: then that is the pod's matter. Asked again while the
   * driver has not answered yet it does nothing.
   */
  async removeUnused(
    driver: string,
    handle: string,
    unstage: (device: SharedDevice, signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    const device = this.use(driver, handle, NOBODY);
    if (device.users.size > 1) return void device.users.delete(NOBODY);
    if (this.#removing.has(device)) return;
    this.#removing.add(device);
    try {
      await this.release(device, NOBODY, (stop) => unstage(device, stop), signal);
    } finally {
      this.#removing.delete(device);
    }
  }

  /** Lets go of a volume; `unstage` is run for the last user and may fail, who then stays a user. */
  async release(
    device: SharedDevice,
    user: string,
    unstage: (signal: AbortSignal) => Promise<void>,
    signal: AbortSignal,
  ): Promise<void> {
    await device.turn.run(signal, async () => {
      const { users } = device;
      if (!users.has(user)) return;
      if ([...users].some((other) => other !== user && other !== NOBODY)) return void users.delete(user);
      // From here on some of it may be gone: whoever comes next has it staged again.
      device.isStaged = false;
      await unstage(signal);
      users.delete(user);
      users.delete(NOBODY);
      this.#drop(device);
    });
  }

  /** Forgets a volume nobody uses; one that took its place meanwhile stays. */
  #drop(device: SharedDevice): void {
    const key = keyOf(device.driver, device.handle);
    if (device.users.size === 0 && this.#devices.get(key) === device) this.#devices.delete(key);
  }
}

const keyOf = (driver: string, handle: string): string => `${driver}^${handle}`;
