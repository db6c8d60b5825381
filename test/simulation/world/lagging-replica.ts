// A second API server of the same cluster whose cache may stop for a while: lists and watches that go to it are older than
// what was seen elsewhere. Reads that must not be old (a plain list, a get, the first list of a client) never go to it.
import { admission } from '../../../src/devcluster/api/admission.ts';
import { Registry } from '../../../src/devcluster/api/registry.ts';
import { Router, type RouterDeps } from '../../../src/devcluster/api/router.ts';
import { ObjectStore, type Change, type StoredObject } from '../../../src/devcluster/api/store.ts';
import { STRATEGIES } from '../../../src/devcluster/api/strategies/strategies.ts';
import { WatchHub } from '../../../src/devcluster/api/watch-hub.ts';
import type { ApiRequest, ApiSink } from '../engine/machine.ts';

/** What a watch meets that asks for the time after a version its server has not come to yet. */
export type FutureWatch = 'waits' | 'is refused' | 'is told the past';

/** What the truth was when it stopped; what happened since is told when it goes on. */
class StoppedStore extends ObjectStore {
  readonly #truth: ObjectStore;
  readonly #told = new Set<(change: Change) => void>();
  readonly #later: Change[] = [];
  #past: { readonly revision: number; readonly lists: ReadonlyMap<string, readonly StoredObject[]> } | undefined;

  constructor(truth: ObjectStore) {
    super(':memory:');
    this.#truth = truth;
    truth.onChange((change) => (this.#past === undefined ? this.#give(change) : this.#later.push(change)));
  }

  get isStopped(): boolean {
    return this.#past !== undefined;
  }

  stop(): void {
    const { revision } = this.#truth;
    this.#past ??= { revision, lists: new Map(this.#truth.resources().map((name) => [name, this.#truth.list(name)])) };
  }

  goOn(): void {
    this.#past = undefined;
    for (const change of this.#later.splice(0)) this.#give(change);
  }

  override get revision(): number {
    return this.#past?.revision ?? this.#truth.revision;
  }

  override list(resource: string, namespace = ''): readonly StoredObject[] {
    if (this.#past === undefined) return this.#truth.list(resource, namespace);
    const all = this.#past.lists.get(resource) ?? [];
    return namespace === '' ? all : all.filter(({ object }) => object.metadata.namespace === namespace);
  }

  override get(resource: string, key: string): StoredObject | undefined {
    return this.#truth.get(resource, key);
  }

  override onChange(listener: (change: Change) => void): () => void {
    this.#told.add(listener);
    return () => this.#told.delete(listener);
  }

  #give(change: Change): void {
    for (const listener of this.#told) listener(change);
  }
}

export class LaggingReplica {
  readonly #store: StoppedStore;
  readonly #hub: WatchHub;
  readonly #router: Router;
  readonly #listed = new Set<string>();
  futureWatch: FutureWatch = 'waits';

  constructor(truth: ObjectStore, deps: RouterDeps, windowSize: number) {
    this.#store = new StoppedStore(truth);
    this.#hub = new WatchHub(this.#store, { windowSize });
    this.#hub.attach();
    const registry = new Registry({ store: this.#store, clock: deps.clock }, STRATEGIES, admission(truth));
    this.#router = new Router({ ...deps, registry, hub: this.#hub });
  }

  stop(futureWatch: FutureWatch): void {
    this.futureWatch = futureWatch;
    this.#store.stop();
  }

  goOn(): void {
    this.#store.goOn();
  }

  compact(): void {
    this.#hub.compact();
    this.#router.objects.forgetPages();
  }

  /** A client that begins anew has seen nothing yet. */
  newClient(): void {
    this.#listed.clear();
  }

  /** The router of a request that comes to this server, and the request as this server takes it; undefined: it goes elsewhere. */
  takes(
    request: ApiRequest,
  ): { readonly router: Router; readonly request: ApiRequest; readonly since: number } | undefined {
    const url = new URL(request.path, 'https://server');
    const { searchParams: query, pathname } = url;
    const isWatch = query.get('watch') === 'true' || query.get('watch') === '1';
    if (request.method !== 'GET' || query.has('continue')) return undefined;
    const version = Number(query.get('resourceVersion') ?? 0);
    const selector = `${pathname} ${query.get('fieldSelector') ?? ''}`;
    if (query.has('sendInitialEvents')) {
      const isFirst = !this.#listed.has(selector);
      this.#listed.add(selector);
      return this.#store.isStopped && !isFirst ? { router: this.#router, request, since: 0 } : undefined;
    }
    if (!this.#store.isStopped || version === 0) return undefined;
    if (!isWatch || version <= this.#store.revision || this.futureWatch === 'is refused')
      return { router: this.#router, request, since: 0 };
    query.set('resourceVersion', String(this.#store.revision));
    const since = this.futureWatch === 'waits' ? version : 0;
    return { router: this.#router, request: { ...request, path: `${pathname}?${query.toString()}` }, since };
  }
}

/** Passes on the lines of a watch that are newer than that. */
export const newerThan = (since: number, sink: ApiSink): ApiSink => ({
  ...sink,
  write: (chunk) => {
    const lines = chunk.split('\n').filter((line) => line !== '' && versionIn(line) > since);
    if (lines.length > 0) sink.write(`${lines.join('\n')}\n`);
  },
});

function versionIn(line: string): number {
  // A refusal is no event, and passes.
  const { object } = JSON.parse(line) as { object?: { metadata?: { resourceVersion?: string } } };
  return Number(object?.metadata?.resourceVersion ?? Infinity);
}
