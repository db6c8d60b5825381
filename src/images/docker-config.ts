// Registry logins in docker's two file formats, from pull secrets and from the node's own files.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Secret } from '../core/node.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { parseSecretJson } from '../lib/secret-text.ts';
import { Keyring, type CredentialSource, type RegistryLogin } from './keyring.ts';

type Logins = readonly (readonly [registry: string, login: RegistryLogin])[];

/** `config.json` has its logins below `auths`, the older `.dockercfg` at the top. Never quotes contents in an error. */
export function parseDockerConfig(text: string, format: 'json' | 'cfg'): Logins {
  let parsed: unknown;
  try {
    parsed = parseSecretJson(text);
  } catch {
    throw new KubeletError('invalid', 'registry credentials are not valid JSON');
  }
  const table = format === 'json' ? fieldOf(parsed, 'auths') : parsed;
  if (table === undefined || table === null) return [];
  if (typeof table !== 'object') throw new KubeletError('invalid', 'registry credentials are not an object');
  return Object.entries(table).map(([registry, entry]) => [registry, parseLogin(entry)] as const);
}

function parseLogin(entry: unknown): RegistryLogin {
  const address = fieldOf(entry, 'email');
  const email = typeof address === 'string' && address !== '' ? { email: address } : {};
  const auth = fieldOf(entry, 'auth');
  if (typeof auth === 'string' && auth !== '') {
    const text = Buffer.from(auth, 'base64').toString('utf8');
    const colon = text.indexOf(':');
    if (colon < 0)
      throw new KubeletError('invalid', 'unable to parse auth field, must be formatted as base64(user:password)');
    return { username: text.slice(0, colon), password: text.slice(colon + 1).replaceAll('\0', ''), ...email };
  }
  const [username, password] = [fieldOf(entry, 'username'), fieldOf(entry, 'password')];
  return {
    username: typeof username === 'string' ? username : '',
    password: typeof password === 'string' ? password : '',
    ...email,
  };
}

/** Tools write `Username` as well: any case will do, the right one first. */
function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  const entries = Object.entries(value);
  return (entries.find(([key]) => key === name) ?? entries.find(([key]) => key.toLowerCase() === name))?.[1];
}

const SECRET_KEYS: readonly (readonly [type: string, key: string, format: 'json' | 'cfg'])[] = [
  ['kubernetes.io/dockerconfigjson', '.dockerconfigjson', 'json'],
  ['kubernetes.io/dockercfg', '.dockercfg', 'cfg'],
];

/** Secrets of other types, or without their key, count for nothing. */
export function addSecret(keyring: Keyring, secret: Secret): void {
  const row = SECRET_KEYS.find(([type]) => type === secret.type);
  const data = row === undefined ? undefined : secret.data?.[row[1]];
  if (row === undefined || data === undefined || data === '') return;
  const { name, namespace = 'default', uid = '' } = secret.metadata;
  const source: CredentialSource = { from: 'secret', uid, namespace, name };
  try {
    for (const [registry, login] of parseDockerConfig(Buffer.from(data, 'base64').toString('utf8'), row[2]))
      keyring.add(registry, login, source);
  } catch (err) {
    throw new KubeletError('invalid', `pull secret ${namespace}/${name}: ${messageOf(err)}`, { cause: err });
  }
}

const CACHE_MS = 5 * 60_000;

export type NodeFilesOptions = {
  readonly rootDir: string;
  readonly workingDir: string;
  readonly homeDir: string | undefined;
};

/** The node's own docker configuration: the first file found, re-read every five minutes. */
export class NodeDockerConfig {
  readonly #deps: { readonly clock: Clock; readonly log: Logger };
  readonly #places: readonly (readonly [path: string, format: 'json' | 'cfg'])[];
  #cached: { logins: Logins; until: number } | undefined;

  constructor(deps: { readonly clock: Clock; readonly log: Logger }, options: NodeFilesOptions) {
    this.#deps = deps;
    const { rootDir, workingDir, homeDir } = options;
    const home = homeDir === undefined ? [] : [homeDir];
    this.#places = [
      ...[rootDir, workingDir, ...home.map((h) => join(h, '.docker')), '/.docker'].map(
        (dir) => [join(dir, 'config.json'), 'json'] as const,
      ),
      ...[rootDir, workingDir, ...home, '/'].map((dir) => [join(dir, '.dockercfg'), 'cfg'] as const),
    ];
  }

  async addTo(keyring: Keyring): Promise<void> {
    const now = this.#deps.clock.monotonic();
    if (this.#cached === undefined || this.#cached.until <= now)
      this.#cached = { logins: await this.#read(), until: now + CACHE_MS };
    for (const [registry, login] of this.#cached.logins) keyring.add(registry, login, { from: 'node' });
  }

  async #read(): Promise<Logins> {
    for (const [path, format] of this.#places) {
      let text: string;
      try {
        text = await readFile(path, 'utf8');
      } catch {
        // Most of these places are usually empty.
        continue;
      }
      try {
        return parseDockerConfig(text, format);
      } catch (err) {
        this.#deps.log.warn('registry credentials file cannot be read', { path, err });
      }
    }
    return [];
  }
}
