// Runs a client-go credential plugin: argv only, no shell, the request in KUBERNETES_EXEC_INFO, the answer on stdout.
import { execFile } from 'node:child_process';
import { pluginEnvironment } from '../lib/child-environment.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { ClusterAccess, ExecConfig, TlsIdentity } from './kubeconfig.ts';

export type ExecAnswer = {
  readonly token?: string;
  readonly tls?: TlsIdentity;
  /** Wall time in milliseconds; Infinity when the plugin sets none. */
  readonly expiresAt: number;
};

const VERSIONS = new Set(['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']);
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT = 1024 * 1024;

export async function runExecPlugin(
  clock: Clock,
  exec: ExecConfig,
  access: ClusterAccess,
  signal: AbortSignal,
): Promise<ExecAnswer> {
  if (!VERSIONS.has(exec.apiVersion)) {
    throw new KubeletError('invalid', `exec plugin: invalid apiVersion "${exec.apiVersion}"`);
  }
  const env: NodeJS.ProcessEnv = { ...pluginEnvironment(), KUBERNETES_EXEC_INFO: requestOf(exec, access) };
  for (const { name, value } of exec.env) env[name] = value;
  const stdout = await withDeadline(clock, signal, TIMEOUT_MS, (s) => output(exec, env, s));
  return answerOf(exec, stdout);
}

function requestOf(exec: ExecConfig, access: ClusterAccess): string {
  const cluster = {
    server: access.server,
    ...(access.tlsServerName === undefined ? {} : { 'tls-server-name': access.tlsServerName }),
    ...(access.insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(access.ca === undefined
      ? {}
      : { 'certificate-authority-data': Buffer.from(access.ca, 'utf8').toString('base64') }),
    ...(access.proxyUrl === undefined ? {} : { 'proxy-url': access.proxyUrl }),
  };
  return JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: exec.apiVersion,
    spec: { ...(exec.provideClusterInfo ? { cluster } : {}), interactive: false },
  });
}

const output = (exec: ExecConfig, env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { signal, maxBuffer: MAX_OUTPUT, encoding: 'utf8' as const };
    execFile(exec.command, [...exec.args], { ...options, env }, (err, stdout) => {
      if (err === null) return resolve(stdout);
      const hint = err.code === 'ENOENT' && exec.installHint !== '' ? `\n${exec.installHint}` : '';
      reject(new KubeletError('denied', `exec plugin ${exec.command} failed: ${shortly(err)}${hint}`, { cause: err }));
    });
  });

/** Never the plugin's output: it may hold a token. */
const shortly = (err: Error & { code?: string | number | null }): string =>
  typeof err.code === 'number' ? `exit code ${err.code}` : String(err.code ?? err.name);

function answerOf(exec: ExecConfig, stdout: string): ExecAnswer {
  let answer: Readonly<Record<string, unknown>>;
  try {
    answer = recordOf(JSON.parse(stdout));
  } catch {
    throw new KubeletError('invalid', `exec plugin ${exec.command}: its answer is not JSON`); // no cause: it quotes the text
  }
  if (answer['apiVersion'] !== exec.apiVersion) {
    throw new KubeletError('invalid', `exec plugin ${exec.command}: answer has another apiVersion than asked for`);
  }
  const {
    token,
    clientCertificateData: cert,
    clientKeyData: key,
    expirationTimestamp: until,
  } = recordOf(answer['status']);
  const tls = typeof cert === 'string' && typeof key === 'string' ? { cert, key } : undefined;
  if (typeof token !== 'string' && tls === undefined) {
    throw new KubeletError('denied', `exec plugin ${exec.command} returned neither token nor certificate`);
  }
  const expiresAt = typeof until === 'string' ? Date.parse(until) : Infinity;
  return {
    ...(typeof token === 'string' ? { token } : {}),
    ...(tls === undefined ? {} : { tls }),
    expiresAt: Number.isNaN(expiresAt) ? Infinity : expiresAt,
  };
}

/** Anything else is as good as empty. */
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
