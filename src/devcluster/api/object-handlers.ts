// The verbs on objects and collections: from an HTTP exchange to the registry and back.
import { apiTime } from '../../core/time.ts';
import { Findings } from '../../core/validation/field-error.ts';
import type { Clock } from '../../lib/clock.ts';
import { badRequest, invalid, notFound, staleObject, unsupportedMediaType } from './api-error.ts';
import { applyTo, ownersOfNew } from './apply/ownership.ts';
import { structureOfKind } from './apply/structure.ts';
import { deletedStatus, deleteObject, type DeleteOptions, type Propagation } from './deletion.ts';
import { fromNewEvent, toNewEvent } from './event-conversion.ts';
import {
  contextOf,
  mediaType,
  parseDocument,
  readBody,
  readObject,
  sendJson,
  sendText,
  type Exchange,
} from './exchange.ts';
import { chooseForm, type ListForm } from './forms.ts';
import { jsonPatch, mergePatch } from './json-patch.ts';
import { Pager, select, selectionOf } from './listing.ts';
import { mergeSchemaOf } from './merge-schema.ts';
import { isJson, keyOf, numberAt, recordAt, textAt, type ApiObject, type Json } from './objects.ts';
import type { Registry } from './registry.ts';
import { apiVersionOf, type ResourceType } from './resources.ts';
import { isTrue } from './request-info.ts';
import type { StoredObject } from './store.ts';
import { strategicMerge } from './strategic-merge.ts';
import type { RequestContext } from './strategy.ts';
import { serveWatch } from './watching.ts';
import type { WatchHub } from './watch-hub.ts';

export type HandlerDeps = { readonly registry: Registry; readonly hub: WatchHub; readonly clock: Clock };

export class ObjectHandlers {
  readonly #deps: HandlerDeps;
  readonly #pager = new Pager();

  constructor(deps: HandlerDeps) {
    this.#deps = deps;
  }

  async handle(exchange: Exchange, type: ResourceType): Promise<void> {
    const { info, query, request } = exchange;
    const form = chooseForm(type, request.headers.accept, query, () => this.#deps.clock.now());
    switch (info.verb) {
      case 'get':
        return this.#send(exchange, 200, form, this.#deps.registry.get(type, info.namespace, info.name));
      case 'list':
        return this.#list(exchange, type, form);
      case 'watch':
        return serveWatch({ ...this.#deps, store: this.#deps.registry.store }, exchange, type, form);
      case 'create':
        return this.#create(exchange, type, form);
      case 'update':
        return this.#update(exchange, type, form);
      case 'patch':
        return this.#patch(exchange, type, form);
      case 'delete':
        return this.#delete(exchange, type, form);
      case 'deletecollection':
        return this.#deleteCollection(exchange, type, form);
      default:
        throw badRequest(`no verb for ${request.method ?? ''}`);
    }
  }

  /** Forgets paged lists, as a compaction does. */
  forgetPages(): void {
    this.#pager.forget();
  }

  #send(exchange: Exchange, code: number, form: ListForm, stored: StoredObject, context?: RequestContext): void {
    sendText(exchange.response, code, form.render(stored), form.contentType, context?.warnings);
  }

  #list(exchange: Exchange, type: ResourceType, form: ListForm): void {
    const selection = selectionOf(type, exchange.info, exchange.query);
    const page = this.#pager.page(this.#deps.registry.store, type.storage, selection, exchange.query);
    sendText(exchange.response, 200, form.renderList(page.items, page.meta), form.contentType);
  }

  async #create(exchange: Exchange, type: ResourceType, form: ListForm): Promise<void> {
    // Before the body is looked at: nothing is known of the protobuf forms of such kinds.
    this.#deps.registry.checkOffered(type);
    const body = storedForm(type, await readObject(exchange.request));
    const context = contextOf(exchange);
    const created = this.#deps.registry.create(viewedAs(type), exchange.info.namespace, body, context);
    this.#send(exchange, 201, form, created, context);
  }

