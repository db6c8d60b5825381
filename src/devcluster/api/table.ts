// The table `kubectl get` prints: columns and cells per resource, those of the real API server.
import { ageOf, type Column } from './age.ts';
import type { ApiObject, Json } from './objects.ts';
import type { ResourceType } from './resources.ts';
import { CELLS } from './table-cells.ts';

export type IncludeObject = 'None' | 'Metadata' | 'Object';

const NAME: Column = { name: 'Name', priority: 0, type: 'string', cell: (o) => o.metadata.name };
const AGE: Column = {
  name: 'Age',
  priority: 0,
  type: 'string',
  cell: (o, now) => ageOf(o.metadata.creationTimestamp, now),
};

const cache = new Map<ResourceType, readonly Column[]>();

function columns(type: ResourceType): readonly Column[] {
  let found = cache.get(type);
  if (found === undefined) {
    found = (CELLS[type.storage] ?? []).map((c): Column => ({ priority: 0, type: 'string', ...c }));
    if (type.storage !== 'events') {
      const shown = found.filter((c) => c.priority === 0);
      const wide = found.filter((c) => c.priority === 1);
      const named = found[0]?.name === 'Name' ? [] : [NAME];
      found = shown.some((c) => c.name === 'Age') ? [...named, ...found] : [...named, ...shown, AGE, ...wide];
    }
    cache.set(type, found);
  }
  return found;
}

export const columnsOf = (type: ResourceType): readonly Json[] =>
  columns(type).map((c) => ({
    name: c.name,
    type: c.type,
    format: c.name === 'Name' ? 'name' : '',
    description: c.name,
    priority: c.priority,
  }));

export function tableRow(type: ResourceType, object: ApiObject, include: IncludeObject, nowMs: number): Json {
  const shown =
    include === 'Object'
      ? object
      : { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', metadata: object.metadata };
  return {
    cells: columns(type).map((c) => c.cell(object, nowMs)),
    ...(include === 'None' ? { object: null } : { object: shown }),
  };
}
