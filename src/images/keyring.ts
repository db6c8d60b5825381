// Which credentials belong to an image: registry patterns, most specific first, as docker's configuration has them.
import { globMatches } from './glob.ts';

/** Where credentials come from: decides who else may use an image that was pulled with them. */
export type CredentialSource =
  | { readonly from: 'node' }
  | { readonly from: 'secret'; readonly uid: string; readonly namespace: string; readonly name: string }
  | { readonly from: 'serviceAccount'; readonly uid: string; readonly namespace: string; readonly name: string };

export type RegistryLogin = {
  readonly username: string;
  readonly password: string;
  /** No registry asks for it, but it is part of what tells logins apart. */
  readonly email?: string;
};
export type Credential = RegistryLogin & { readonly source: CredentialSource };

type Key = { readonly host: string; readonly port: string; readonly path: string; readonly text: string };

export class Keyring {
  readonly #byKey = new Map<string, { key: Key; credentials: Credential[] }>();

  add(registry: string, login: RegistryLogin, source: CredentialSource): void {
    const key = keyOf(registry);
    if (key === undefined) return;
    const entry = this.#byKey.get(key.text) ?? { key, credentials: [] };
    entry.credentials.push({ ...login, source });
    this.#byKey.set(key.text, entry);
  }

  /** `repository` is fully qualified. Most specific pattern first, duplicates of a login left out. */
  lookup(repository: string): readonly Credential[] {
    const target = keyOf(repository);
    const matching = [...this.#byKey.values()]
      .filter(({ key }) => target !== undefined && matches(key, target))
      .sort((a, b) => (a.key.text < b.key.text ? 1 : -1));
    const found = matching.flatMap((e) => e.credentials);
    if (found.length > 0) return found;
    return usesDefaultRegistry(repository) ? (this.#byKey.get('index.docker.io')?.credentials ?? []) : [];
  }
}

/** `https://host:port/v1/path` → host, port and path; the API version in front of a path does not count. */
function keyOf(registry: string): Key | undefined {
  const match = /^(?:https?:\/\/)?([^/]*)(\/.*)?$/.exec(registry);
  const authority = match?.[1] ?? '';
  if (authority === '') return undefined;
  const path = (match?.[2] ?? '').replace(/^\/v[12](?=\/)/, '');
  const { host, port } = splitPort(authority);
  const shownPath = path === '/' ? '' : path;
  return { host, port, path: shownPath, text: authority + shownPath };
}

function splitPort(authority: string): { host: string; port: string } {
  const match = /^(.*):(\d+)$/.exec(authority);
  return match === null ? { host: authority, port: '' } : { host: match[1] ?? '', port: match[2] ?? '' };
}

function matches(pattern: Key, target: Key): boolean {
  if (pattern.port !== target.port) return false;
  const wanted = pattern.host.split('.');
  const given = target.host.split('.');
  if (wanted.length !== given.length) return false;
  if (!target.path.startsWith(pattern.path)) return false;
  return wanted.every((label, i) => globMatches(label, given[i] ?? ''));
}

/** Whether a pattern of a credential provider covers an image. */
export function patternMatches(pattern: string, repository: string): boolean {
  const [a, b] = [keyOf(pattern), keyOf(repository)];
  return a !== undefined && b !== undefined && matches(a, b);
}

function usesDefaultRegistry(repository: string): boolean {
  const slash = repository.indexOf('/');
  if (slash === 0) return false;
  if (slash < 0) return true;
  const first = repository.slice(0, slash);
  return first === 'docker.io' || first === 'index.docker.io' || !/[.:]/.test(first);
}