  async #update(exchange: Exchange, type: ResourceType, form: ListForm): Promise<void> {
    const { info } = exchange;
    const body = storedForm(type, await readObject(exchange.request));
    const context = contextOf(exchange);
    const done = this.#deps.registry.replace(
      viewedAs(type),
      info.namespace,
      info.name,
      body,
      context,
      info.subresource,
    );
    this.#send(exchange, 200, form, done, context);
  }

  async #patch(exchange: Exchange, type: ResourceType, form: ListForm): Promise<void> {
    const { info, request } = exchange;
    const media = mediaType(request);
    const patch = parseDocument((await readBody(request)).toString('utf8'), media);
    if (media === APPLY) return this.#apply(exchange, type, form, patch);
    const apply = patcher(media, type, patch);
    const context = contextOf(exchange);
    const { registry } = this.#deps;
    const stored = registry.get(type, info.namespace, info.name);
    const change = (draft: ApiObject): ApiObject => {
      const shown = type.group === 'events.k8s.io' ? toNewEvent(draft) : draft;
      const result = apply(shown);
      if (!isJson(result)) throw badRequest('the patch leaves no object');
      checkIdentity(type, stored, result);
      return storedForm(type, result) as ApiObject;
    };
    const done = registry.modify(viewedAs(type), info.namespace, info.name, change, context, info.subresource);
    this.#send(exchange, 200, form, done, context);
  }

  /** Server-side apply: the configuration is merged, its manager owns what is in it. */
  #apply(exchange: Exchange, type: ResourceType, form: ListForm, patch: unknown): void {
    const { info, query } = exchange;
    const { registry, clock } = this.#deps;
    const config = checkedConfig(patch, query);
    const seen = viewedAs(type);
    const structure = structureOfKind(seen);
    const manager = {
      name: query.get('fieldManager') ?? '',
      operation: 'Apply',
      apiVersion: apiVersionOf(seen),
      subresource: info.subresource,
    } as const;
    const time = apiTime(clock.now());
    const context = contextOf(exchange);
    const stored = registry.store.get(type.storage, keyOf(info.namespace, info.name));
    if (stored === undefined) {
      if (info.subresource !== '') throw notFound(type, info.name);
      const body = { ...config, metadata: { ...recordAt(config, 'metadata'), name: info.name } };
      const owned = { ...context, managedFields: ownersOfNew(config, structure, manager, time) };
      return this.#send(exchange, 201, form, registry.create(seen, info.namespace, body, owned), context);
    }
    const force = isTrue(query.get('force') ?? 'false');
    const applied = applyTo(stored.object as ApiObject, config, structure, manager, { force, time });
    checkIdentity(type, stored, applied.object);
    const done = registry.modify(
      seen,
      info.namespace,
      info.name,
      () => applied.object as ApiObject,
      { ...context, managedFields: applied.managedFields },
      info.subresource,
    );
    this.#send(exchange, 200, form, done, context);
  }

  async #delete(exchange: Exchange, type: ResourceType, form: ListForm): Promise<void> {
    const { info } = exchange;
    const options = deleteOptions(await readObject(exchange.request), exchange.query);
    const context = dryRunOf(options.body, contextOf(exchange));
    const { registry } = this.#deps;
    const { object, gone } = deleteObject(registry, type, info.namespace, info.name, options.options, context);
    if (gone && registry.strategyOf(type).returnsDeleted !== true)
      sendJson(exchange.response, 200, deletedStatus(type, object.object as ApiObject));
    else this.#send(exchange, 200, form, object);
  }

  async #deleteCollection(exchange: Exchange, type: ResourceType, form: ListForm): Promise<void> {
    const { options, body } = deleteOptions(await readObject(exchange.request), exchange.query);
    const context = dryRunOf(body, contextOf(exchange));
    const { registry } = this.#deps;
    const selected = select(registry.store, type.storage, selectionOf(type, exchange.info, exchange.query));
    const removed = selected.map((stored) => {
      const { name, namespace = '' } = stored.object.metadata;
      return deleteObject(registry, type, namespace, name, options, context).object;
    });
    sendText(
      exchange.response,
      200,
      form.renderList(removed, { resourceVersion: String(registry.store.revision) }),
      form.contentType,
    );
  }
}

