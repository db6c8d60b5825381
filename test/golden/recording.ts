// Reads the recordings: snake_case JSON with int64 as text and enums by name becomes the messages of cri/gen.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as cri from '../../src/cri/gen/cri.ts';
import type { Pod } from '../../src/core/pod.ts';
import { decode, encode, type FieldSpec, type MessageSpec, type MessageType } from '../../src/lib/proto/codec.ts';

export type RecordedCall = {
  readonly call: string;
  readonly request: Readonly<Record<string, unknown>>;
  readonly response?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly msg: string };
};
export type RecordedEvent = {
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly fieldPath?: string;
};
export type Recording = {
  readonly scenario: string;
  readonly podIp: string | null;
  readonly pods: { readonly start: Pod; readonly [stage: string]: Pod };
  readonly calls: readonly RecordedCall[];
  readonly events: readonly RecordedEvent[];
};

const FOLDER = join(import.meta.dirname, 'scenarios');

export const scenarioNames = (): readonly string[] => readdirSync(FOLDER).map((file) => file.replace(/\.json$/, ''));

export const recording = (name: string): Recording =>
  JSON.parse(readFileSync(join(FOLDER, `${name}.json`), 'utf8')) as Recording;

const ENUMS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  network: cri.NamespaceMode,
  pid: cri.NamespaceMode,
  ipc: cri.NamespaceMode,
  mode: cri.NamespaceMode,
  profileType: cri.ProfileType,
  protocol: cri.Protocol,
  propagation: cri.MountPropagation,
  supplementalGroupsPolicy: cri.SupplementalGroupsPolicy,
};

const snake = (name: string): string => name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`);

function scalar(field: FieldSpec, value: unknown): unknown {
  if (field.type === 'enum') return ENUMS[field.name]?.[String(value)] ?? value;
  if (field.type === 'bytes') return Buffer.from(String(value));
  if (field.type === 'int64' || field.type === 'uint64') return Number(value);
  return value;
}

function message(spec: MessageSpec, json: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  const known = new Set<string>();
  for (const field of spec.fields()) {
    const key = [snake(field.name), field.name].find((name) => name in json);
    if (key === undefined) continue;
    known.add(key);
    const convert = (value: unknown): unknown =>
      typeof field.type === 'object'
        ? message(field.type, value as Record<string, unknown>)
        : field.type === 'map'
          ? value
          : scalar(field, value);
    out[field.name] = field.repeated === true ? (json[key] as unknown[]).map(convert) : convert(json[key]);
  }
  for (const key of Object.keys(json)) if (!known.has(key)) throw new Error(`${spec.name} has no field for ${key}`);
  return out;
}

const requestType = (call: string): MessageType<unknown> =>
  (cri as unknown as Record<string, MessageType<unknown>>)[`${call}Request`] as MessageType<unknown>;

/** A request as the wire would carry it: what is left out and what is zero are the same. */
export const onTheWire = (call: string, request: unknown): unknown => {
  const type = requestType(call);
  return decode(type, encode(type, request));
};

export const recordedRequest = (call: RecordedCall): unknown =>
  onTheWire(call.call, message(requestType(call.call).spec, call.request));
