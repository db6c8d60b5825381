// The tables of fields as OpenAPI v3 schemas: what `kubectl explain` shows and `kubectl apply` merges lists with. Names and
// types only; descriptions are left to the documentation.
import { mergeSchemaOf, type MergeSchema } from '../merge-schema.ts';
import type { Json } from '../objects.ts';
import { apiVersionOf, RESOURCES, type ResourceType } from '../resources.ts';
import { jsonFields, messageOfKind, type Element, type Field, type Scalar } from './messages.ts';

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1';
const QUANTITY = 'io.k8s.apimachinery.pkg.api.resource.Quantity';
const INT_OR_STRING = 'io.k8s.apimachinery.pkg.util.intstr.IntOrString';
const LEAVES: Readonly<Record<string, Json>> = {
  [QUANTITY]: { oneOf: [{ type: 'string' }, { type: 'number' }] },
  [INT_OR_STRING]: { format: 'int-or-string', oneOf: [{ type: 'integer' }, { type: 'string' }] },
  [`${META}.Time`]: { type: 'string', format: 'date-time' },
  [`${META}.MicroTime`]: { type: 'string', format: 'date-time' },
};

/** `io.k8s.api.core.v1.Pod` of `Pod`, `io.k8s.api.apps.v1.Deployment` of `apps.Deployment`. */
function schemaName(message: string): string {
  const [group = '', name] = message.split('.');
  if (name === undefined) return `io.k8s.api.core.v1.${group}`;
  return group === 'meta' ? `${META}.${name}` : `io.k8s.api.${group}.v1.${name}`;
}

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

const SCALARS: Readonly<Record<Scalar, Json>> = {
  string: { type: 'string' },
  integer: { type: 'integer' },
  bool: { type: 'boolean' },
  bytes: { type: 'string', format: 'byte' },
  double: { type: 'number', format: 'double' },
  quantity: ref(QUANTITY),
  time: ref(`${META}.Time`),
  microTime: ref(`${META}.MicroTime`),
  intOrString: ref(INT_OR_STRING),
  json: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};

function elementSchema(element: Element): Json {
  if (element.kind === 'message') return { allOf: [ref(schemaName(element.message))] };
  if (element.kind === 'wrapped') return { type: 'array', items: elementSchema(element.of) };
  return SCALARS[element.kind];
}

function fieldSchema({ shape, element }: Field, merge: MergeSchema | undefined): Json {
  const inner = elementSchema(element);
  const keep = merge?.retainKeys === true ? ['retainKeys'] : [];
  const merged = merge?.key !== undefined || merge?.set === true ? ['merge'] : [];
  const strategy = [...merged, ...keep].join(',');
  return {
    ...(shape === 'list'
      ? { type: 'array', items: inner }
      : shape === 'map'
        ? { type: 'object', additionalProperties: inner }
        : inner),
    ...(merge?.key === undefined ? {} : { 'x-kubernetes-patch-merge-key': merge.key }),
    ...(strategy === '' ? {} : { 'x-kubernetes-patch-strategy': strategy }),
  };
}

/** How the fields of each message are merged, gathered from the kinds that reach it. */
const mergeOfMessage = new Map<string, MergeSchema>();

function gatherMerge(message: string, merge: MergeSchema): void {
  if (mergeOfMessage.has(message)) return;
  mergeOfMessage.set(message, merge);
  for (const { name, element } of jsonFields(message)) {
    const inner = merge.fields?.[name];
    if (inner !== undefined && element.kind === 'message') gatherMerge(element.message, inner);
  }
}

const kindMessage = (type: ResourceType): string | undefined => messageOfKind(apiVersionOf(type), type.kind);

function messageSchema(message: string): Json {
  const fields = jsonFields(message);
  const merge = mergeOfMessage.get(message)?.fields;
  const required = fields.filter((f) => f.always && !f.pointer).map((f) => f.name);
  return {
    type: 'object',
    properties: Object.fromEntries(fields.map((f) => [f.name, fieldSchema(f, merge?.[f.name])])),
    ...(required.length === 0 ? {} : { required }),
  };
}

const TYPE_META = { apiVersion: { type: 'string' }, kind: { type: 'string' } };

/** Kinds whose fields are not in the tables are objects of any content. */
function kindSchema(type: ResourceType): Json {
  const message = kindMessage(type);
  const body: Json =
    message === undefined
      ? {
          type: 'object',
          properties: { metadata: { allOf: [ref(`${META}.ObjectMeta`)] } },
          'x-kubernetes-preserve-unknown-fields': true,
        }
      : messageSchema(message);
  return {
    ...body,
    properties: { ...TYPE_META, ...(body['properties'] as Json) },
    'x-kubernetes-group-version-kind': [{ group: type.group, version: type.version, kind: type.kind }],
  };
}

export const kindSchemaName = (type: ResourceType): string =>
  schemaName(kindMessage(type) ?? `${type.group.split('.')[0] ?? ''}.${type.kind}`);

/** Everything the kinds of one group and version need. */
export function schemasOf(group: string, version: string): Json {
  for (const type of RESOURCES) {
    const message = kindMessage(type);
    if (message !== undefined) gatherMerge(message, mergeSchemaOf(type.kind));
  }
  const result: Json = { ...LEAVES };
  const visit = (message: string): void => {
    const name = schemaName(message);
    if (result[name] === undefined) result[name] = messageSchema(message);
    else return;
    visitFields(message);
  };
  const visitFields = (message: string): void => {
    for (const { element } of jsonFields(message)) if (element.kind === 'message') visit(element.message);
  };
  for (const type of RESOURCES.filter((r) => r.group === group && r.version === version)) {
    result[kindSchemaName(type)] = kindSchema(type);
    const message = kindMessage(type);
    if (message === undefined) visit('meta.ObjectMeta');
    else visitFields(message);
  }
  return result;
}
