// API objects as plain JSON. Stored objects are never changed: a writer makes a draft, fills it and hands it over.
import type { OwnerReference } from '../../core/meta.ts';

export type Json = { [key: string]: unknown };

export type Meta = {
  name: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  managedFields?: unknown;
  selfLink?: string;
};

export type ApiObject = { kind: string; apiVersion: string; metadata: Meta; [key: string]: unknown };

export const isJson = (value: unknown): value is Json =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value at a path, undefined where the path ends early. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (!isJson(current)) return undefined;
    current = current[key];
  }
  return current;
}

export const textAt = (value: unknown, ...path: readonly string[]): string => {
  const found = at(value, ...path);
  return typeof found === 'string' ? found : '';
};

export const numberAt = (value: unknown, ...path: readonly string[]): number | undefined => {
  const found = at(value, ...path);
  return typeof found === 'number' ? found : undefined;
};

export const recordAt = (value: unknown, ...path: readonly string[]): Json => {
  const found = at(value, ...path);
  return isJson(found) ? found : {};
};

export const listAt = (value: unknown, ...path: readonly string[]): readonly unknown[] => {
  const found = at(value, ...path);
  return Array.isArray(found) ? (found as unknown[]) : [];
};

export const recordsAt = (value: unknown, ...path: readonly string[]): readonly Json[] =>
  listAt(value, ...path).filter(isJson);

export const textsAt = (value: unknown, ...path: readonly string[]): readonly string[] =>
  listAt(value, ...path).filter((item) => typeof item === 'string');

/** A record inside a draft, made when it is missing. */
export function childRecord(draft: Json, key: string): Json {
  const found = draft[key];
  if (isJson(found)) return found;
  const made: Json = {};
  draft[key] = made;
  return made;
}

/** A copy that may be changed. JSON only, which is several times faster to copy than just any value. */
export function draftOf<T>(value: T): T {
  if (Array.isArray(value)) return value.map(draftOf) as T;
  if (!isJson(value)) return value;
  const copy: Json = {};
  for (const key of Object.keys(value)) setField(copy, key, draftOf(value[key]));
  return copy as T;
}

/**
 * Sets a field whose name came with a request. `__proto__` is left out: as a property it would become the prototype, and
 * no API type has such a field.
 */
export function setField(object: Json, key: string, value: unknown): void {
  if (key !== '__proto__') object[key] = value;
}

/** Equality of JSON values; an absent key equals an undefined one, key order does not matter. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a) || Array.isArray(b)) {
    return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => sameJson(item, b[i]));
  }
  if (!isJson(a) || !isJson(b)) return false;
  for (const key of Object.keys(a)) if (!sameJson(a[key], b[key])) return false;
  for (const key of Object.keys(b)) if (b[key] !== undefined && !Object.hasOwn(a, key)) return false;
  return true;
}

/** `namespace/name`, or the bare name of a cluster-wide object. */
export const keyOf = (namespace: string | undefined, name: string): string =>
  namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;

export const objectKey = (object: ApiObject): string => keyOf(object.metadata.namespace, object.metadata.name);
