// The CredentialProviderConfig of `--image-credential-provider-config`: one file, or a folder of them. Every problem is
// named; a kubelet with a bad one does not start.
import { createHash } from 'node:crypto';
import { readdir, readFile, stat } from 'node:fs/promises';
import { extname, join } from 'node:path';
import { tryParseDuration } from '../core/duration.ts';
import { qualifiedName } from '../core/names.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { parseSecretYaml } from '../lib/secret-text.ts';

export type TokenAttributes = {
  readonly serviceAccountTokenAudience: string;
  readonly cacheType: 'Token' | 'ServiceAccount';
  readonly requireServiceAccount: boolean;
  readonly requiredServiceAccountAnnotationKeys: readonly string[];
  readonly optionalServiceAccountAnnotationKeys: readonly string[];
};

export type ProviderConfig = {
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheMs: number;
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly tokenAttributes: TokenAttributes | undefined;
};

const GROUP = 'credentialprovider.kubelet.k8s.io';
const API_VERSIONS = [`${GROUP}/v1`, `${GROUP}/v1beta1`, `${GROUP}/v1alpha1`];
const CONFIG_VERSIONS = ['v1', 'v1beta1', 'v1alpha1'].map((v) => `kubelet.config.k8s.io/${v}`);
const EXTENSIONS = ['.yaml', '.yml', '.json'];

export async function loadProviderConfigs(path: string): Promise<readonly ProviderConfig[]> {
  const providers: ProviderConfig[] = [];
  for (const file of await filesAt(path)) {
    const found = readFileText(await readFile(file, 'utf8'), file);
    const twice = found.find((p) => providers.some((q) => q.name === p.name));
    if (twice !== undefined) throw invalid(`${file}: provider ${JSON.stringify(twice.name)} is declared twice`);
    providers.push(...found);
  }
  return providers;
}

/** `sha256:…` of all that `loadProviderConfigs` reads: shown as a metric, so that nodes can be compared. */
export async function hashProviderConfigs(path: string): Promise<string> {
  const hash = createHash('sha256');
  for (const file of await filesAt(path)) {
    const content = await readFile(file);
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(content.length));
    hash.update(length).update(content);
  }
  return `sha256:${hash.digest('hex')}`;
}

async function filesAt(path: string): Promise<readonly string[]> {
  const isFolder = (await stat(path)).isDirectory();
  const files = isFolder
    ? (await readdir(path, { withFileTypes: true }))
        .filter((e) => !e.isDirectory() && EXTENSIONS.includes(extname(e.name)))
        .map((e) => join(path, e.name))
        .sort()
    : [path];
  if (files.length === 0) throw invalid(`no configuration files found in ${path}`);
  return files;
}

function readFileText(text: string, file: string): ProviderConfig[] {
  let document: unknown;
  try {
    document = parseSecretYaml(text);
  } catch (err) {
    throw invalid(`${file}: ${messageOf(err)}`);
  }
  const { providers, problems } = parseProviderConfig(document);
  if (problems.length > 0) throw invalid(`${file}: ${problems.join(', ')}`);
  return providers;
}

const invalid = (text: string): KubeletError =>
  new KubeletError('invalid', `failed to validate credential provider config: ${text}`);

export function parseProviderConfig(document: unknown): { providers: ProviderConfig[]; problems: string[] } {
  const problems: string[] = [];
  const config = recordOf(document);
  if (config['kind'] !== 'CredentialProviderConfig' || !CONFIG_VERSIONS.includes(String(config['apiVersion'])))
    problems.push(`not a CredentialProviderConfig of ${CONFIG_VERSIONS.join(', ')}`);
  unknownFields(config, ['kind', 'apiVersion', 'providers'], '', problems);
  const list = Array.isArray(config['providers']) ? (config['providers'] as unknown[]) : [];
  if (list.length === 0) problems.push('providers: Required value: at least 1 item in plugins is required');
  const seen = new Set<string>();
  const providers = list.map((entry, i) => {
    const provider = parseProvider(
      recordOf(entry),
      `providers[${i}]`,
      config['apiVersion'] === CONFIG_VERSIONS[0],
      problems,
    );
    if (seen.has(provider.name))
      problems.push(`providers[${i}].name: Duplicate value: ${JSON.stringify(provider.name)}`);
    seen.add(provider.name);
    return provider;
  });
  return { providers, problems };
}

const PROVIDER = ['name', 'matchImages', 'defaultCacheDuration', 'apiVersion', 'args', 'env'];
const TOKEN_ATTRIBUTES = [
  'serviceAccountTokenAudience',
  'cacheType',
  'requireServiceAccount',
  'requiredServiceAccountAnnotationKeys',
  'optionalServiceAccountAnnotationKeys',
];

/** A misspelt field would silently mean that something is not asked for. */
function unknownFields(entry: Record<string, unknown>, known: readonly string[], at: string, problems: string[]): void {
  for (const field of Object.keys(entry))
    if (!known.includes(field))
      problems.push(`strict decoding error: unknown field "${at === '' ? '' : `${at}.`}${field}"`);
}

