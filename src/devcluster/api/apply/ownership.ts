// metadata.managedFields: who wrote which field last. Applying merges a configuration into the object and gives up what
// its manager applied before and no longer names; any other write takes over what it changes.
import { ApiError } from '../api-error.ts';
import { isJson, type ApiObject, type Json } from '../objects.ts';
import {
  changedPaths,
  fromFieldsV1,
  isBelow,
  keyStep,
  pathsOf,
  pathText,
  toFieldsV1,
  withoutPaths,
  type Path,
  type Paths,
} from './field-paths.ts';
import type { Structure } from './structure.ts';

export type Manager = {
  readonly name: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly subresource: string;
};

type Owner = Manager & { readonly time: string; readonly paths: Set<Path> };

const text = (value: unknown): string => (typeof value === 'string' ? value : '');

function ownersOf(object: ApiObject): Owner[] {
  const entries = Array.isArray(object.metadata.managedFields) ? (object.metadata.managedFields as unknown[]) : [];
  return entries.filter(isJson).map((entry) => ({
    name: text(entry['manager']),
    operation: entry['operation'] === 'Apply' ? 'Apply' : 'Update',
    apiVersion: text(entry['apiVersion']),
    subresource: text(entry['subresource']),
    time: text(entry['time']),
    paths: fromFieldsV1(entry['fieldsV1']),
  }));
}

const written = (owners: readonly Owner[]): Json[] =>
  owners
    .filter((o) => o.paths.size > 0)
    .map((o) => ({
      manager: o.name,
      operation: o.operation,
      apiVersion: o.apiVersion,
      time: o.time,
      fieldsType: 'FieldsV1',
      fieldsV1: toFieldsV1(o.paths),
      ...(o.subresource === '' ? {} : { subresource: o.subresource }),
    }));

const isSame = (a: Manager, b: Manager): boolean =>
  a.name === b.name && a.operation === b.operation && a.subresource === b.subresource;

/** What a write that is no apply makes of the owners of `old`; undefined while nobody ever applied. */
export function ownersAfterUpdate(
  old: ApiObject,
  now: ApiObject,
  structure: Structure,
  manager: Manager,
  time: string,
): Json[] | undefined {
  const owners = ownersOf(old);
  if (owners.length === 0) return undefined;
  const { changed, gone } = changedPaths(old, now, structure);
  if (changed.size === 0 && gone.size === 0) return old.metadata.managedFields as Json[];
  for (const owner of owners)
    for (const path of owner.paths)
      if (gone.has(path) || (changed.has(path) && !isSame(owner, manager))) owner.paths.delete(path);
  const own = owners.find((o) => isSame(o, manager));
  const merged: Owner = { ...manager, time, paths: own?.paths ?? new Set<Path>() };
  for (const path of changed) merged.paths.add(path);
  return written([...owners.filter((o) => o !== own), merged]);
}

function merged(live: unknown, applied: unknown, structure: Structure): unknown {
  if (structure.kind === 'map' && isJson(live) && isJson(applied)) {
    const result: Json = { ...live };
    for (const [key, value] of Object.entries(applied)) result[key] = merged(live[key], value, structure.of(key));
    return result;
  }
  if (structure.kind === 'keyed' && Array.isArray(live) && Array.isArray(applied)) {
    const incoming = new Map(applied.map((item) => [keyStep(item, structure.keys), item as unknown]));
    const kept = live.map((item) => {
      const step = keyStep(item, structure.keys);
      const mine = incoming.get(step);
      incoming.delete(step);
      return mine === undefined ? (item as unknown) : merged(item, mine, structure.item);
    });
    return [...kept, ...incoming.values()];
  }
  if (structure.kind === 'set' && Array.isArray(live) && Array.isArray(applied))
    return [...new Set([...(live as unknown[]), ...(applied as unknown[])])];
  return applied;
}

export type Applied = { readonly object: Json; readonly managedFields: Json[] };

/** The object after `config` is applied to it by `manager`; a conflict is an error unless `force`. */
export function applyTo(
  live: ApiObject,
  config: Json,
  structure: Structure,
  manager: Manager,
  options: { readonly force: boolean; readonly time: string },
): Applied {
  let owners = ownersOf(live);
  if (owners.length === 0)
    owners = [
      {
        name: 'before-first-apply',
        operation: 'Update',
        apiVersion: manager.apiVersion,
        subresource: '',
        time: options.time,
        paths: pathsOf(live, structure),
      },
    ];
  const own = owners.find((o) => isSame(o, manager));
  const others = owners.filter((o) => o !== own);
  const paths = pathsOf(config, structure);
  const both = merged(live, config, structure) as Json;
  takeOver(others, changedPaths(live, both, structure).changed, options.force);
  const gone = new Set([...(own?.paths ?? [])].filter((p) => !paths.has(p) && !ownedByOthers(others, p)));
  const same = own !== undefined && own.paths.size === paths.size && [...paths].every((p) => own.paths.has(p));
  const mine: Owner = { ...manager, time: same ? own.time : options.time, paths };
  return { object: withoutPaths(both, structure, gone), managedFields: written([...others, mine]) };
}

const ownedByOthers = (others: readonly Owner[], path: Path): boolean =>
  others.some((o) => o.paths.has(path) || [...o.paths].some((p) => isBelow(p, path)));

/** Changed fields of others are conflicts; with force their owners lose them. */
function takeOver(others: readonly Owner[], changed: Paths, force: boolean): void {
  const conflicts = others
    .map((owner) => ({ owner, paths: [...owner.paths].filter((p) => changed.has(p)) }))
    .filter((c) => c.paths.length > 0);
  if (conflicts.length > 0 && !force) throw conflictError(conflicts);
  for (const { owner, paths } of conflicts) for (const path of paths) owner.paths.delete(path);
}

const describeOwner = (o: Owner): string => {
  if (o.operation === 'Apply') return JSON.stringify(o.name);
  const where = o.subresource === '' ? '' : ` with subresource ${JSON.stringify(o.subresource)}`;
  return `${JSON.stringify(o.name)}${where} using ${o.apiVersion}`;
};

function conflictError(conflicts: readonly { owner: Owner; paths: readonly Path[] }[]): ApiError {
  const count = conflicts.reduce((n, c) => n + c.paths.length, 0);
  const texts = conflicts.map(({ owner, paths }) =>
    paths.length === 1
      ? `conflict with ${describeOwner(owner)}: ${pathText(paths[0] ?? '')}`
      : `conflicts with ${describeOwner(owner)}:\n- ${paths.map(pathText).join('\n- ')}`,
  );
  const causes = conflicts.flatMap(({ owner, paths }) =>
    paths.map((path) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${describeOwner(owner)}`,
      field: pathText(path),
    })),
  );
  const what = `Apply failed with ${count} conflict${count === 1 ? '' : 's'}`;
  return new ApiError(409, 'Conflict', `${what}: ${texts.join('\n')}`, { causes });
}

/** The owners of an object that is made by applying it. */
export const ownersOfNew = (config: Json, structure: Structure, manager: Manager, time: string): Json[] =>
  written([{ ...manager, time, paths: pathsOf(config, structure) }]);
