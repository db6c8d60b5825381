// The registry of plugins, with one handler per kind of plugin.
import { join } from 'node:path';
import type { Environment } from '../config/environment.ts';
import { labelForPlugins } from '../host/selinux.ts';
import type { PluginHandler } from './plugin-handler.ts';
import { PluginRegistry } from './plugin-registry.ts';

export function createPlugins(env: Environment, handlers: readonly PluginHandler[]): PluginRegistry {
  const { clock, flags, registry } = env;
  const log = env.log.child({ component: 'plugins' });
  const dir = join(flags.rootDir, 'plugins_registry');
  const label = async (): Promise<void> => {
    for (const path of [dir, join(flags.rootDir, 'plugins')]) await labelForPlugins(path, log);
  };
  return new PluginRegistry({ handlers, clock, log, label, metrics: registry }, { dir });
}
