// Reads a YAML or JSON file into plain JSON together with the place of every field, so that a complaint can name the line
// and column. Repeated keys are collected; aliases, depth and size are bounded.
import { readFile } from 'node:fs/promises';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import { define } from './decode.ts';
import type { Document as Doc } from 'yaml';
import type { Json, JsonObject } from './schema.ts';

export type Place = { readonly line: number; readonly col: number };
export type Document = {
  readonly value: JsonObject;
  readonly places: ReadonlyMap<string, Place>;
  readonly duplicates: readonly { readonly path: string; readonly place: Place }[];
};

const MAX_BYTES = 8 * 1024 * 1024;
const MAX_NODES = 200_000;
const MAX_DEPTH = 100;

export async function readText(path: string): Promise<string> {
  let text: Buffer;
  try {
    text = await readFile(path);
  } catch (err) {
    const code = errnoOf(err);
    const why = code === 'ENOENT' ? 'no such file or directory' : code === 'EISDIR' ? 'is a directory' : messageOf(err);
    throw new KubeletError('invalid', `open ${path}: ${why}`, { cause: err });
  }
  if (text.length > MAX_BYTES) throw new KubeletError('invalid', `${path} is larger than ${MAX_BYTES} bytes`);
  return text.toString('utf8');
}

type Yaml = typeof import('yaml');

/** The parser is loaded only when there is a file to parse: without one the kubelet starts faster. */
export const loadYaml = (): Promise<Yaml> => import('yaml');

export function parseDocument(yaml: Yaml, path: string, text: string): Document {
  const lines = new yaml.LineCounter();
  try {
    const all = yaml.parseAllDocuments(text, {
      version: '1.1',
      lineCounter: lines,
      uniqueKeys: false,
      // The YAML of Go's decoder: no base-60 numbers, no timestamps.
      customTags: (tags) =>
        tags.filter((t) => !(typeof t === 'object' && (t.format === 'TIME' || t.tag.endsWith('timestamp')))),
    });
    const doc = all[0];
    if (doc === undefined) return { value: {}, places: new Map(), duplicates: [] };
    const broken = doc.errors[0];
    if (broken !== undefined) {
      const at = lines.linePos(broken.pos[0]);
      const why = broken.message.split('\n', 1)[0]?.replace(/ at line \d+, column \d+:?$/, '') ?? '';
      throw new KubeletError('invalid', `${path}:${at.line}:${at.col}: ${why}`);
    }
    const reader = new Reader(yaml, doc, path, lines);
    return reader.root();
  } catch (err) {
    if (err instanceof RangeError) throw new KubeletError('invalid', `${path}: nested too deeply`, { cause: err });
    throw err instanceof KubeletError ? err : new KubeletError('invalid', `${path}: ${messageOf(err)}`, { cause: err });
  }
}

class Reader {
  readonly #yaml: Yaml;
  readonly #doc: Doc;
  readonly #path: string;
  readonly #lines: InstanceType<Yaml['LineCounter']>;
  readonly #places = new Map<string, Place>();
  readonly #duplicates: { path: string; place: Place }[] = [];
  #nodes = 0;

  constructor(yaml: Yaml, doc: Doc, path: string, lines: InstanceType<Yaml['LineCounter']>) {
    this.#yaml = yaml;
    this.#doc = doc;
    this.#path = path;
    this.#lines = lines;
  }

  root(): Document {
    const value = this.#read(this.#doc.contents, '', 0);
    if (typeof value !== 'object' || value === null || Array.isArray(value))
      throw new KubeletError('invalid', `${this.#path}: expected a map of fields at the top`);
    return { value: value as JsonObject, places: this.#places, duplicates: this.#duplicates };
  }

  #read(node: unknown, at: string, depth: number): Json {
    if (++this.#nodes > MAX_NODES) throw new KubeletError('invalid', `${this.#path}: too many values`);
    if (depth > MAX_DEPTH) throw new KubeletError('invalid', `${this.#path}: nested too deeply`);
    const yaml = this.#yaml;
    if (yaml.isAlias(node)) {
      const target = node.resolve(this.#doc);
      // Not quoted: a token may begin with an asterisk.
      if (target === undefined) throw new KubeletError('invalid', `${this.#path}: ${at}: unresolved alias`);
      return this.#read(target, at, depth + 1);
    }
    if (yaml.isMap(node)) return this.#map(node.items, at, depth);
    if (yaml.isSeq(node))
      return node.items.map((item, i) => {
        this.#mark(item, `${at}[${i}]`);
        return this.#read(item, `${at}[${i}]`, depth + 1);
      });
    if (yaml.isScalar(node)) return this.#scalar(node.value);
    return null;
  }

  #map(items: readonly { key: unknown; value: unknown }[], at: string, depth: number): JsonObject {
    const out: Record<string, Json> = {};
    const merged: JsonObject[] = [];
    for (const { key, value } of items) {
      const name = this.#key(key);
      if (name === '<<') {
        const inner = this.#read(value, at, depth + 1);
        for (const one of Array.isArray(inner) ? inner : [inner])
          if (typeof one === 'object' && one !== null) merged.push(one as JsonObject);
        continue;
      }
      const path = at === '' ? name : `${at}.${name}`;
      const place = this.#mark(key, path);
      if (Object.hasOwn(out, name)) this.#duplicates.push({ path, place });
      define(out, name, this.#read(value, path, depth + 1));
    }
    for (const source of merged)
      for (const [name, value] of Object.entries(source)) if (!Object.hasOwn(out, name)) define(out, name, value);
    return out;
  }

  #key(key: unknown): string {
    if (!this.#yaml.isScalar(key)) throw new KubeletError('invalid', `${this.#path}: a key that is not plain text`);
    return key.source ?? String(key.value);
  }

  #scalar(value: unknown): Json {
    if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    if (typeof value === 'bigint') return Number(value);
    return typeof value === 'number' ? String(value) : null;
  }

  #mark(node: unknown, path: string): Place {
    const range = typeof node === 'object' && node !== null && 'range' in node ? node.range : undefined;
    const offset: unknown = Array.isArray(range) ? range[0] : 0;
    const place = this.#lines.linePos(typeof offset === 'number' ? offset : 0);
    if (!this.#places.has(path)) this.#places.set(path, place);
    return place;
  }
}
