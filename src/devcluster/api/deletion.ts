// Deletion: preconditions, grace, finalizers, what happens to dependents. An object goes when its grace is over and
// nobody holds a finalizer on it.
import { apiTime, parseTimeMs } from '../../core/time.ts';
import { conflict } from './api-error.ts';
import { draftOf, type ApiObject, type Json } from './objects.ts';
import type { Registry } from './registry.ts';
import type { ResourceType } from './resources.ts';
import { StoredObject } from './store.ts';
import type { RequestContext } from './strategy.ts';

export type Propagation = 'Background' | 'Foreground' | 'Orphan';

export type DeleteOptions = {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: Propagation;
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
};

export const FOREGROUND = 'foregroundDeletion';
export const ORPHAN = 'orphan';

export type Deletion = {
  /** The object as it now is, or as it last was. */
  readonly object: StoredObject;
  readonly gone: boolean;
};

export function deleteObject(
  registry: Registry,
  type: ResourceType,
  namespace: string,
  name: string,
  options: DeleteOptions,
  context: RequestContext,
): Deletion {
  const stored = registry.get(type, namespace, name);
  const old = stored.object as ApiObject;
  checkPreconditions(type, old, options);
  registry.checkDelete(type, old, context);
  const strategy = registry.strategyOf(type);
  const grace = plannedGrace(registry, type, old, options);
  if (grace === 'pending') return { object: stored, gone: false };
  const finalizers = finalizersFor(old.metadata.finalizers ?? [], options.propagationPolicy);
  const stays = finalizers.length > 0 || strategy.keepsDeleted?.(old) === true;
  const graceful = strategy.graceSeconds !== undefined;
  if (!graceful && !stays) return removed(registry, type, stored, context);
  const draft = draftOf(old) as ApiObject;
  if (finalizers.length > 0) draft.metadata.finalizers = [...finalizers];
  else delete draft.metadata.finalizers;
  markDeleting(draft, grace.seconds, grace.at);
  if (stays) strategy.markDeleting?.(draft);
  if (context.dryRun) return { object: new StoredObject(draft, stored.revision), gone: false };
  const written = sameDeletion(draft, old) ? stored : registry.store.put(type.storage, draft);
  if (grace.seconds > 0 || stays) return { object: written, gone: false };
  return removed(registry, type, written, context);
}

const sameDeletion = (a: ApiObject, b: ApiObject): boolean =>
  a.metadata.deletionTimestamp === b.metadata.deletionTimestamp &&
  a.metadata.deletionGracePeriodSeconds === b.metadata.deletionGracePeriodSeconds &&
  (a.metadata.finalizers ?? []).join() === (b.metadata.finalizers ?? []).join();

function removed(registry: Registry, type: ResourceType, stored: StoredObject, context: RequestContext): Deletion {
  if (context.dryRun) return { object: stored, gone: true };
  return { object: registry.store.remove(type.storage, stored.key), gone: true };
}

function checkPreconditions(type: ResourceType, object: ApiObject, options: DeleteOptions): void {
  const { uid, resourceVersion } = options.preconditions ?? {};
  const { metadata } = object;
  const subject = { group: type.group, resource: type.kind, kind: type.kind };
  if (uid !== undefined && uid !== metadata.uid)
    throw conflict(
      subject,
      metadata.name,
      `the UID in the precondition (${uid}) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
  if (resourceVersion !== undefined && resourceVersion !== metadata.resourceVersion)
    throw conflict(
      subject,
      metadata.name,
      `the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${metadata.resourceVersion}). The object might have been modified`,
    );
}

type Grace = { readonly seconds: number; readonly at: string };

/** The grace this request leads to; `pending` when an earlier deletion stands and is not shortened. */
function plannedGrace(
  registry: Registry,
  type: ResourceType,
  object: ApiObject,
  options: DeleteOptions,
): Grace | 'pending' {
  const strategy = registry.strategyOf(type);
  const { deletionTimestamp, deletionGracePeriodSeconds: current } = object.metadata;
  const now = registry.world.clock.now();
  const asked = options.gracePeriodSeconds === undefined ? undefined : Math.max(options.gracePeriodSeconds, -1);
  if (strategy.graceSeconds === undefined) return { seconds: 0, at: deletionTimestamp ?? apiTime(now) };
  if (deletionTimestamp === undefined) {
    const seconds = strategy.graceSeconds(object, asked);
    return { seconds, at: apiTime(now + seconds * 1000) };
  }
  if (asked === undefined || current === undefined || asked >= current) return 'pending';
  const seconds = asked < 0 ? 1 : asked;
  return { seconds, at: apiTime(parseTimeMs(deletionTimestamp) + (seconds - current) * 1000) };
}

function markDeleting(draft: ApiObject, seconds: number, at: string): void {
  const meta = draft.metadata;
  if (meta.deletionTimestamp === undefined && meta.generation !== undefined) meta.generation += 1;
  meta.deletionTimestamp = at;
  meta.deletionGracePeriodSeconds = seconds;
}

function finalizersFor(current: readonly string[], policy: Propagation | undefined): readonly string[] {
  if (policy === undefined) return current;
  const others = current.filter((f) => f !== FOREGROUND && f !== ORPHAN);
  if (policy === 'Orphan') return [...others, ORPHAN];
  if (policy === 'Foreground') return [...others, FOREGROUND];
  return others;
}

/** After an update: removes what was only waiting for its last finalizer. */
export function finishDeletion(registry: Registry, type: ResourceType, written: StoredObject): StoredObject {
  const { metadata } = written.object;
  if (metadata.deletionTimestamp === undefined || (metadata.deletionGracePeriodSeconds ?? 0) > 0) return written;
  if ((metadata.finalizers ?? []).length > 0) return written;
  if (registry.strategyOf(type).keepsDeleted?.(written.object as ApiObject) === true) return written;
  return registry.store.remove(type.storage, written.key);
}

/** What a DELETE answers when it does not show the object. */
export const deletedStatus = (type: ResourceType, object: ApiObject): Json => ({
  kind: 'Status',
  apiVersion: 'v1',
  metadata: {},
  status: 'Success',
  details: {
    name: object.metadata.name,
    ...(type.group === '' ? {} : { group: type.group }),
    kind: type.resource,
    uid: object.metadata.uid,
  },
});
