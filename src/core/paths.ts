// Paths inside containers, as users write them.
import { posix } from 'node:path';

/** From the root, without detours: where the runtime mounts, and where what it mounted is found again. */
export const absolutePath = (path: string): string => posix.normalize(`/${path}`).replace(/(?<=.)\/$/, '');
