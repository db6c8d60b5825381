// One call as a line of JSON, in the form of the protobuf definition: field names with underscores, enums by name,
// zero values left out, secrets hidden.
import { AccessModeType, NodeRpcType, VolumeUsageUnit } from '../../lib/csi-api/gen/csi.ts';
import type { FieldSpec, MessageSpec } from '../../lib/proto/codec.ts';

export type RecordedCall = {
  readonly atMs: number;
  readonly tookMs: number;
  readonly call: string;
  readonly request: unknown;
  readonly response?: unknown;
  readonly error?: { readonly code: string; readonly message: string };
};

const ENUMS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  'csi.v1.AccessMode.mode': AccessModeType,
  'csi.v1.VolumeUsage.unit': VolumeUsageUnit,
  'csi.v1.NodeRpc.type': NodeRpcType,
};

const underscored = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

/** A message as plain JSON. */
export function readable(spec: MessageSpec, message: unknown): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const field of spec.fields()) {
    const value = (message as Record<string, unknown>)[field.name];
    const shown = fieldValue(spec, field, value);
    if (shown !== undefined) out[underscored(field.name)] = shown;
  }
  return out;
}

function fieldValue(spec: MessageSpec, field: FieldSpec, value: unknown): unknown {
  if (value === undefined || value === null || value === 0 || value === '' || value === false) return undefined;
  const { type } = field;
  if (Array.isArray(value)) {
    if (value.length === 0) return undefined;
    return typeof type === 'string' ? value : value.map((item) => readable(type, item));
  }
  if (type === 'map') return mapValue(field.name, value as Record<string, string>);
  if (typeof type !== 'string') return readable(type, value);
  if (type !== 'enum') return value;
  const names = ENUMS[`${spec.name}.${field.name}`] ?? {};
  return Object.entries(names).find(([, number]) => number === value)?.[0] ?? value;
}

function mapValue(name: string, map: Record<string, string>): Record<string, string> | undefined {
  const entries = Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
  if (entries.length === 0) return undefined;
  return Object.fromEntries(name === 'secrets' ? entries.map(([key]) => [key, '***']) : entries);
}
