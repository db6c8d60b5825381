// The registry of plugins, with one handler per kind of plugin.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import type { PluginHandler } from './plugin-handler.ts';
import { PluginRegistry } from './plugin-registry.ts';

export function createPlugins(
  { clock, log, flags, registry }: Environment,
  handlers: readonly PluginHandler[],
): PluginRegistry {
  return new PluginRegistry(
    { handlers, clock, log: log.child({ component: 'plugins' }), metrics: registry },
    { dir: join(flags.rootDir, 'plugins_registry') },
  );
}
