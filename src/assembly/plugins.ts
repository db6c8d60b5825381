// The registry of plugins, with one handler per kind of plugin.
import { join } from 'node:path';
import type { PluginHandler } from '../plugins/plugin-handler.ts';
import { PluginRegistry } from '../plugins/plugin-registry.ts';
import type { Foundation } from './foundation.ts';

export function buildPlugins(
  { clock, log, flags, registry }: Foundation,
  handlers: readonly PluginHandler[],
): PluginRegistry {
  return new PluginRegistry(
    { handlers, clock, log: log.child({ component: 'plugins' }), metrics: registry },
    { dir: join(flags.rootDir, 'plugins_registry') },
  );
}
