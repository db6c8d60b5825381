// The fields of an object as a set of paths. A path is a list of steps (`f:name`, `k:{"name":"web"}`, `v:"x"`) joined by a
// character no step has; elements of keyed lists are members beside their fields.
import { isJson, sameJson, type Json } from '../objects.ts';
import { KEY_DEFAULTS, type Structure } from './structure.ts';

export type Path = string;
export type Paths = ReadonlySet<Path>;
const GLUE = '\u0000';

const below = (path: Path, step: string): Path => (path === '' ? step : `${path}${GLUE}${step}`);
export const isBelow = (path: Path, parent: Path): boolean => path.startsWith(`${parent}${GLUE}`);

export function keyStep(item: unknown, keys: readonly string[]): string {
  const record = isJson(item) ? item : {};
  return `k:${JSON.stringify(Object.fromEntries([...keys].sort().map((k) => [k, record[k] ?? KEY_DEFAULTS[k]])))}`;
}

type Visit = (path: Path, value: unknown, leaf: boolean) => void;

/** Every member: leaves with their values, and the elements of keyed lists. */
function walk(value: unknown, structure: Structure, path: Path, visit: Visit): void {
  if (structure.kind === 'map' && isJson(value) && Object.keys(value).length > 0) {
    for (const [key, inner] of Object.entries(value))
      if (inner !== undefined) walk(inner, structure.of(key), below(path, `f:${key}`), visit);
  } else if (structure.kind === 'keyed' && Array.isArray(value) && value.length > 0) {
    for (const item of value) {
      const at = below(path, keyStep(item, structure.keys));
      visit(at, item, false);
      walk(item, structure.item, at, visit);
    }
  } else if (structure.kind === 'set' && Array.isArray(value) && value.length > 0) {
    for (const item of value) visit(below(path, `v:${JSON.stringify(item)}`), item, true);
  } else if (path !== '') visit(path, value, true);
}

const SERVER_META = [
  'name',
  'namespace',
  'generateName',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'selfLink',
  'uid',
  'generation',
  'managedFields',
  'resourceVersion',
];

/** Nobody owns what names an object, nor what only the server writes. */
function ownable(object: Json): Json {
  const { apiVersion: _apiVersion, kind: _kind, metadata, ...rest } = object;
  const meta = { ...(isJson(metadata) ? metadata : {}) };
  for (const field of SERVER_META) delete meta[field];
  return Object.keys(meta).length === 0 ? rest : { metadata: meta, ...rest };
}

export function pathsOf(object: Json, structure: Structure): Set<Path> {
  const found = new Set<Path>();
  walk(ownable(object), structure, '', (path) => found.add(path));
  return found;
}

/** Members that are new or different in `now`, and those that are gone. */
export function changedPaths(before: Json, now: Json, structure: Structure): { changed: Set<Path>; gone: Set<Path> } {
  const old = new Map<Path, unknown>();
  walk(ownable(before), structure, '', (path, value, leaf) => old.set(path, leaf ? value : undefined));
  const changed = new Set<Path>();
  walk(ownable(now), structure, '', (path, value, leaf) => {
    if (!old.has(path) || (leaf && !sameJson(value, old.get(path)))) changed.add(path);
    old.delete(path);
  });
  return { changed, gone: new Set(old.keys()) };
}

/** `object` without these members; maps and lists that become empty go with them. */
export function withoutPaths(object: Json, structure: Structure, gone: Paths): Json {
  const prune = (value: unknown, at: Structure, path: Path): unknown => {
    if (path !== '' && gone.has(path)) return undefined;
    if (at.kind === 'map' && isJson(value)) {
      const kept = Object.entries(value).map(([k, v]) => [k, prune(v, at.of(k), below(path, `f:${k}`))] as const);
      const result = Object.fromEntries(kept.filter(([, v]) => v !== undefined));
      return kept.length > 0 && Object.keys(result).length === 0 && path !== '' ? undefined : result;
    }
    if ((at.kind !== 'keyed' && at.kind !== 'set') || !Array.isArray(value) || value.length === 0) return value;
    const step = (item: unknown): string =>
      at.kind === 'keyed' ? keyStep(item, at.keys) : `v:${JSON.stringify(item)}`;
    const items = value
      .map((item) => prune(item, at.kind === 'keyed' ? at.item : { kind: 'whole' }, below(path, step(item))))
      .filter((item) => item !== undefined);
    return items.length === 0 ? undefined : items;
  };
  return prune(object, structure, '') as Json;
}

export function toFieldsV1(paths: Paths): Json {
  const root: Json = {};
  for (const path of [...paths].sort()) {
    let node = root;
    for (const step of path.split(GLUE)) node = (node[step] ??= {}) as Json;
    node['.'] = {};
  }
  // A member without members below it is written without the dot.
  const trim = (node: Json): Json => {
    const steps = Object.entries(node).filter(([step]) => step !== '.');
    if (steps.length === 0) return {};
    return { ...('.' in node ? { '.': {} } : {}), ...Object.fromEntries(steps.map(([s, n]) => [s, trim(n as Json)])) };
  };
  return trim(root);
}

export function fromFieldsV1(fields: unknown): Set<Path> {
  const found = new Set<Path>();
  const visit = (node: unknown, path: Path): void => {
    const steps = isJson(node) ? Object.entries(node) : [];
    if (path !== '' && (steps.length === 0 || steps.some(([step]) => step === '.'))) found.add(path);
    for (const [step, inner] of steps) if (step !== '.') visit(inner, below(path, step));
  };
  visit(fields, '');
  return found;
}

/** `.spec.containers[name="web"].image`, as people read it. */
export const pathText = (path: Path): string =>
  path
    .split(GLUE)
    .map((step) => {
      if (step.startsWith('f:')) return `.${step.slice(2)}`;
      if (step.startsWith('v:')) return `[=${step.slice(2)}]`;
      const keys = Object.entries(JSON.parse(step.slice(2)) as Json);
      return `[${keys.map(([k, v]) => `${k}=${JSON.stringify(v)}`).join(',')}]`;
    })
    .join('');
