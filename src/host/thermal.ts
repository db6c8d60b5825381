// Directories about the throttling of processors: they tell containers too much, and are masked.
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const PROCESSORS = '/sys/devices/system/cpu';
const NAME = 'thermal_throttle';

export async function thermalPaths(root = PROCESSORS): Promise<string[]> {
  const cpus = (await readdir(root).catch((): string[] => [])).filter((name) => /^cpu\d+$/.test(name));
  const found = await Promise.all(
    cpus.map(async (cpu) => {
      const entries = await readdir(join(root, cpu)).catch((): string[] => []);
      return entries.includes(NAME) ? join(root, cpu, NAME) : undefined;
    }),
  );
  return found.filter((path) => path !== undefined).sort();
}
