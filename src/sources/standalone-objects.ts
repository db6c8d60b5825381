// The objects that pods use on a node without an API server: what stands in files beside them, and nothing else.
import type { ConfigMap, Secret, Service } from '../core/node.ts';
import { notFound } from '../lib/errors.ts';
import type { LocalObjectStore } from './local-objects.ts';

export class StandaloneObjects {
  readonly #store: Pick<LocalObjectStore, 'configMap' | 'secret'>;

  constructor(store: Pick<LocalObjectStore, 'configMap' | 'secret'>) {
    this.#store = store;
  }

  async configMap(namespace: string, name: string): Promise<ConfigMap> {
    return this.#store.configMap(namespace, name) ?? notFound(`configmap "${name}" not found`);
  }

  async secret(namespace: string, name: string): Promise<Secret> {
    return this.#store.secret(namespace, name) ?? notFound(`secret "${name}" not found`);
  }

  servicesRead(): Promise<void> {
    return Promise.resolve();
  }

  services(): readonly Service[] {
    return [];
  }

  runtimeHandler(className: string): Promise<string> {
    return notFound(`runtimeclass.node.k8s.io "${className}" not found`);
  }

  register(): void {
    // Everything is at hand already.
  }

  unregister(): void {
    // Nothing is kept for one pod.
  }
}