/** `latest`: of the newest version of the file's format, the only one with tokens of service accounts. */
function parseProvider(
  entry: Record<string, unknown>,
  at: string,
  latest: boolean,
  problems: string[],
): ProviderConfig {
  unknownFields(entry, latest ? [...PROVIDER, 'tokenAttributes'] : PROVIDER, at, problems);
  const name = textOf(entry['name']);
  if (name === '') problems.push(`${at}.name: Required value: name is required`);
  else if (name === '.' || name === '..' || /[/\s]/.test(name))
    problems.push(
      `${at}.name: Invalid value: ${JSON.stringify(name)}: name cannot be '.', '..', contain spaces or path separators`,
    );
  const matchImages = textsOf(entry['matchImages']);
  if (matchImages.length === 0)
    problems.push(`${at}.matchImages: Required value: at least 1 item in matchImages is required`);
  for (const [i, pattern] of matchImages.entries())
    if (!/^(?:https?:\/\/)?[^/\s]+(?:\/\S*)?$/.test(pattern))
      problems.push(`${at}.matchImages[${i}]: Invalid value: ${JSON.stringify(pattern)}: match image is invalid`);
  const apiVersion = textOf(entry['apiVersion']);
  if (apiVersion === '') problems.push(`${at}.apiVersion: Required value: apiVersion is required`);
  else if (!API_VERSIONS.includes(apiVersion))
    problems.push(
      `${at}.apiVersion: Unsupported value: ${JSON.stringify(apiVersion)}: supported values: ${API_VERSIONS.map((v) => JSON.stringify(v)).join(', ')}`,
    );
  const cache = textOf(entry['defaultCacheDuration']);
  const nanos = cache === '' ? undefined : tryParseDuration(cache);
  if (cache === '') problems.push(`${at}.defaultCacheDuration: Required value: defaultCacheDuration is required`);
  else if (nanos === undefined || nanos < 0)
    problems.push(
      `${at}.defaultCacheDuration: Invalid value: ${JSON.stringify(cache)}: must be a duration of zero or more`,
    );
  const env = (Array.isArray(entry['env']) ? (entry['env'] as unknown[]) : []).map((e) => ({
    name: textOf(recordOf(e)['name']),
    value: textOf(recordOf(e)['value']),
  }));
  return {
    name,
    matchImages,
    defaultCacheMs: (nanos ?? 0) / 1e6,
    apiVersion,
    args: textsOf(entry['args']),
    env,
    tokenAttributes: parseTokenAttributes(entry['tokenAttributes'], apiVersion, `${at}.tokenAttributes`, problems),
  };
}

function parseTokenAttributes(
  value: unknown,
  apiVersion: string,
  at: string,
  problems: string[],
): TokenAttributes | undefined {
  if (value === undefined || value === null) return undefined;
  const entry = recordOf(value);
  unknownFields(entry, TOKEN_ATTRIBUTES, at, problems);
  const audience = textOf(entry['serviceAccountTokenAudience']);
  const cacheType = textOf(entry['cacheType']);
  const required = textsOf(entry['requiredServiceAccountAnnotationKeys']);
  const optional = textsOf(entry['optionalServiceAccountAnnotationKeys']);
  const needsAccount = entry['requireServiceAccount'];
  if (apiVersion !== `${GROUP}/v1`)
    problems.push(`${at}: Forbidden: tokenAttributes is only supported for ${GROUP}/v1`);
  if (audience === '') problems.push(`${at}.serviceAccountTokenAudience: Required value`);
  if (cacheType !== 'Token' && cacheType !== 'ServiceAccount')
    problems.push(
      `${at}.cacheType: Unsupported value: ${JSON.stringify(cacheType)}: supported values: "ServiceAccount", "Token"`,
    );
  if (typeof needsAccount !== 'boolean') problems.push(`${at}.requireServiceAccount: Required value`);
  if (needsAccount === false && required.length > 0)
    problems.push(
      `${at}.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set`,
    );
  annotationKeyProblems(required, `${at}.requiredServiceAccountAnnotationKeys`, problems);
  annotationKeyProblems(optional, `${at}.optionalServiceAccountAnnotationKeys`, problems);
  const both = required.filter((k) => optional.includes(k));
  if (both.length > 0)
    problems.push(`${at}: Invalid value: annotation keys cannot be both required and optional: ${both.join(', ')}`);
  return {
    serviceAccountTokenAudience: audience,
    cacheType: cacheType === 'Token' ? 'Token' : 'ServiceAccount',
    requireServiceAccount: needsAccount === true,
    requiredServiceAccountAnnotationKeys: required,
    optionalServiceAccountAnnotationKeys: optional,
  };
}

function annotationKeyProblems(keys: readonly string[], at: string, problems: string[]): void {
  for (const [i, key] of keys.entries()) {
    for (const problem of qualifiedName(key.toLowerCase()))
      problems.push(`${at}: Invalid value: ${JSON.stringify(key)}: ${problem}`);
    if (keys.indexOf(key) < i) problems.push(`${at}: Duplicate value: ${JSON.stringify(key)}`);
  }
}

const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? (value as unknown[]).filter((v): v is string => typeof v === 'string') : [];
