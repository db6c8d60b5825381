// How large an image is, asked of its registry: the sizes of its layers are in its manifest. For runtimes that tell
// nothing of a pull. Asks as the pull itself does, with the same logins; what cannot be had is not known.
import { goArch } from '../host/host-facts.ts';
import type { Clock } from '../lib/clock.ts';
import { httpExchange, type HttpReply } from '../lib/http/exchange.ts';
import type { HttpTarget } from '../lib/http/open.ts';
import type { RegistryLogin } from './keyring.ts';
import { parseImageName } from './reference.ts';

const ANSWER_MS = 5000;
const MAX_BYTES = 4 * 1024 * 1024;
const HTTPS_PORT = 443;
const HTTP_PORT = 80;
const ACCEPT = [
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
].join(', ');
/** It counts every manifest against what its caller may pull. */
const COUNTING = 'docker.io';
/** Registries on the machine itself are the only ones that runtimes ask without TLS unless told so. */
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;

export class ManifestSizes {
  readonly #clock: Clock;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Bytes to be downloaded, as they are counted by the registry. */
  async sizeOf(image: string, logins: readonly RegistryLogin[], signal: AbortSignal): Promise<number | undefined> {
    const { repository, tag, digest } = parseImageName(image);
    const slash = repository.indexOf('/');
    const [registry, name] = [repository.slice(0, slash), repository.slice(slash + 1)];
    if (registry === COUNTING) return undefined;
    for (const login of logins.length === 0 ? [undefined] : logins) {
      const ask = (reference: string): Promise<unknown> =>
        this.#manifest(urlOf(registry, `/v2/${name}/manifests/${reference}`), name, login, signal);
      const found = await ask(digest ?? tag ?? 'latest');
      const own = platformDigest(found, goArch(process.arch));
      const size = sizeOfLayers(own === undefined ? found : await ask(own));
      if (size !== undefined) return size;
    }
    return undefined;
  }

  async #manifest(url: URL, name: string, login: RegistryLogin | undefined, signal: AbortSignal): Promise<unknown> {
    const first = await this.#get(url, undefined, signal);
    if (first.status !== 401) return jsonOf(first);
    const authorization = await this.#authorization(String(first.headers['www-authenticate']), name, login, signal);
    return authorization === undefined ? undefined : jsonOf(await this.#get(url, authorization, signal));
  }

  /** What a registry asks for: the login itself, or a token from the place it names. */
  async #authorization(
    challenge: string,
    name: string,
    login: RegistryLogin | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    if (/^basic\b/i.test(challenge)) return login === undefined ? undefined : basic(login);
    const realm = tokenPlace(challenge, name);
    if (realm === undefined) return undefined;
    const answer = jsonOf(await this.#get(realm, login === undefined ? undefined : basic(login), signal));
    const { token, access_token: access } = (answer ?? {}) as Readonly<Record<string, unknown>>;
    const given = token ?? access;
    return typeof given === 'string' ? `Bearer ${given}` : undefined;
  }

  #get(url: URL, authorization: string | undefined, signal: AbortSignal): Promise<HttpReply> {
    const headers = { Accept: ACCEPT, ...(authorization === undefined ? {} : { Authorization: authorization }) };
    const asked = { target: targetOf(url), headers, verifyCertificate: true };
    return httpExchange(this.#clock, { ...asked, deadlineMs: ANSWER_MS, maxBodyBytes: MAX_BYTES }, signal);
  }
}

const basic = ({ username, password }: RegistryLogin): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;

const hostOf = (url: URL): string => url.hostname.replace(/^\[|\]$/g, '');

const targetOf = (url: URL): HttpTarget => ({
  scheme: url.protocol === 'http:' ? 'http' : 'https',
  host: hostOf(url),
  port: Number(url.port) || (url.protocol === 'http:' ? HTTP_PORT : HTTPS_PORT),
  path: `${url.pathname}${url.search}`,
});

function urlOf(registry: string, path: string): URL {
  const url = new URL(`https://${registry}${path}`);
  return LOOPBACK.test(hostOf(url)) ? new URL(`http://${registry}${path}`) : url;
}

/** Where a token for reading this repository is to be had. A login goes nowhere without TLS. */
export function tokenPlace(challenge: string, name: string): URL | undefined {
  if (!/^bearer\b/i.test(challenge)) return undefined;
  const field = (key: string): string | undefined => new RegExp(`${key}="([^"]*)"`, 'i').exec(challenge)?.[1];
  const realm = URL.parse(field('realm') ?? '');
  if (realm === null) return undefined;
  if (realm.protocol !== 'https:' && !(realm.protocol === 'http:' && LOOPBACK.test(hostOf(realm)))) return undefined;
  const service = field('service');
  if (service !== undefined) realm.searchParams.set('service', service);
  realm.searchParams.set('scope', field('scope') ?? `repository:${name}:pull`);
  return realm;
}

function jsonOf({ status, body, cut }: HttpReply): unknown {
  if (status !== 200 || cut) return undefined;
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined; // not a manifest: nothing is known then
  }
}

const listOf = (value: unknown, key: string): readonly Readonly<Record<string, unknown>>[] => {
  const list = (value as Readonly<Record<string, unknown>> | null | undefined)?.[key];
  return Array.isArray(list) ? list.filter((item) => typeof item === 'object' && item !== null) : [];
};

/** Of an image for several platforms, the manifest of this one. */
export function platformDigest(manifest: unknown, architecture: string): string | undefined {
  const own = listOf(manifest, 'manifests').find(({ platform }) => {
    const { os, architecture: its } = (platform ?? {}) as Readonly<Record<string, unknown>>;
    return os === 'linux' && its === architecture;
  });
  return typeof own?.['digest'] === 'string' ? own['digest'] : undefined;
}

/** Undefined: this is no manifest of an image. */
export function sizeOfLayers(manifest: unknown): number | undefined {
  const sizes = listOf(manifest, 'layers').map(({ size }) => size);
  return sizes.length > 0 && sizes.every((size) => typeof size === 'number' && size >= 0)
    ? (sizes as number[]).reduce((sum, size) => sum + size, 0)
    : undefined;
}
