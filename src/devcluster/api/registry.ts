// The common life of every object: create, replace, patch. Reads and writes the store in one go, without an await in
// between, so two requests can never interleave on one object.
import { randomUUID } from 'node:crypto';
import { apiTime } from '../../core/time.ts';
import { Findings } from '../../core/validation/field-error.ts';
import { ownersAfterUpdate } from './apply/ownership.ts';
import { structureOfKind } from './apply/structure.ts';
import {
  ApiError,
  alreadyExists,
  badRequest,
  forbidden,
  invalid,
  notFound,
  staleObject,
  uidMismatch,
} from './api-error.ts';
import { finishDeletion } from './deletion.ts';
import { complainAbout, undecodable } from './field-validation.ts';
import { wrongType } from './field-types.ts';
import { dropUnknownFields, withoutEmptyFields } from './known-fields.ts';
import { checkMetadata, checkName, generatedName, type NameStyle } from './names.ts';
import { draftOf, isJson, keyOf, sameJson, textAt, type ApiObject, type Json } from './objects.ts';
import { apiVersionOf, type ResourceType } from './resources.ts';
import { StoredObject, type ObjectStore } from './store.ts';
import type { RequestContext, Strategy, World } from './strategy.ts';

export type Write = {
  readonly operation: 'create' | 'update' | 'delete';
  readonly type: ResourceType;
  readonly subresource: string;
  readonly object: ApiObject;
  readonly old: ApiObject | undefined;
  readonly context: RequestContext;
};

const LABEL_NAMES = new Set(['namespaces', 'services']);

export class Registry {
  readonly store: ObjectStore;
  readonly world: World;
  readonly #strategies: Readonly<Record<string, Strategy>>;
  readonly #gate: (write: Write) => void;

  /** `gate` may refuse any write by throwing. */
  constructor(world: World, strategies: Readonly<Record<string, Strategy>>, gate: (write: Write) => void) {
    this.store = world.store;
    this.world = world;
    this.#strategies = strategies;
    this.#gate = gate;
  }

  /** Asks the gate about a deletion. */
  checkDelete(type: ResourceType, old: ApiObject, context: RequestContext): void {
    this.#gate({ operation: 'delete', type, subresource: '', object: old, old, context });
  }

  strategyOf(type: ResourceType): Strategy {
    return this.#strategies[type.storage] ?? {};
  }

  get(type: ResourceType, namespace: string, name: string): StoredObject {
    const found = this.store.get(type.storage, keyOf(namespace, name));
    if (found === undefined) throw notFound(type, name);
    return found;
  }

  /** For kinds that are only known so that clients are told why there are none. */
  checkOffered(type: ResourceType): void {
    if (type.refused !== undefined)
      throw new ApiError(405, 'MethodNotAllowed', `no ${type.kind} can be created: ${type.refused}`, {});
  }

  create(type: ResourceType, namespace: string, body: Json, context: RequestContext): StoredObject {
    this.checkOffered(type);
    if (type.inert !== undefined) context.warnings.push(type.inert);
    const strategy = this.strategyOf(type);
    const draft = this.#decode(type, body, context);
    const meta = draft.metadata;
    this.#stampNew(type, namespace, draft);
    this.#checkNamespace(type, namespace, meta.name, context);
    this.#gate({ operation: 'create', type, subresource: '', object: draft, old: undefined, context });
    if (type.hasStatus && strategy.prepareCreate === undefined) delete draft['status'];
    strategy.prepareCreate?.(draft, this.world, context);
    if (context.managedFields !== undefined) meta.managedFields = context.managedFields;
    const style: NameStyle =
      strategy.looseNames === true ? 'path' : LABEL_NAMES.has(type.storage) ? 'label' : 'subdomain';
    const f = new Findings();
    if (strategy.validatesMetadata !== true) {
      checkName(f, meta, style);
      checkMetadata(f, meta);
    }
    strategy.validate?.(f, draft, this.world);
    if (f.list.length > 0) throw invalid(type, meta.name, f.list);
    if (this.store.get(type.storage, keyOf(meta.namespace, meta.name)) !== undefined) {
      if (meta.generateName === undefined) throw alreadyExists(type, meta.name);
      meta.name = generatedName(meta.generateName);
    }
    return context.dryRun ? new StoredObject(draft, 0) : this.store.put(type.storage, draft);
  }

