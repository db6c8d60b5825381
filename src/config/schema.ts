// The small language in which the KubeletConfiguration is described once (config-fields.ts). Decoding, defaults, printing
// and the TypeScript type of the configuration all come from that one description.
//
// `pointer` tells "absent" from "zero": an absent pointer takes its default and a zero is kept and printed; without it a
// zero value counts as absent, both ways, as in the API machinery's encoding.

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };
export type JsonObject = { readonly [key: string]: Json };

export type LeafKind =
  | 'bool'
  | 'int32'
  | 'int64'
  | 'uint32'
  | 'float'
  | 'string'
  | 'duration'
  | 'quantity'
  | 'strings'
  | 'int32s'
  | 'stringMap'
  | 'boolMap'
  | 'stringsMap';

/** `T` is only a type: what the field holds inside the process. */
export type Leaf<T = unknown, K extends LeafKind = LeafKind> = {
  readonly kind: K;
  readonly pointer: boolean;
  readonly fallback: unknown;
  /** Printed even when zero although it is no pointer. */
  readonly always: boolean;
  readonly type?: T;
};
export type ObjectField<S extends Fields = Fields, N extends boolean = boolean> = {
  readonly kind: 'object';
  readonly fields: S;
  /** Absent stays absent, instead of becoming an object of defaults. */
  readonly nullable: N;
  readonly omitEmpty: boolean;
};
export type ListField<S extends Fields = Fields> = { readonly kind: 'objects'; readonly fields: S };
export type Field = Leaf | ObjectField | ListField;
export type Fields = { readonly [name: string]: Field };

/** The in-process type of a described object: durations are milliseconds and say so in their name. */
export type Shape<S extends Fields> = {
  readonly [K in keyof S & string as S[K] extends { kind: 'duration' } ? `${K}Ms` : K]: ValueOf<S[K]>;
};
type ValueOf<F> =
  F extends ListField<infer S>
    ? readonly Shape<S>[]
    : F extends ObjectField<infer S, infer N>
      ? N extends true
        ? Shape<S> | undefined
        : Shape<S>
      : F extends Leaf<infer T>
        ? T
        : never;

const leaf = <T, K extends LeafKind>(kind: K, pointer: boolean, fallback: unknown, always = false): Leaf<T, K> => ({
  kind,
  pointer,
  fallback,
  always,
});

export const bool = (fallback = false): Leaf<boolean, 'bool'> => leaf('bool', false, fallback);
export const boolPtr = (fallback: boolean): Leaf<boolean, 'bool'> => leaf('bool', true, fallback);
export const optionalBool = (): Leaf<boolean | undefined, 'bool'> => leaf('bool', true, undefined);
export const int32 = (fallback = 0, always = false): Leaf<number, 'int32'> => leaf('int32', false, fallback, always);
export const int32Ptr = (fallback: number): Leaf<number, 'int32'> => leaf('int32', true, fallback);
export const optionalInt32 = (): Leaf<number | undefined, 'int32'> => leaf('int32', true, undefined);
export const int64 = (fallback = 0, always = false): Leaf<number, 'int64'> => leaf('int64', false, fallback, always);
export const int64Ptr = (fallback: number): Leaf<number, 'int64'> => leaf('int64', true, fallback);
export const optionalInt64 = (): Leaf<number | undefined, 'int64'> => leaf('int64', true, undefined);
export const uint32 = (always = false): Leaf<number, 'uint32'> => leaf('uint32', false, 0, always);
export const floatPtr = (fallback: number): Leaf<number, 'float'> => leaf('float', true, fallback);
export const text = <T extends string = string>(fallback = '', always = false): Leaf<T, 'string'> =>
  leaf('string', false, fallback, always);
export const textPtr = (fallback: string): Leaf<string, 'string'> => leaf('string', true, fallback);
export const optionalText = (): Leaf<string | undefined, 'string'> => leaf('string', true, undefined);
/** `fallback` in milliseconds. A duration prints even when zero: it is a struct on the wire. */
export const duration = (fallback = 0): Leaf<number, 'duration'> => leaf('duration', false, fallback, true);
export const durationPtr = (fallback: number): Leaf<number, 'duration'> => leaf('duration', true, fallback);
export const optionalDuration = (): Leaf<number | undefined, 'duration'> => leaf('duration', true, undefined);
export const quantityText = (): Leaf<string, 'quantity'> => leaf('quantity', false, '0', true);
export const strings = (fallback: readonly string[] = []): Leaf<readonly string[], 'strings'> =>
  leaf('strings', false, fallback);
export const int32s = (): Leaf<readonly number[], 'int32s'> => leaf('int32s', false, []);
export const stringMap = (): Leaf<Readonly<Record<string, string>>, 'stringMap'> => leaf('stringMap', false, {});
export const boolMap = (): Leaf<Readonly<Record<string, boolean>>, 'boolMap'> => leaf('boolMap', false, {});
export const stringsMap = (): Leaf<Readonly<Record<string, readonly string[]>>, 'stringsMap'> =>
  leaf('stringsMap', false, {});
export const object = <const S extends Fields>(fields: S): ObjectField<S, false> => ({
  kind: 'object',
  fields,
  nullable: false,
  omitEmpty: false,
});
export const optionalObject = <const S extends Fields>(fields: S): ObjectField<S, true> => ({
  kind: 'object',
  fields,
  nullable: true,
  omitEmpty: true,
});
export const objects = <const S extends Fields>(fields: S): ListField<S> => ({ kind: 'objects', fields });

/** The key a field has in the process, given its name on the wire. */
export const internalKey = (name: string, field: Field): string => (field.kind === 'duration' ? `${name}Ms` : name);

/** A field by its dotted wire name, or undefined. */
export function fieldAt(fields: Fields, path: string): Field | undefined {
  let current: Field | undefined = { kind: 'object', fields, nullable: false, omitEmpty: false };
  for (const part of path.split('.')) current = current?.kind === 'object' ? current.fields[part] : undefined;
  return current;
}
