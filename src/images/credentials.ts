// All credentials that may be tried for one image of one pod, in order: its pull secrets, the node's docker files, the
// credential provider plugins.
import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import type { Secret } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Registry } from '../lib/metrics.ts';
import { addSecret, NodeDockerConfig, type NodeFilesOptions } from './docker-config.ts';
import { Keyring, type Credential, type CredentialSource } from './keyring.ts';
import type { ProviderConfig } from './provider-config.ts';
import { ProviderPlugin, type PluginMetrics, type ServiceAccountIdentity } from './provider-plugin.ts';

export type CredentialsDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Undefined for a pod without a service account, and where there is no API server. */
  readonly serviceAccountOf: (pod: Pod, signal: AbortSignal) => Promise<ServiceAccountIdentity | undefined>;
};

export type CredentialsOptions = NodeFilesOptions & {
  readonly providers: readonly ProviderConfig[];
  readonly providerBinDir: string;
  /** Of the providers' configuration, shown as a metric. */
  readonly providersHash?: string;
};

export class Credentials {
  readonly #deps: CredentialsDeps;
  readonly #o: CredentialsOptions;
  readonly #files: NodeDockerConfig;
  readonly #plugins: readonly ProviderPlugin[];

  constructor(deps: CredentialsDeps, options: CredentialsOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#files = new NodeDockerConfig(deps, options);
    const { providersHash } = options;
    if (providersHash !== undefined)
      deps.registry
        .gauge(
          'kubelet_credential_provider_config_info',
          '[ALPHA] Information about the last applied credential provider configuration with hash as label',
          ['hash'],
        )
        .set(1, { hash: providersHash });
    const metrics = pluginMetrics(deps.registry);
    this.#plugins = options.providers.map(
      (p) => new ProviderPlugin({ clock: deps.clock, metrics }, p, options.providerBinDir),
    );
  }

  /** Rejects when a configured plugin is not there: the kubelet must not start then. */
  async check(): Promise<void> {
    for (const { name } of this.#o.providers) {
      const path = join(this.#o.providerBinDir, name);
      try {
        await access(path, constants.X_OK);
      } catch (err) {
        throw new KubeletError('notFound', `plugin binary executable ${path} did not exist`, { cause: err });
      }
    }
  }

  /** Throws `invalid` for a pull secret that cannot be read; a plugin that fails only offers nothing. */
  async forImage(
    pod: Pod,
    repository: string,
    pullSecrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<readonly Credential[]> {
    const secrets = new Keyring();
    for (const secret of pullSecrets) addSecret(secrets, secret);
    const node = new Keyring();
    await this.#files.addTo(node);
    const provided = new Keyring();
    for (const plugin of this.#plugins)
      if (plugin.covers(repository)) await this.#ask(plugin, pod, repository, provided, signal);
    return [secrets, node, provided].flatMap((keyring) => keyring.lookup(repository));
  }

  async #ask(
    plugin: ProviderPlugin,
    pod: Pod,
    repository: string,
    keyring: Keyring,
    signal: AbortSignal,
  ): Promise<void> {
    try {
      const wantsAccount = plugin.config.tokenAttributes !== undefined;
      const account = wantsAccount ? await this.#deps.serviceAccountOf(pod, signal) : undefined;
      const source: CredentialSource =
        account === undefined
          ? { from: 'node' }
          : { from: 'serviceAccount', uid: account.uid, namespace: account.namespace, name: account.name };
      for (const [registry, login] of await plugin.logins(repository, account, signal))
        keyring.add(registry, login, source);
    } catch (err) {
      signal.throwIfAborted();
      this.#deps.log.error('credential provider plugin failed', { plugin: plugin.config.name, image: repository, err });
    }
  }
}

const pluginMetrics = (registry: Registry): PluginMetrics => ({
  errors: registry.counter(
    'kubelet_credential_provider_plugin_errors_total',
    '[ALPHA] Number of errors from credential provider plugin',
    ['plugin_name'],
  ),
  duration: registry.histogram(
    'kubelet_credential_provider_plugin_duration',
    '[ALPHA] Duration of execution in seconds for credential provider plugin',
    ['plugin_name'],
  ),
});