  #stampNew(type: ResourceType, namespace: string, draft: ApiObject): void {
    const meta = draft.metadata;
    if ((meta.resourceVersion ?? '') !== '')
      throw badRequest('resourceVersion should not be set on objects to be created');
    if (type.namespaced) {
      if ((meta.namespace ?? '') !== '' && meta.namespace !== namespace)
        throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
      meta.namespace = namespace;
    } else delete meta.namespace;
    if ((meta.name ?? '') === '')
      meta.name = (meta.generateName ?? '') === '' ? '' : generatedName(meta.generateName ?? '');
    delete meta.resourceVersion;
    delete meta.deletionTimestamp;
    delete meta.deletionGracePeriodSeconds;
    delete meta.managedFields;
    delete meta.selfLink;
    meta.uid = randomUUID();
    meta.creationTimestamp = apiTime(this.world.clock.now());
    if (type.counted) meta.generation = 1;
    else delete meta.generation;
  }

  #checkNamespace(type: ResourceType, namespace: string, name: string, context: RequestContext): void {
    if (!type.namespaced || context.dryRun) return;
    const found = this.store.get('namespaces', namespace);
    if (found === undefined) throw notFound({ group: '', resource: 'namespaces', kind: 'Namespace' }, namespace);
    if (found.object.metadata.deletionTimestamp === undefined) return;
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    throw forbidden(type, name, why, [
      {
        reason: 'NamespaceTerminating',
        message: `namespace ${namespace} is being terminated`,
        field: 'metadata.namespace',
      },
    ]);
  }

  #decode(type: ResourceType, body: Json, context: RequestContext): ApiObject {
    const draft = asObject(type, body);
    // Pods have a stricter reader of their own.
    if (type.storage !== 'pods') {
      complainAbout(dropUnknownFields(draft, draft.apiVersion, draft.kind), type, context);
      const wrong = wrongType(draft, draft.apiVersion, draft.kind);
      if (wrong !== undefined) throw undecodable(type, wrong);
    }
    const decoded = this.strategyOf(type).decode?.(draft, context) ?? draft;
    return withoutEmptyFields(decoded, draft.apiVersion, draft.kind);
  }

  /** Replaces the object, or the part of it that `subresource` stands for. */
  replace(
    type: ResourceType,
    namespace: string,
    name: string,
    body: Json,
    context: RequestContext,
    subresource = '',
  ): StoredObject {
    const old = this.get(type, namespace, name);
    const draft = this.#decode(type, body, context);
    if (draft.metadata.name !== name)
      throw badRequest(
        draft.metadata.name === ''
          ? 'name must be provided'
          : `the name of the object (${draft.metadata.name}) does not match the name on the URL (${name})`,
      );
    if (type.namespaced && (draft.metadata.namespace ?? namespace) !== namespace)
      throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
    return this.#write(type, old, draft, context, subresource);
  }

  /** Applies `change` to a draft of the current state and writes the result. */
  modify(
    type: ResourceType,
    namespace: string,
    name: string,
    change: (draft: ApiObject) => ApiObject,
    context: RequestContext,
    subresource = '',
  ): StoredObject {
    const old = this.get(type, namespace, name);
    const draft = this.#decode(type, change(draftOf(old.object) as ApiObject), context);
    return this.#write(type, old, draft, context, subresource);
  }

  #write(
    type: ResourceType,
    stored: StoredObject,
    draft: ApiObject,
    context: RequestContext,
    subresource: string,
  ): StoredObject {
    const old = stored.object as ApiObject;
    const meta = draft.metadata;
    const { name } = old.metadata;
    if ((meta.uid ?? '') !== '' && meta.uid !== old.metadata.uid)
      throw uidMismatch(type, old.metadata.namespace ?? '', name, meta.uid ?? '', old.metadata.uid ?? '');
    if ((meta.resourceVersion ?? '') !== '' && meta.resourceVersion !== old.metadata.resourceVersion)
      throw staleObject(type, name);
    keepServerFields(draft, old);
    if (type.hasStatus) keepOtherHalf(draft, old, subresource);
    const strategy = this.strategyOf(type);
    strategy.prepareUpdate?.(draft, old, this.world, subresource, context);
    if (type.counted && subresource !== 'status' && !sameJson(draft['spec'], old['spec']))
      draft.metadata.generation = (old.metadata.generation ?? 0) + 1;
    this.#setOwners(type, draft, old, subresource, context);
    this.#gate({ operation: 'update', type, subresource, object: draft, old, context });
    const f = new Findings();
    if (strategy.validatesMetadata !== true) checkMetadata(f, draft.metadata);
    strategy.validateUpdate?.(f, draft, old, this.world, subresource);
    if (f.list.length > 0) throw invalid(type, name, f.list);
    if (sameJson(draft, old)) return stored;
    if (context.dryRun) return new StoredObject(draft, stored.revision);
    const written = this.store.put(type.storage, draft);
    return finishDeletion(this, type, written);
  }

  #setOwners(type: ResourceType, draft: ApiObject, old: ApiObject, subresource: string, context: RequestContext): void {
    const { fieldManager: name } = context;
    const kept = old.metadata.managedFields;
    const manager = { name: name ?? '', operation: 'Update', apiVersion: apiVersionOf(type), subresource } as const;
    const owners =
      context.managedFields ??
      (kept === undefined || name === undefined
        ? kept
        : ownersAfterUpdate(old, draft, structureOfKind(type), manager, apiTime(this.world.clock.now())));
    if (owners !== undefined) draft.metadata.managedFields = owners;
  }
}

