// Loads the KubeletConfiguration: the file of --config, the drop-ins of --config-dir, and the flags over both.
import { readdir } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import {
  CONFIG_API_VERSION,
  CONFIG_FIELDS,
  CONFIG_KIND,
  DEFAULT_EVICTION_HARD,
  PATH_FIELDS,
  type KubeletConfig,
} from './config-fields.ts';
import { completeConfig, toVersionedJson, withField } from './convert.ts';
import { decodeFields, type Problem } from './decode.ts';
import { loadYaml, parseDocument, readText, type Document } from './documents.ts';
import { FLAGS } from './flags.ts';
import { LEGACY_DEFAULTS } from './flags-configuration.ts';
import { mergePatch } from './merge-patch.ts';
import { nearestName } from './nearest.ts';
import type { Json, JsonObject } from './schema.ts';

export type Loaded = { readonly config: KubeletConfig; readonly warnings: readonly string[] };

/** The configuration of a kubelet that was given no file. */
export function legacyDefaults(): KubeletConfig {
  let config = completeConfig({});
  for (const [path, value] of Object.entries(LEGACY_DEFAULTS)) config = withField(config, path, value);
  return config;
}

/** Lays the flags that were given over a configuration. Feature gates join key by key, everything else replaces. */
export function applyFlags(config: KubeletConfig, given: ReadonlyMap<string, unknown>): KubeletConfig {
  let out = config;
  for (const def of FLAGS) {
    if (def.field === undefined || !given.has(def.name)) continue;
    const value = given.get(def.name);
    out = withField(
      out,
      def.field,
      def.field === 'featureGates' ? { ...out.featureGates, ...(value as Record<string, boolean>) } : value,
    );
  }
  return out;
}

export async function loadConfigFile(path: string): Promise<Loaded> {
  const file = resolve(path);
  try {
    const { document, wire, warnings } = await readConfiguration(file, (text) => {
      if (text === '') throw new KubeletError('invalid', `kubelet config file "${file}" was empty`);
    });
    const hard = document.value['evictionHard'];
    const resolved = resolvePaths(wire, dirname(file));
    let config = completeConfig(resolved);
    if (hard === undefined || hard === null) config = withField(config, 'evictionHard', DEFAULT_EVICTION_HARD);
    else if (config.mergeDefaultEvictionSettings)
      config = withField(config, 'evictionHard', { ...DEFAULT_EVICTION_HARD, ...config.evictionHard });
    return { config, warnings };
  } catch (err) {
    throw new KubeletError('invalid', `failed to load kubelet config file, path: ${path}, error: ${messageOf(err)}`, {
      cause: err,
    });
  }
}

/** Merges every `*.conf` below `dir`, in lexical order of their paths, over `base`. */
export async function mergeDropIns(base: KubeletConfig, dir: string): Promise<Loaded> {
  const warnings: string[] = [];
  let merged: Json = toVersionedJson(base);
  try {
    for (const file of await confFiles(dir)) {
      const one = await readConfiguration(file, (text) => {
        if (text.trim() === '') throw new KubeletError('invalid', `${file}: the drop-in is empty`);
      });
      warnings.push(...one.warnings);
      merged = mergePatch(merged, one.document.value);
    }
  } catch (err) {
    throw new KubeletError('invalid', `failed to merge kubelet configs: ${messageOf(err)}`, { cause: err });
  }
  const { apiVersion: _a, kind: _k, ...fields } = merged as JsonObject;
  return { config: completeConfig(decodeFields(CONFIG_FIELDS, fields, () => undefined).value), warnings };
}

async function confFiles(dir: string): Promise<readonly string[]> {
  let entries;
  try {
    entries = await readdir(dir, { withFileTypes: true });
  } catch (err) {
    const why = errnoOf(err) === 'ENOENT' ? 'no such file or directory' : messageOf(err);
    throw new KubeletError('invalid', `failed to walk through kubelet dropin directory "${dir}": ${why}`, {
      cause: err,
    });
  }
  const found: string[] = [];
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) found.push(...(await confFiles(path)));
    else if (entry.name.endsWith('.conf')) found.push(path);
  }
  return found;
}

type Read = { document: Document; wire: JsonObject; warnings: string[] };

async function readConfiguration(file: string, check: (text: string) => void): Promise<Read> {
  const text = await readText(file);
  check(text);
  const document = parseDocument(await loadYaml(), file, text);
  const { apiVersion, kind, ...fields } = document.value;
  checkKind(file, apiVersion, kind);
  const decoded = decodeFields(CONFIG_FIELDS, fields, (name) => nearestName(name, Object.keys(CONFIG_FIELDS)));
  const placed = (problem: Problem): string => `${placeOf(file, document, problem.path)}: ${problem.message}`;
  if (decoded.errors.length > 0)
    throw new KubeletError('invalid', `failed to decode: ${decoded.errors.map(placed).join('; ')}`);
  const warnings = [
    ...decoded.unknown.map(placed),
    ...document.duplicates.map(
      ({ path, place }) =>
        `${file}:${place.line}:${place.col}: field "${path}" is given more than once, the last one counts`,
    ),
  ];
  return { document, wire: decoded.value, warnings };
}

function checkKind(file: string, apiVersion: Json | undefined, kind: Json | undefined): void {
  const missing = [
    ...(kind === undefined || kind === null || kind === '' ? ["Object 'Kind' is missing"] : []),
    ...(apiVersion === undefined || apiVersion === null || apiVersion === '' ? ["Object 'apiVersion' is missing"] : []),
  ];
  if (missing.length > 0)
    throw new KubeletError(
      'invalid',
      `failed to decode: ${file}: ${missing.join(' and ')}, expected apiVersion: ${CONFIG_API_VERSION} and kind: ${CONFIG_KIND}`,
    );
  if (apiVersion !== CONFIG_API_VERSION || kind !== CONFIG_KIND)
    throw new KubeletError(
      'invalid',
      `failed to decode: ${file}: no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)}, expected ${CONFIG_KIND} of ${CONFIG_API_VERSION}`,
    );
}

/** The place of a field, or of the nearest thing around it that has one. */
function placeOf(file: string, document: Document, path: string): string {
  for (let at = path; at !== ''; at = at.replace(/(\.[^.[]*|\[\d+\]|^[^.[]*)$/, '')) {
    const place = document.places.get(at);
    if (place !== undefined) return `${file}:${place.line}:${place.col}`;
  }
  return file;
}

function resolvePaths(wire: JsonObject, directory: string): JsonObject {
  let out: Json = wire;
  for (const path of PATH_FIELDS) {
    const value = path.split('.').reduce<Json | undefined>((at, key) => (at as JsonObject | undefined)?.[key], wire);
    if (typeof value !== 'string' || value === '' || isAbsolute(value)) continue;
    const patch = path.split('.').reduceRight<Json>((inner, key) => ({ [key]: inner }), join(directory, value));
    out = mergePatch(out, patch);
  }
  return out as JsonObject;
}