const APPLY = 'application/apply-patch+yaml';

/** events.k8s.io is a view: bodies are turned into the core type before anything else looks at them. */
const storedForm = (type: ResourceType, body: Json): Json =>
  type.group === 'events.k8s.io' ? fromNewEvent(body) : body;
const viewedAs = (type: ResourceType): ResourceType =>
  type.group === 'events.k8s.io' ? { ...type, group: '', version: 'v1' } : type;

function patcher(media: string, type: ResourceType, patch: unknown): (object: Json) => unknown {
  switch (media) {
    case 'application/json-patch+json':
      return (object) => jsonPatch(object, patch);
    case 'application/merge-patch+json':
      return (object) => mergePatch(object, patch);
    case 'application/strategic-merge-patch+json':
      return (object) => strategicMerge(object, patch, mergeSchemaOf(type.kind));
    default:
      throw unsupportedMediaType(
        'application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml',
      );
  }
}

function checkedConfig(patch: unknown, query: URLSearchParams): Json {
  if (!isJson(patch)) throw badRequest('the applied configuration is not an object');
  if ((query.get('fieldManager') ?? '') === '') {
    const f = new Findings();
    f.required('fieldManager', 'is required for apply patch');
    throw invalid({ group: 'meta.k8s.io', resource: '', kind: 'PatchOptions' }, '', f.list);
  }
  if (recordAt(patch, 'metadata')['managedFields'] !== undefined)
    throw badRequest('metadata.managedFields must be nil');
  return patch;
}

/** A patch may carry the UID and version it was made for; both must still fit. A UID is a field here, not a precondition. */
function checkIdentity(type: ResourceType, stored: StoredObject, result: Json): void {
  const { name, uid = '', resourceVersion = '' } = stored.object.metadata;
  const asked = textAt(result, 'metadata', 'uid');
  const version = textAt(result, 'metadata', 'resourceVersion');
  if (version !== '' && version !== resourceVersion) throw staleObject(type, name);
  const f = new Findings();
  const newName = textAt(result, 'metadata', 'name');
  if (newName !== name) f.invalid('metadata.name', newName, 'field is immutable');
  if (asked !== '' && asked !== uid) f.invalid('metadata.uid', asked, 'field is immutable');
  if (f.list.length > 0) throw invalid(type, name, f.list);
}

function deleteOptions(body: Json, query: URLSearchParams): { options: DeleteOptions; body: Json } {
  const kind = textAt(body, 'kind');
  if (kind !== '' && kind !== 'DeleteOptions') throw badRequest(`cannot use a ${kind} as delete options`);
  const grace = query.get('gracePeriodSeconds');
  const seconds = grace === null ? numberAt(body, 'gracePeriodSeconds') : Number(grace);
  const orphan =
    body['orphanDependents'] ?? (query.has('orphanDependents') ? isTrue(query.get('orphanDependents')) : undefined);
  const asked =
    (query.get('propagationPolicy') ?? textAt(body, 'propagationPolicy')) || (orphan === true ? 'Orphan' : '');
  if (asked !== '' && !['Background', 'Foreground', 'Orphan'].includes(asked)) {
    const f = new Findings();
    f.notSupported('propagationPolicy', asked, ['Foreground', 'Background', 'Orphan']);
    throw invalid({ group: 'meta.k8s.io', resource: '', kind: 'DeleteOptions' }, '', f.list);
  }
  const conditions = recordAt(body, 'preconditions');
  const uid = textAt(conditions, 'uid');
  const resourceVersion = textAt(conditions, 'resourceVersion');
  return {
    body,
    options: {
      ...(seconds === undefined || Number.isNaN(seconds) ? {} : { gracePeriodSeconds: seconds }),
      ...(asked === '' ? {} : { propagationPolicy: asked as Propagation }),
      preconditions: { ...(uid === '' ? {} : { uid }), ...(resourceVersion === '' ? {} : { resourceVersion }) },
    },
  };
}

const dryRunOf = (body: Json, context: RequestContext): RequestContext =>
  Array.isArray(body['dryRun']) && body['dryRun'].includes('All') ? { ...context, dryRun: true } : context;