/** The body as an object of this type; what it says of its own kind must fit. */
function asObject(type: ResourceType, body: Json): ApiObject {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = body;
  const kind = textAt(body, 'kind');
  const apiVersion = textAt(body, 'apiVersion');
  if (kind !== '' && kind !== type.kind)
    throw badRequest(
      `${kind} in version "${type.version}" cannot be handled as a ${type.kind}: converting (${apiVersion}, Kind=${kind}) to (${apiVersionOf(type)}, Kind=${type.kind}): unknown conversion`,
    );
  if (apiVersion !== '' && apiVersion !== apiVersionOf(type))
    throw badRequest(
      `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOf(type)})`,
    );
  const meta = isJson(metadata) ? metadata : {};
  return {
    kind: type.kind,
    apiVersion: apiVersionOf(type),
    metadata: { ...meta, name: typeof meta['name'] === 'string' ? meta['name'] : '' },
    ...rest,
  };
}

/** Metadata only the server writes stays what it was. */
function keepServerFields(draft: ApiObject, old: ApiObject): void {
  const meta = draft.metadata;
  const before = old.metadata;
  meta.name = before.name;
  for (const field of [
    'namespace',
    'uid',
    'creationTimestamp',
    'deletionTimestamp',
    'deletionGracePeriodSeconds',
    'generation',
    'generateName',
    'resourceVersion',
  ] as const) {
    if (before[field] === undefined) delete meta[field];
    else Object.assign(meta, { [field]: before[field] });
  }
  delete meta.managedFields;
  delete meta.selfLink;
}

/** A status write changes nothing but the status, any other write everything but the status. */
function keepOtherHalf(draft: ApiObject, old: ApiObject, subresource: string): void {
  if (subresource === 'status' || subresource === 'approval') {
    for (const key of new Set([...Object.keys(draft), ...Object.keys(old)]))
      if (key !== 'status' && key !== 'metadata') copyField(draft, old, key);
  } else copyField(draft, old, 'status');
}

function copyField(draft: ApiObject, old: ApiObject, key: string): void {
  if (old[key] === undefined) delete draft[key];
  else draft[key] = old[key];
}
