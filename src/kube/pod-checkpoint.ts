// What a node needs to bring its API pods back after a boot without a control plane: the node and its pods, the config maps,
// secrets, tokens, service accounts and runtime classes they use, services and trust bundles. Opt-in: all of it is on the
// node's disk, for root to read. Woken by every change; written a moment later, so that nothing waits for it.
import { chmod, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { KubeObject } from '../core/meta.ts';
import type { ClusterTrustBundle, ConfigMap, Node, RuntimeClass, Secret, Service } from '../core/node.ts';
import { hasEnded } from '../core/phase.ts';
import { namespaceOf, type Pod } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Wake } from '../lib/wake.ts';
import { CheckpointFile, type CheckpointFileOptions } from './checkpoint-file.ts';
import { configMapsOf, secretsOf } from './pod-references.ts';
import type { IssuedToken } from './tokens.ts';

export type PodCheckpointDeps = { clock: Clock; log: Logger };
export type PodCheckpointOptions = { dir: string; nodeName: string };

/** Changes come in bursts; one write takes them all. */
const SETTLE_MS = 250;
/** Tokens expire without anybody saying so. */
const IDLE_MS = 3_600_000;

/** What an earlier run left behind, should it have been allowed to and this one not. */
export const removeCheckpoint = (dir: string): Promise<void> => rm(dir, { recursive: true, force: true });

/** What is kept for a boot without an API server, where that is wanted; else nothing of it stays. */
export async function openCheckpoint(
  wanted: boolean,
  deps: PodCheckpointDeps,
  options: PodCheckpointOptions,
): Promise<PodCheckpoint | undefined> {
  if (!wanted) {
    await removeCheckpoint(options.dir);
    return undefined;
  }
  const checkpoint = new PodCheckpoint(deps, options);
  await checkpoint.load();
  return checkpoint;
}

export class PodCheckpoint implements Runnable {
  readonly name = 'pod-checkpoint';
  readonly configMaps: CheckpointFile<ConfigMap>;
  readonly secrets: CheckpointFile<Secret>;
  readonly serviceAccounts: CheckpointFile<KubeObject>;
  readonly tokens: CheckpointFile<IssuedToken>;
  readonly runtimeClasses: CheckpointFile<RuntimeClass>;
  readonly #pods: CheckpointFile<Pod>;
  readonly #node: CheckpointFile<Node>;
  readonly #services: CheckpointFile<Service>;
  readonly #trustBundles: CheckpointFile<ClusterTrustBundle>;
  readonly #deps: PodCheckpointDeps;
  readonly #o: PodCheckpointOptions;
  /** The API server has said which pods there are: only then is it known what else is worth keeping. */
  #heardOfPods = false;
  readonly #wake = new Wake();

  constructor(deps: PodCheckpointDeps, options: PodCheckpointOptions) {
    this.#deps = deps;
    this.#o = options;
    const objects = <T extends KubeObject>(name: string): CheckpointFile<T> =>
      this.#file<T>(name, { versionOf: objectVersion, isItem: isObject, toStored: slim });
    this.#pods = objects('pods');
    this.#node = objects('node');
    this.#services = objects('services');
    this.#trustBundles = objects('trust-bundles');
    this.configMaps = objects('config-maps');
    this.secrets = objects('secrets');
    this.serviceAccounts = objects('service-accounts');
    this.runtimeClasses = objects('runtime-classes');
    this.tokens = this.#file('tokens', { versionOf: ({ token }) => token, isItem: isToken });
  }

