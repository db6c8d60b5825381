// What a kind of plugin implements to be told of plugins that come and go.

export type PluginType = 'CSIPlugin' | 'DevicePlugin' | 'DRAPlugin';

/** A plugin as it introduced itself. */
export type PluginInfo = {
  readonly type: string;
  /** The driver's or the extended resource's name. */
  readonly name: string;
  /** The socket of the service itself. */
  readonly endpoint: string;
  readonly versions: readonly string[];
};

export interface PluginHandler {
  readonly type: PluginType;
  /** Throws a fault of kind `invalid` for a plugin that cannot be used; the plugin is told the message. */
  validate(plugin: PluginInfo): Promise<void> | void;
  /** Takes the plugin into use. A failure leaves nothing behind, is told to the plugin, and is tried again later. */
  register(plugin: PluginInfo, signal: AbortSignal): Promise<void>;
  /** The plugin's socket is gone or another one took its place. Must not throw. */
  deregister(plugin: PluginInfo): void;
}
