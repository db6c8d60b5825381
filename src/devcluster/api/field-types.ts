// Values of another type than their field has: a number where a string must be, text for a count. Pure.
import { isJson, type Json } from './objects.ts';
import { jsonFields, messageOfKind, type Element, type Field } from './schema/messages.ts';

const GO_TYPES = {
  string: 'string',
  integer: 'int32',
  bool: 'bool',
  bytes: '[]uint8',
  double: 'float64',
  quantity: 'resource.Quantity',
  time: 'v1.Time',
  microTime: 'v1.MicroTime',
  intOrString: 'intstr.IntOrString',
  json: 'json.RawMessage',
} as const;

const shortName = (message: string): string => message.slice(message.lastIndexOf('.') + 1);

function goType(element: Element): string {
  if (element.kind === 'message') return `v1.${shortName(element.message)}`;
  return element.kind === 'wrapped' ? `[]${goType(element.of)}` : GO_TYPES[element.kind];
}

function wordFor(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return Number.isInteger(value) ? 'number' : `number ${value}`;
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

/** What is wrong with the first value that is not of its field's type, in the words of the real server. */
export function wrongType(body: Json, apiVersion: string, kind: string): string | undefined {
  const message = messageOfKind(apiVersion, kind);
  if (message === undefined) return undefined;
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = body;
  return inMessage(rest, message, '');
}

function inMessage(value: Json, message: string, path: string): string | undefined {
  for (const field of jsonFields(message)) {
    const inner = value[field.name];
    if (inner === undefined || inner === null) continue;
    const at = path === '' ? field.name : `${path}.${field.name}`;
    const found = inField(inner, field, `${shortName(message)}.${at}`, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

function inField(value: unknown, { shape, element }: Field, owner: string, path: string): string | undefined {
  if (shape === 'one') return inElement(value, element, owner, path);
  if (shape === 'list' ? !Array.isArray(value) : !isJson(value))
    return mismatch(value, owner, shape === 'list' ? `[]${goType(element)}` : `map[string]${goType(element)}`);
  for (const item of Object.values(value as Json)) {
    const found = item === null ? undefined : inElement(item, element, owner, path);
    if (found !== undefined) return found;
  }
  return undefined;
}

function inElement(value: unknown, element: Element, owner: string, path: string): string | undefined {
  if (element.kind === 'message' && isJson(value)) return inMessage(value, element.message, path);
  if (element.kind === 'bytes' && typeof value === 'string') return base64Problem(value);
  return fits(value, element) ? undefined : mismatch(value, owner, goType(element));
}

function fits(value: unknown, element: Element): boolean {
  switch (element.kind) {
    case 'json':
      return true;
    case 'message':
      return false;
    case 'wrapped':
      return Array.isArray(value) && value.every((item) => fits(item, element.of));
    case 'integer':
      return Number.isInteger(value);
    case 'double':
      return typeof value === 'number';
    case 'bool':
      return typeof value === 'boolean';
    case 'quantity':
      return typeof value === 'string' || typeof value === 'number';
    case 'intOrString':
      return typeof value === 'string' || Number.isInteger(value);
    case 'string':
    case 'bytes':
    case 'time':
    case 'microTime':
      return typeof value === 'string';
    default:
      return element satisfies never;
  }
}

const mismatch = (value: unknown, owner: string, type: string): string =>
  `json: cannot unmarshal ${wordFor(value)} into Go struct field ${owner} of type ${type}`;

function base64Problem(text: string): string | undefined {
  const plain = text.replaceAll(/[\r\n]/g, '');
  const strange = plain.search(/[^A-Za-z0-9+/=]|=[^=]/);
  if (strange >= 0) return `illegal base64 data at input byte ${strange}`;
  return /={3,}$/.test(plain) || plain.length % 4 !== 0
    ? `illegal base64 data at input byte ${plain.length - (plain.length % 4)}`
    : undefined;
}
