// The watch request: initial state where asked for, then changes as they happen, bookmarks in between, an orderly end.
import type { ServerResponse } from 'node:http';
import { nextTurn, type Clock } from '../../lib/clock.ts';
import { ApiError, invalid } from './api-error.ts';
import { Findings } from '../../core/validation/field-error.ts';
import type { Exchange } from './exchange.ts';
import type { ListForm } from './forms.ts';
import { parseVersion, select, selectionOf } from './listing.ts';
import { apiVersionOf, type ResourceType } from './resources.ts';
import { isTrue } from './request-info.ts';
import type { ObjectStore } from './store.ts';
import { eventLine, type WatchHub, type WatchSink } from './watch-hub.ts';

const MAX_BUFFERED_BYTES = 32 * 1024 * 1024;
const BOOKMARK_EVERY_MS = 60_000;
const DEFAULT_TIMEOUT_SECONDS = 1800;

export type WatchDeps = { readonly store: ObjectStore; readonly hub: WatchHub; readonly clock: Clock };

export function serveWatch(deps: WatchDeps, exchange: Exchange, type: ResourceType, form: ListForm): void {
  const { query, info, response } = exchange;
  const selection = selectionOf(type, info, query);
  const start = startOf(query, deps.store);
  const bookmarks = isTrue(query.get('allowWatchBookmarks') ?? 'false');
  const stream = new WatchStream(deps, type, response, bookmarks);
  const request = { storage: type.storage, ...selection, form };
  if (start.since !== undefined) return stream.open(() => deps.hub.watch(request, stream, start.since), query);
  stream.open(() => {
    for (const stored of select(deps.store, type.storage, selection))
      stream.write(eventLine('ADDED', form.render(stored)));
    if (start.markEnd && bookmarks) stream.bookmark({ 'k8s.io/initial-events-end': 'true' });
    return deps.hub.watch(request, stream, deps.store.revision);
  }, query);
}

type Start = { readonly since: number } | { readonly since: undefined; readonly markEnd: boolean };

function startOf(query: URLSearchParams, store: ObjectStore): Start {
  const version = query.get('resourceVersion') ?? '';
  const initial = query.get('sendInitialEvents');
  const match = query.get('resourceVersionMatch') ?? '';
  const f = new Findings();
  if (initial !== null && match !== 'NotOlderThan')
    f.forbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan');
  if (initial === null && match !== '')
    f.forbidden(
      'resourceVersionMatch',
      'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
    );
  if (f.list.length > 0) throw invalid({ group: '', resource: '', kind: 'ListOptions' }, '', f.list);
  if (version !== '' && version !== '0') parseVersion(version);
  if (initial !== null) {
    if (isTrue(initial)) return { since: undefined, markEnd: true };
    return { since: version === '' || version === '0' ? store.revision : parseVersion(version) };
  }
  if (version === '' || version === '0') return { since: undefined, markEnd: false };
  return { since: parseVersion(version) };
}

class WatchStream implements WatchSink {
  readonly #deps: WatchDeps;
  readonly #type: ResourceType;
  readonly #response: ServerResponse;
  readonly #bookmarks: boolean;
  #stop: () => void = () => undefined;
  #timers: (() => void)[] = [];
  #pending = '';
  #closed = false;

  constructor(deps: WatchDeps, type: ResourceType, response: ServerResponse, bookmarks: boolean) {
    this.#deps = deps;
    this.#type = type;
    this.#response = response;
    this.#bookmarks = bookmarks;
  }

  open(begin: () => () => void, query: URLSearchParams): void {
    const response = this.#response;
    response.statusCode = 200;
    response.setHeader('Content-Type', 'application/json');
    response.setHeader('Cache-Control', 'no-cache, private');
    response.once('close', () => {
      this.#closed = true;
      this.#release();
    });
    try {
      this.#stop = begin();
    } catch (err) {
      if (!(err instanceof ApiError) || err.code !== 410) throw err;
      // The real server answers 200 and tells within the stream that it cannot go that far back.
      response.flushHeaders();
      response.end(eventLine('ERROR', JSON.stringify(err.status())));
      return;
    }
    response.flushHeaders();
    const seconds =
      Number(query.get('timeoutSeconds') ?? 0) || DEFAULT_TIMEOUT_SECONDS * (1 + this.#deps.clock.random());
    const timeout = this.#deps.clock.after(seconds * 1000, () => this.end());
    this.#timers.push(() => timeout.cancel());
    if (this.#bookmarks) this.#bookmarkLater();
  }

  #bookmarkLater(): void {
    const timer = this.#deps.clock.after(BOOKMARK_EVERY_MS, () => {
      this.bookmark();
      this.#bookmarkLater();
    });
    this.#timers = [this.#timers[0] ?? ((): void => undefined), () => timer.cancel()];
  }

  bookmark(annotations?: Readonly<Record<string, string>>): void {
    const object = {
      kind: this.#type.kind,
      apiVersion: apiVersionOf(this.#type),
      metadata: {
        resourceVersion: String(this.#deps.store.revision),
        creationTimestamp: null,
        ...(annotations === undefined ? {} : { annotations }),
      },
    };
    this.write(eventLine('BOOKMARK', JSON.stringify(object)));
  }

  /** Changes made in one turn of the loop leave as one chunk: with many writers that is most of the cost of a watch. */
  write(line: string): boolean {
    const response = this.#response;
    if (response.writableEnded || this.#closed) return false;
    if (this.#pending === '') void nextTurn().then(() => this.#flush());
    this.#pending += line;
    return response.writableLength + this.#pending.length < MAX_BUFFERED_BYTES;
  }

  #flush(): void {
    const lines = this.#pending;
    this.#pending = '';
    if (lines !== '' && !this.#response.writableEnded && !this.#closed) this.#response.write(lines);
  }

  end(): void {
    if (this.#bookmarks && !this.#response.writableEnded && !this.#closed) this.bookmark();
    this.#release();
    this.#flush();
    this.#response.end();
  }

  #release(): void {
    this.#stop();
    for (const cancel of this.#timers.splice(0)) cancel();
  }
}
