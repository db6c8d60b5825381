// Between the wire form of the configuration (v1beta1 JSON) and the form the process uses: defaults on the way in, the
// encoding rules of the API machinery on the way out.
import { durationMs, formatDurationMs } from '../core/duration.ts';
import { CONFIG_API_VERSION, CONFIG_FIELDS, CONFIG_KIND, type KubeletConfig } from './config-fields.ts';
import { define } from './decode.ts';
import { FeatureGates } from './feature-gates.ts';
import { internalKey, type Field, type Fields, type Json, type JsonObject, type Leaf } from './schema.ts';

/** Wire values with every default filled in. `wire` has been through decodeFields. */
export function completeConfig(wire: JsonObject): KubeletConfig {
  const config = completeObject(CONFIG_FIELDS, wire) as KubeletConfig;
  const gates = FeatureGates.fromKnown(config.featureGates);
  const set = <K extends keyof KubeletConfig>(key: K, value: KubeletConfig[K]): void => define(config, key, value);
  if (
    durationMs(textOf(wire['nodeStatusReportFrequency'])) === 0 &&
    durationMs(textOf(wire['nodeStatusUpdateFrequency'])) !== 0
  )
    set('nodeStatusReportFrequencyMs', config.nodeStatusUpdateFrequencyMs);
  if (wire['serializeImagePulls'] === undefined && (config.maxParallelImagePulls ?? 0) >= 2)
    set('serializeImagePulls', false);
  if (config.podPidsLimit < 0) set('podPidsLimit', -1);
  if (config.imagePullCredentialsVerificationPolicy === '' && gates.enabled('KubeletEnsureSecretPulledImages'))
    set('imagePullCredentialsVerificationPolicy', 'NeverVerifyPreloadedImages');
  if (config.crashLoopBackOff.maxContainerRestartPeriodMs === undefined && gates.enabled('KubeletCrashLoopBackOffMax'))
    set('crashLoopBackOff', { maxContainerRestartPeriodMs: 300_000 });
  return config;
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '');

function completeObject(fields: Fields, wire: JsonObject): object {
  const out = {};
  for (const [name, field] of Object.entries(fields))
    define(out, internalKey(name, field), completeField(field, wire[name]));
  return out;
}

function completeField(field: Field, wire: Json | undefined): unknown {
  if (field.kind === 'object') {
    if (wire === undefined) return field.nullable ? undefined : completeObject(field.fields, {});
    return completeObject(field.fields, wire as JsonObject);
  }
  if (field.kind === 'objects')
    return ((wire ?? []) as readonly JsonObject[]).map((item) => completeObject(field.fields, item));
  if (wire === undefined) return field.fallback;
  const value = field.kind === 'duration' ? durationMs(textOf(wire)) : wire;
  return !field.pointer && isZero(value) && !isList(field) ? field.fallback : value;
}

/** An empty list that is written down stays empty. */
const isList = (field: Leaf): boolean => field.kind === 'strings' || field.kind === 'int32s';

const isZero = (value: unknown): boolean =>
  value === 0 ||
  value === '' ||
  value === false ||
  (typeof value === 'object' && value !== null && Object.keys(value).length === 0);

/** The v1beta1 form, as `/configz` serves it. Headers that may carry credentials are NOT masked here: see mask.ts. */
export function toVersionedJson(config: KubeletConfig): JsonObject {
  return { kind: CONFIG_KIND, apiVersion: CONFIG_API_VERSION, ...printObject(CONFIG_FIELDS, config) };
}

function printObject(fields: Fields, source: object): Record<string, Json> {
  const out: Record<string, Json> = {};
  for (const [name, field] of Object.entries(fields)) {
    const value = (source as Readonly<Record<string, unknown>>)[internalKey(name, field)];
    if (value === undefined) continue;
    if (field.kind === 'object') define(out, name, printObject(field.fields, value as object));
    else if (field.kind === 'objects') {
      const items = value as readonly object[];
      if (items.length > 0)
        define(
          out,
          name,
          items.map((item) => printObject(field.fields, item)),
        );
    } else if (field.pointer || field.always || !isZero(value)) define(out, name, printLeaf(field, value));
  }
  return out;
}

function printLeaf(field: Leaf, value: unknown): Json {
  if (field.kind === 'duration') return formatDurationMs(value as number);
  if (field.kind === 'stringMap' || field.kind === 'boolMap' || field.kind === 'stringsMap')
    return sortedMap(value as JsonObject);
  return value as Json;
}

const sortedMap = (map: JsonObject): JsonObject => {
  const out = {};
  for (const key of Object.keys(map).sort()) define(out, key, map[key]);
  return out;
};

/** A copy of `config` with the field of that dotted wire name set to `value`, in its in-process form. */
export function withField(config: KubeletConfig, path: string, value: unknown): KubeletConfig {
  return replaced(CONFIG_FIELDS, config, path.split('.'), value) as KubeletConfig;
}

/** The in-process value of the field of that dotted wire name. */
export function readField(config: KubeletConfig, path: string): unknown {
  let fields: Fields = CONFIG_FIELDS;
  let current: unknown = config;
  for (const name of path.split('.')) {
    const field = fields[name];
    if (field === undefined) throw new Error(`no configuration field ${path}`);
    current = (current as Readonly<Record<string, unknown>> | undefined)?.[internalKey(name, field)];
    fields = field.kind === 'object' ? field.fields : {};
  }
  return current;
}

function replaced(fields: Fields, source: object, path: readonly string[], value: unknown): object {
  const [name = '', ...rest] = path;
  const field = fields[name];
  if (field === undefined) throw new Error(`no configuration field ${path.join('.')}`);
  const key = internalKey(name, field);
  if (rest.length === 0) return { ...source, [key]: value };
  if (field.kind !== 'object') throw new Error(`configuration field ${name} has no parts`);
  const inner = (source as Readonly<Record<string, object | undefined>>)[key] ?? completeObject(field.fields, {});
  return { ...source, [key]: replaced(field.fields, inner, rest, value) };
}
