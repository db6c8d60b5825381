// Reads a kubeconfig and says how to reach its current cluster. Paths inside are relative to the file's own folder.
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { parse } from 'yaml';
import { KubeletError, messageOf } from '../lib/errors.ts';

/** PEM texts. */
export type TlsIdentity = { readonly cert: string; readonly key: string };

export type ExecConfig = {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly provideClusterInfo: boolean;
  readonly installHint: string;
};

export type AuthConfig = {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly basic?: { readonly username: string; readonly password: string };
  /** PEM text. */
  readonly certData?: string;
  readonly keyData?: string;
  readonly certFile?: string;
  readonly keyFile?: string;
  readonly exec?: ExecConfig;
};

/** Where the API server is and who we are there. */
export type ClusterAccess = {
  readonly server: string;
  /** PEM text; absent means the system's certificate authorities. */
  readonly ca?: string;
  /** Where that text was read, unless it is part of the kubeconfig. */
  readonly caFile?: string;
  readonly insecure: boolean;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  readonly namespace?: string;
  readonly auth: AuthConfig;
};

type Entry = Readonly<Record<string, unknown>>;

const MAX_KUBECONFIG_BYTES = 4 * 1024 * 1024;

export async function loadKubeconfig(path: string): Promise<ClusterAccess> {
  const text = await readFile(path, 'utf8');
  if (text.length > MAX_KUBECONFIG_BYTES) throw new KubeletError('invalid', `kubeconfig ${path} is too large`);
  return await resolveKubeconfig(text, path);
}

/** `path` names the file in messages and anchors relative paths. */
export async function resolveKubeconfig(text: string, path: string): Promise<ClusterAccess> {
  let config: Entry;
  try {
    config = record(parse(text, { maxAliasCount: 20 }));
  } catch (err) {
    throw new KubeletError('invalid', `kubeconfig ${path}: ${messageOf(err)}`, { cause: err });
  }
  const current = str(config['current-context']);
  if (current === undefined) throw invalid(path, 'no current-context');
  const context = named(config, 'contexts', current, 'context', path);
  const cluster = named(config, 'clusters', str(context['cluster']) ?? '', 'cluster', path);
  const userName = str(context['user']);
  const user = userName === undefined ? {} : named(config, 'users', userName, 'user', path);
  const server = str(cluster['server']);
  if (server === undefined || !URL.canParse(server)) throw invalid(path, `cluster has no valid server address`);
  const base = dirname(path);
  const ca = await pem(cluster, 'certificate-authority', base);
  const caFile = cluster['certificate-authority-data'] ? undefined : filePath(cluster['certificate-authority'], base);
  const tlsServerName = str(cluster['tls-server-name']);
  const proxyUrl = str(cluster['proxy-url']);
  const namespace = str(context['namespace']);
  return {
    server: server.replace(/\/+$/, ''),
    insecure: cluster['insecure-skip-tls-verify'] === true,
    ...(ca === undefined ? {} : { ca }),
    ...(caFile === undefined ? {} : { caFile }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl: validProxy(proxyUrl, path) }),
    ...(namespace === undefined ? {} : { namespace }),
    auth: authOf(user, base),
  };
}

function authOf(user: Entry, base: string): AuthConfig {
  const token = str(user['token']);
  const tokenFile = filePath(user['tokenFile'], base);
  const certData = decoded(user['client-certificate-data']);
  const keyData = decoded(user['client-key-data']);
  const certFile = filePath(user['client-certificate'], base);
  const keyFile = filePath(user['client-key'], base);
  const username = str(user['username']);
  const exec = user['exec'] === undefined || user['exec'] === null ? undefined : execOf(record(user['exec']), base);
  return {
    ...(token === undefined ? {} : { token }),
    ...(tokenFile === undefined ? {} : { tokenFile }),
    ...(username === undefined ? {} : { basic: { username, password: str(user['password']) ?? '' } }),
    ...(certData === undefined ? {} : { certData }),
    ...(keyData === undefined ? {} : { keyData }),
    ...(certFile === undefined ? {} : { certFile }),
    ...(keyFile === undefined ? {} : { keyFile }),
    ...(exec === undefined ? {} : { exec }),
  };
}

function execOf(exec: Entry, base: string): ExecConfig {
  const command = str(exec['command']) ?? '';
  const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
  return {
    apiVersion: str(exec['apiVersion']) ?? '',
    command: command.includes('/') && !isAbsolute(command) ? join(base, command) : command,
    args: list(exec['args']).map(String),
    env: list(exec['env']).map((e) => ({
      name: str(record(e)['name']) ?? '',
      value: str(record(e)['value']) ?? '',
    })),
    provideClusterInfo: exec['provideClusterInfo'] === true,
    installHint: str(exec['installHint']) ?? '',
  };
}

/** `X-data` (base64) wins over the file `X`. */
async function pem(entry: Entry, key: string, base: string): Promise<string | undefined> {
  const inline = decoded(entry[`${key}-data`]);
  if (inline !== undefined) return inline;
  const file = filePath(entry[key], base);
  return file === undefined ? undefined : await readFile(file, 'utf8');
}

function named(config: Entry, list: string, name: string, key: string, path: string): Entry {
  const entries = config[list];
  const found = Array.isArray(entries) ? entries.map(record).find((e) => e['name'] === name) : undefined;
  if (found === undefined) throw invalid(path, `${key} "${name}" does not exist`);
  return record(found[key] ?? {});
}

const validProxy = (url: string, path: string): string => {
  const scheme = URL.canParse(url) ? new URL(url).protocol : '';
  if (scheme === 'http:' || scheme === 'https:') return url;
  throw invalid(path, `proxy-url "${url}" must be http or https`);
};
const invalid = (path: string, why: string): KubeletError => new KubeletError('invalid', `kubeconfig ${path}: ${why}`);
const str = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);
const decoded = (value: unknown): string | undefined => {
  const text = str(value);
  return text === undefined ? undefined : Buffer.from(text, 'base64').toString('utf8');
};
const filePath = (value: unknown, base: string): string | undefined => {
  const path = str(value);
  return path === undefined ? undefined : isAbsolute(path) ? path : join(base, path);
};
const record = (value: unknown): Entry => {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw new KubeletError('invalid', 'not a mapping');
  }
  return value as Entry;
};
