// ConfigMaps and Secrets that stand in files beside the pods, for nodes without an API server. What is in them is never
// logged.
import type { ConfigMap, Secret } from '../core/node.ts';
import { configMapKey } from '../core/names.ts';
import { Findings, key, type FieldError } from '../core/validation/field-error.ts';
import { checkObjectMeta } from '../core/validation/object-meta.ts';
import { readConfigMap, readSecret } from '../core/validation/pod-shape.ts';

export type LocalObject =
  | { readonly kind: 'ConfigMap'; readonly object: ConfigMap }
  | { readonly kind: 'Secret'; readonly object: Secret };

export type ReadObject = {
  readonly object?: LocalObject;
  readonly errors: readonly FieldError[];
  readonly unknownFields: readonly string[];
};

const MAX_BYTES = 1024 * 1024;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export function readLocalObject(raw: unknown, kind: 'ConfigMap' | 'Secret'): ReadObject {
  const read = kind === 'ConfigMap' ? readConfigMap(raw) : readSecret(raw);
  if (read.object === undefined) return { errors: read.errors, unknownFields: read.unknownFields };
  const f = new Findings();
  const meta = (read.object.metadata as ConfigMap['metadata'] | undefined) ?? { name: '' };
  const metadata = { ...meta, namespace: meta.namespace || 'default' };
  checkObjectMeta(f, metadata);
  const object: LocalObject =
    kind === 'ConfigMap'
      ? { kind, object: { ...(read.object as ConfigMap), metadata } }
      : { kind, object: withStringData({ ...(read.object as Secret), metadata }) };
  const binary = object.kind === 'ConfigMap' ? object.object.binaryData : object.object.data;
  const text = object.kind === 'ConfigMap' ? object.object.data : undefined;
  checkData(f, text ?? {}, 'data', false);
  checkData(f, binary ?? {}, object.kind === 'ConfigMap' ? 'binaryData' : 'data', true);
  for (const name of Object.keys(text ?? {}))
    if (binary !== undefined && Object.hasOwn(binary, name)) f.duplicate(key('binaryData', name), name);
  const errors = [...read.errors, ...f.list];
  return { ...(errors.length === 0 ? { object } : {}), errors, unknownFields: read.unknownFields };
}

const withStringData = (secret: Secret): Secret => {
  const { stringData, ...rest } = secret;
  const plain = Object.entries(stringData ?? {}).map(([k, v]) => [k, Buffer.from(v).toString('base64')] as const);
  return { type: 'Opaque', ...rest, data: { ...secret.data, ...Object.fromEntries(plain) } };
};

function checkData(f: Findings, data: Readonly<Record<string, string>>, field: string, base64: boolean): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(data)) {
    f.reasons(key(field, name), name, configMapKey(name));
    bytes += value.length;
    // The value itself is not shown: it may be a password.
    if (base64 && !BASE64.test(value.replace(/\s/g, ''))) f.invalid(key(field, name), '<hidden>', 'must be base64');
  }
  if (bytes > MAX_BYTES * (base64 ? 4 / 3 : 1)) f.tooLong(field, MAX_BYTES);
}

const idOf = (namespace: string, name: string): string => `${namespace}/${name}`;

/** Read by whoever resolves references of pods; written by the file source. */
export class LocalObjectStore {
  #configMaps: ReadonlyMap<string, ConfigMap> = new Map();
  #secrets: ReadonlyMap<string, Secret> = new Map();
  readonly #listeners = new Set<(changed: readonly string[]) => void>();

  configMap(namespace: string, name: string): ConfigMap | undefined {
    return this.#configMaps.get(idOf(namespace, name));
  }

  secret(namespace: string, name: string): Secret | undefined {
    return this.#secrets.get(idOf(namespace, name));
  }

  /** Calls back with `ConfigMap namespace/name` of what was added, changed or removed. Returns how to stop it. */
  onChange(listener: (changed: readonly string[]) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The same, object by object. */
  onObjectChange(listener: (kind: 'configMap' | 'secret', namespace: string, name: string) => void): void {
    this.onChange((changed) => {
      for (const entry of changed) {
        const [kind = '', namespace = '', name = ''] = entry.split(/[ /]/);
        listener(kind === 'Secret' ? 'secret' : 'configMap', namespace, name);
      }
    });
  }

  /** Replaces everything. */
  set(configMaps: readonly ConfigMap[], secrets: readonly Secret[]): void {
    const maps = byId(configMaps);
    const locks = byId(secrets);
    const changed = [
      ...differing(this.#configMaps, maps).map((id) => `ConfigMap ${id}`),
      ...differing(this.#secrets, locks).map((id) => `Secret ${id}`),
    ];
    this.#configMaps = maps;
    this.#secrets = locks;
    if (changed.length > 0) for (const listener of this.#listeners) listener(changed);
  }
}

type Identified = ConfigMap | Secret;

const byId = <T extends Identified>(objects: readonly T[]): ReadonlyMap<string, T> =>
  new Map(objects.map((o) => [idOf(o.metadata.namespace ?? 'default', o.metadata.name), o]));

const differing = <T extends Identified>(before: ReadonlyMap<string, T>, after: ReadonlyMap<string, T>): string[] =>
  [...new Set([...before.keys(), ...after.keys()])].filter(
    (id) => JSON.stringify(before.get(id)) !== JSON.stringify(after.get(id)),
  );
