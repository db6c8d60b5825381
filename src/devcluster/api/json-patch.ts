// RFC 6902 (JSON Patch) and RFC 7386 (JSON Merge Patch) on drafts.
import { ApiError, badRequest } from './api-error.ts';
import { draftOf, isJson, sameJson, setField, type Json } from './objects.ts';

export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isJson(patch)) return patch;
  const result: Json = isJson(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else setField(result, key, mergePatch(own(result, key), value));
  }
  return result;
}

type Operation = { op?: unknown; path?: unknown; from?: unknown; value?: unknown };

const unprocessable = (message: string): ApiError => new ApiError(422, 'Invalid', message, {});

export function jsonPatch(target: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations)) throw badRequest('a JSON patch is a list of operations');
  if (operations.length > 10_000)
    throw new ApiError(413, 'RequestEntityTooLarge', 'the allowed maximum operations in a JSON patch is 10000');
  let document = draftOf(target);
  for (const operation of operations as readonly (Operation | null)[]) {
    if (typeof operation !== 'object' || operation === null)
      throw badRequest('an operation of a JSON patch is an object');
    document = applyOne(document, operation);
  }
  return document;
}

function applyOne(document: unknown, operation: Operation): unknown {
  const path = pointer(operation.path);
  switch (operation.op) {
    case 'add':
      return change(document, path, (parent, key) => insert(parent, key, operation.value), operation.value);
    case 'remove':
      return change(document, path, drop, undefined);
    case 'replace':
      read(document, path);
      return change(document, path, (parent, key) => assign(parent, key, operation.value), operation.value);
    case 'move': {
      const value = read(document, pointer(operation.from));
      const without = change(document, pointer(operation.from), drop, undefined);
      return change(without, path, (parent, key) => insert(parent, key, value), value);
    }
    case 'copy': {
      const value = draftOf(read(document, pointer(operation.from)));
      return change(document, path, (parent, key) => insert(parent, key, value), value);
    }
    case 'test':
      if (!sameJson(read(document, path), operation.value))
        throw unprocessable(
          `the server rejected our request due to an error in our request: testing value ${String(operation.path)} failed`,
        );
      return document;
    default:
      throw badRequest(`unexpected kind of JSON patch operation: ${String(operation.op)}`);
  }
}

function pointer(path: unknown): string[] {
  if (typeof path !== 'string' || (path !== '' && !path.startsWith('/')))
    throw badRequest(`invalid JSON pointer: ${String(path)}`);
  return path
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

const missing = (path: readonly string[]): ApiError =>
  unprocessable(`the server rejected our request due to an error in our request: no value at path /${path.join('/')}`);

function read(document: unknown, path: readonly string[]): unknown {
  let current = document;
  for (const key of path) {
    if (Array.isArray(current)) current = (current as unknown[])[Number(key)];
    else if (isJson(current)) current = own(current, key);
    else throw missing(path);
    if (current === undefined) throw missing(path);
  }
  return current;
}

/** Only what the document has itself: `__proto__` and `constructor` lead out of it, to what all objects share. */
const own = (object: Json, key: string): unknown => (Object.hasOwn(object, key) ? object[key] : undefined);

type Container = Json | unknown[];

/** Runs `edit` on the container that holds the last path element; an empty path replaces the document. */
function change(
  document: unknown,
  path: readonly string[],
  edit: (parent: Container, key: string) => void,
  whole: unknown,
): unknown {
  const key = path.at(-1);
  if (key === undefined) return whole;
  const parent = read(document, path.slice(0, -1));
  if (!Array.isArray(parent) && !isJson(parent)) throw missing(path);
  edit(parent as Container, key);
  return document;
}

function insert(parent: Container, key: string, value: unknown): void {
  if (!Array.isArray(parent)) setField(parent, key, value);
  else if (key === '-') parent.push(value);
  else if (/^\d+$/.test(key) && Number(key) <= parent.length) parent.splice(Number(key), 0, value);
  else throw missing([key]);
}

function assign(parent: Container, key: string, value: unknown): void {
  if (Array.isArray(parent)) parent[Number(key)] = value;
  else setField(parent, key, value);
}

function drop(parent: Container, key: string): void {
  if (Array.isArray(parent)) {
    if (!/^\d+$/.test(key) || Number(key) >= parent.length) throw missing([key]);
    parent.splice(Number(key), 1);
  } else {
    if (!Object.hasOwn(parent, key)) throw missing([key]);
    delete parent[key];
  }
}
