// node:timers/promises on the virtual clock.
import { machine } from '../engine/machine.ts';

const wait = <T>(ms: number, value?: T): Promise<T | undefined> =>
  new Promise((resolve) => machine().scheduler.after(ms, () => resolve(value)));
const soon = <T>(value?: T): Promise<T | undefined> => wait(0, value);
export { wait as setTimeout, soon as setImmediate };
export const scheduler = { wait };
