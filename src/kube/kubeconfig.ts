// Reads a kubeconfig and says how to reach its current cluster. Paths inside are relative to the file's own folder.
import { readFile } from 'node:fs/promises';
import { dirname, isAbsolute, join } from 'node:path';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { parseSecretYaml } from '../lib/secret-text.ts';
import { withoutEnd } from '../lib/text.ts';

/** PEM texts. */
export type TlsIdentity = { readonly cert: string; readonly key: string };

export type ExecConfig = {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly provideClusterInfo: boolean;
  readonly installHint: string;
  /** What the cluster's entry says to plugins. */
  readonly clusterConfig?: unknown;
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
  /** Where that text was read, and is read again; absent where it is part of the kubeconfig. */
  readonly caFile?: string;
  readonly insecure: boolean;
  readonly tlsServerName?: string;
  readonly proxyUrl?: string;
  readonly namespace?: string;
  readonly auth: AuthConfig;
};

type Entry = Readonly<Record<string, unknown>>;

const EXEC_V1 = 'client.authentication.k8s.io/v1';
const EXEC_VERSIONS: readonly unknown[] = [EXEC_V1, 'client.authentication.k8s.io/v1beta1'];
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
    config = record(parseSecretYaml(text));
  } catch (err) {
    throw invalid(path, messageOf(err));
  }
  const current = str(config['current-context']);
  if (current === undefined) throw invalid(path, 'no current-context');
  const context = named(config, 'contexts', current, 'context', path);
  const cluster = named(config, 'clusters', str(context['cluster']) ?? '', 'cluster', path);
  const userName = str(context['user']);
  const user = userName === undefined ? {} : named(config, 'users', userName, 'user', path);
  const problem = userProblem(userName ?? '', user) ?? clusterProblem(cluster);
  if (problem !== undefined) throw invalid(path, problem);
  const server = serverUrl(cluster, user);
  if (server === undefined || !URL.canParse(server)) throw invalid(path, `cluster has no valid server address`);
  const base = dirname(path);
  const ca = await pem(cluster, 'certificate-authority', base);
  const caFile = cluster['certificate-authority-data'] ? undefined : filePath(cluster['certificate-authority'], base);
  const tlsServerName = str(cluster['tls-server-name']);
  const proxyUrl = str(cluster['proxy-url']);
  const namespace = str(context['namespace']);
  return {
    server: withoutEnd(server, '/'),
    insecure: cluster['insecure-skip-tls-verify'] === true,
    ...(ca === undefined ? {} : { ca }),
    ...(caFile === undefined ? {} : { caFile }),
    ...(tlsServerName === undefined ? {} : { tlsServerName }),
    ...(proxyUrl === undefined ? {} : { proxyUrl: validProxy(proxyUrl, path) }),
    ...(namespace === undefined ? {} : { namespace }),
    auth: authOf(user, cluster, base),
  };
}

function authOf(user: Entry, cluster: Entry, base: string): AuthConfig {
  const token = str(user['token']);
  const tokenFile = filePath(user['tokenFile'], base);
  const certData = decoded(user['client-certificate-data']);
  const keyData = decoded(user['client-key-data']);
  const certFile = filePath(user['client-certificate'], base);
  const keyFile = filePath(user['client-key'], base);
  const username = str(user['username']);
  const exec =
    user['exec'] === undefined || user['exec'] === null ? undefined : execOf(record(user['exec']), cluster, base);
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

const EXEC_EXTENSION = 'client.authentication.k8s.io/exec';

function execOf(exec: Entry, cluster: Entry, base: string): ExecConfig {
  const command = str(exec['command']) ?? '';
  const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
  const extension = list(cluster['extensions'])
    .map(record)
    .find(({ name }) => name === EXEC_EXTENSION)?.['extension'];
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
    ...(extension === undefined ? {} : { clusterConfig: extension }),
  };
}

/** A host without a scheme is spoken to by TLS as soon as anything in the kubeconfig is about TLS. */
function serverUrl(cluster: Entry, user: Entry): string | undefined {
  const server = str(cluster['server']);
  if (server === undefined || server.includes('://')) return server;
  const { 'certificate-authority': ca, 'certificate-authority-data': caData } = cluster;
  const { 'client-certificate': cert, 'client-certificate-data': certData } = user;
  const isTls = cluster['insecure-skip-tls-verify'] === true || Boolean(ca || caData || cert || certData);
  return `${isTls ? 'https' : 'http'}://${server}`;
}

const INTERACTIVE_MODES: readonly unknown[] = ['Never', 'IfAvailable', 'Always'];

/** What a user must not leave out, in the words of kubectl and the Go kubelet. */
function userProblem(name: string, user: Entry): string | undefined {
  const has = (key: string): boolean => str(user[key]) !== undefined;
  if ((has('client-certificate') || has('client-certificate-data')) && !has('client-key') && !has('client-key-data'))
    return `client-key-data or client-key must be specified for ${name} to use the clientCert authentication method.`;
  if (user['exec'] === undefined || user['exec'] === null) return undefined;
  const { command, apiVersion, interactiveMode: mode } = record(user['exec']);
  const needs = 'to use exec authentication plugin';
  if (str(command) === undefined) return `command must be specified for ${name} ${needs}`;
  if (str(apiVersion) === undefined) return `apiVersion must be specified for ${name} ${needs}`;
  if (!EXEC_VERSIONS.includes(apiVersion)) return `exec plugin: invalid apiVersion ${JSON.stringify(apiVersion)}`;
  if (str(mode) === undefined)
    return apiVersion === EXEC_V1 ? `interactiveMode must be specified for ${name} ${needs}` : undefined;
  if (!INTERACTIVE_MODES.includes(mode)) return `invalid interactiveMode for ${name}: ${JSON.stringify(mode)}`;
  // Nobody sits in front of a kubelet.
  return mode === 'Always'
    ? 'exec plugin cannot support interactive mode: standard input is not a terminal'
    : undefined;
}

const clusterProblem = (cluster: Entry): string | undefined =>
  cluster['insecure-skip-tls-verify'] === true &&
  (str(cluster['certificate-authority']) ?? str(cluster['certificate-authority-data'])) !== undefined
    ? 'specifying a root certificates file with the insecure flag is not allowed'
    : undefined;

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
  throw invalid(path, 'proxy-url must be a URL of http or https'); // not quoted: it may hold a password
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
