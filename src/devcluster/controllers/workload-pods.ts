// What the workload controllers share: the pods they own, how one is made from a template, how well it does.
import { createHash } from 'node:crypto';
import { parseTimeMs } from '../../core/time.ts';
import { deleteObject } from '../api/deletion.ts';
import { generatedName } from '../api/names.ts';
import { recordAt, recordsAt, sameJson, textAt, type ApiObject, type Json } from '../api/objects.ts';
import type { Registry } from '../api/registry.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import { recordEvent } from './events.ts';

const controllerOf = (object: ApiObject): { kind: string; name: string; uid: string } | undefined =>
  (object.metadata.ownerReferences ?? []).find((ref) => ref.controller === true);

/** The owners of `kind` that a change of something they own wakes. */
export function ownersOf(change: Change, kind: string): readonly string[] {
  const { namespace } = change.now.object.metadata;
  const keys = new Set<string>();
  for (const stored of [change.now, change.before]) {
    const owner = stored === undefined ? undefined : controllerOf(stored.object as ApiObject);
    if (owner?.kind === kind) keys.add(`${namespace ?? ''}/${owner.name}`);
  }
  return [...keys];
}

export const ownedBy = (registry: Registry, storage: string, owner: ApiObject): ApiObject[] =>
  registry.store
    .list(storage, owner.metadata.namespace)
    .map((stored) => stored.object as ApiObject)
    .filter((object) => controllerOf(object)?.uid === owner.metadata.uid);

export const isFinished = (pod: ApiObject): boolean => ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));
export const isActive = (pod: ApiObject): boolean => !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;

const readyCondition = (pod: ApiObject): Json | undefined =>
  recordsAt(pod, 'status', 'conditions').find((c) => c['type'] === 'Ready' && c['status'] === 'True');
export const isReady = (pod: ApiObject): boolean => readyCondition(pod) !== undefined;
/** Ready for at least `minSeconds`. */
export function isAvailable(pod: ApiObject, minSeconds: number, nowMs: number): boolean {
  const ready = readyCondition(pod);
  if (ready === undefined) return false;
  return minSeconds === 0 || nowMs - parseTimeMs(textAt(ready, 'lastTransitionTime')) >= minSeconds * 1000;
}

export const ownerReference = (owner: ApiObject): Json => ({
  apiVersion: owner.apiVersion,
  kind: owner.kind,
  name: owner.metadata.name,
  uid: owner.metadata.uid,
  controller: true,
  blockOwnerDeletion: true,
});

/** A pod from the owner's template; `adjust` may still change its body. */
export function createPod(
  registry: Registry,
  component: string,
  owner: ApiObject,
  adjust: (body: Json) => Json = (b) => b,
): void {
  const template = recordAt(owner, 'spec', 'template');
  const metadata = recordAt(template, 'metadata');
  const name = generatedName(`${owner.metadata.name}-`);
  const body = {
    metadata: {
      name,
      generateName: `${owner.metadata.name}-`,
      ...(metadata['labels'] === undefined ? {} : { labels: { ...recordAt(metadata, 'labels') } }),
      ...(metadata['annotations'] === undefined ? {} : { annotations: { ...recordAt(metadata, 'annotations') } }),
      ...(metadata['finalizers'] === undefined ? {} : { finalizers: metadata['finalizers'] }),
      ownerReferences: [ownerReference(owner)],
    },
    spec: structuredClone(recordAt(template, 'spec')),
  };
  try {
    registry.create(resourceNamed('pods'), owner.metadata.namespace ?? '', adjust(body), systemContext());
  } catch (err) {
    const message = `Error creating: ${err instanceof Error ? err.message : String(err)}`;
    recordEvent(registry, component, owner, { type: 'Warning', reason: 'FailedCreate', message });
    throw err;
  }
  recordEvent(registry, component, owner, {
    type: 'Normal',
    reason: 'SuccessfulCreate',
    message: `Created pod: ${name}`,
  });
}

export function deletePod(registry: Registry, component: string, owner: ApiObject, pod: ApiObject): void {
  const { name, namespace = '' } = pod.metadata;
  deleteObject(registry, resourceNamed('pods'), namespace, name, {}, systemContext());
  recordEvent(registry, component, owner, {
    type: 'Normal',
    reason: 'SuccessfulDelete',
    message: `Deleted pod: ${name}`,
  });
}

/** Writes the status when it differs; keys set to undefined are left out. */
export function writeStatus(registry: Registry, storage: string, owner: ApiObject, status: Json): void {
  const wanted = Object.fromEntries(Object.entries(status).filter(([, value]) => value !== undefined));
  if (sameJson(recordAt(owner, 'status'), wanted)) return;
  const { name, namespace = '' } = owner.metadata;
  registry.modify(
    resourceNamed(storage),
    namespace,
    name,
    (draft) => ({ ...draft, status: wanted }),
    systemContext(),
    'status',
  );
}

/** A short name for a template: equal templates have equal hashes. */
export function templateHash(template: Json): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(sorted(template)))
    .digest();
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  return [...digest.subarray(0, 10)].map((byte) => letters[byte % letters.length]).join('');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  );
}

/** Replaces the condition of the same type; its transition time moves only with its status. */
export function withCondition(conditions: readonly Json[], next: Json, now: string): Json[] {
  const old = conditions.find((c) => c['type'] === next['type']);
  const same = old !== undefined && old['status'] === next['status'];
  const unchanged = same && old['reason'] === next['reason'] && old['message'] === next['message'];
  if (unchanged) return [...conditions];
  const made = { ...next, lastUpdateTime: now, lastTransitionTime: same ? old['lastTransitionTime'] : now };
  return [...conditions.filter((c) => c !== old), made];
}