  /** Before anything is told to it. */
  async load(): Promise<void> {
    const { dir } = this.#o;
    try {
      await mkdir(dir, { recursive: true, mode: 0o700 });
      await chmod(dir, 0o700);
    } catch (err) {
      this.#deps.log.error('there is no place for the checkpoint, going on without', { path: dir, err });
      return;
    }
    await Promise.all(this.#files().map((file) => file.load()));
  }

  /** The last known pods; undefined if there was never any word of them. */
  get pods(): readonly Pod[] | undefined {
    return this.#pods.isKnown ? this.#pods.values() : undefined;
  }

  /** With the labels and taints it was given: pods are judged by them. */
  get node(): Node | undefined {
    return this.#node.get(this.#o.nodeName);
  }

  get services(): readonly Service[] | undefined {
    return this.#services.isKnown ? this.#services.values() : undefined;
  }

  get trustBundles(): readonly ClusterTrustBundle[] | undefined {
    return this.#trustBundles.isKnown ? this.#trustBundles.values() : undefined;
  }

  /** The full set, as the API server has it. */
  podsChanged(pods: readonly Pod[]): void {
    this.#heardOfPods = true;
    this.#pods.replace(pods.map((pod) => [pod.metadata.uid ?? '', pod]));
  }

  /** A node that is gone stays as it was last known. */
  nodeChanged(node: Node | undefined): void {
    if (node !== undefined) this.#node.set(this.#o.nodeName, node);
  }

  servicesChanged(services: Iterable<Service>): void {
    this.#services.replace(byName(services));
  }

  trustBundlesChanged(bundles: Iterable<ClusterTrustBundle>): void {
    this.#trustBundles.replace(byName(bundles));
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    while (!signal.aborted) {
      await this.#wake.rest(clock, IDLE_MS, signal);
      await clock.sleep(SETTLE_MS, signal);
      await this.#write();
    }
    await this.#write();
  }

  async #write(): Promise<void> {
    if (!this.#heardOfPods) return;
    this.#forgetUnused();
    for (const file of this.#files()) await file.write();
  }

  /** Pods that are over or gone need nothing any more. */
  #forgetUnused(): void {
    const pods = this.#pods.values().filter(({ status }) => !hasEnded(status));
    const used = (namesOf: (pod: Pod) => Iterable<string>): ReadonlySet<string> =>
      new Set(pods.flatMap((pod) => [...namesOf(pod)].map((name) => `${namespaceOf(pod)}/${name}`)));
    const [configMaps, secrets] = [used(configMapsOf), used(secretsOf)];
    const accounts = used(({ spec }) => [spec.serviceAccountName ?? '']);
    const classes = new Set(pods.map(({ spec }) => spec.runtimeClassName));
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    const now = this.#deps.clock.now();
    this.configMaps.retain((key) => configMaps.has(key));
    this.secrets.retain((key) => secrets.has(key));
    this.serviceAccounts.retain((key) => accounts.has(key));
    this.runtimeClasses.retain((name) => classes.has(name));
    this.tokens.retain((_key, token) => uids.has(token.podUid) && parseTimeMs(token.expirationTimestamp) > now);
  }

  #files(): readonly Pick<CheckpointFile<object>, 'load' | 'write'>[] {
    const { configMaps, secrets, serviceAccounts, tokens, runtimeClasses } = this;
    // Last the pods: they are of use only with what they need.
    return [
      configMaps,
      secrets,
      serviceAccounts,
      tokens,
      runtimeClasses,
      this.#node,
      this.#services,
      this.#trustBundles,
      this.#pods,
    ];
  }

  #file<T extends object>(
    name: string,
    kind: Pick<CheckpointFileOptions<T>, 'versionOf' | 'isItem' | 'toStored'>,
  ): CheckpointFile<T> {
    const { dir, nodeName } = this.#o;
    const path = join(dir, `${name}.json`);
    const onChange = (): void => this.#wake.wake();
    return new CheckpointFile<T>(this.#deps.log, { path, nodeName, onChange, ...kind });
  }
}

const objectVersion = ({ metadata }: KubeObject): string => `${metadata.uid} ${metadata.resourceVersion}`;
const byName = <T extends KubeObject>(objects: Iterable<T>): (readonly [string, T])[] =>
  [...objects].map((o) => [`${o.metadata.namespace ?? ''}/${o.metadata.name}`, o]);

/** The pods among them are looked at further, as those of the API server are. */
const isObject = ({ metadata }: Partial<KubeObject>): boolean =>
  typeof (metadata as Partial<KubeObject['metadata']> | null | undefined)?.name === 'string';
const isToken = (item: { readonly [K in keyof IssuedToken]?: unknown }): boolean =>
  [item.token, item.expirationTimestamp, item.podUid].every((value) => typeof value === 'string');

const slim = (object: KubeObject): KubeObject => {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
};
