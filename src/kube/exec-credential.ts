// Runs a client-go credential plugin: argv only, no shell, the request in KUBERNETES_EXEC_INFO, the answer on stdout.
import { execFile } from 'node:child_process';
import { pluginEnvironment } from '../lib/child-environment.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { parseSecretJson } from '../lib/secret-text.ts';
import type { ProgramError } from './exec-metrics.ts';
import type { ClusterAccess, ExecConfig, TlsIdentity } from './kubeconfig.ts';

export type ExecAnswer = {
  readonly token?: string;
  readonly tls?: TlsIdentity;
  /** Wall time in milliseconds; Infinity when the plugin sets none. */
  readonly expiresAt: number;
};

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT = 1024 * 1024;

export type ExecDeps = {
  readonly clock: Clock;
  /** Told how every run of the program ended; null: well. */
  readonly called?: (err: ProgramError | null) => void;
};

export async function runExecPlugin(
  { clock, called }: ExecDeps,
  exec: ExecConfig,
  access: ClusterAccess,
  signal: AbortSignal,
): Promise<ExecAnswer> {
  const env: NodeJS.ProcessEnv = { ...pluginEnvironment(), KUBERNETES_EXEC_INFO: requestOf(exec, access) };
  for (const { name, value } of exec.env) env[name] = value;
  const stdout = await withDeadline(clock, signal, TIMEOUT_MS, (s) => output(exec, env, called, s));
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
    ...(exec.clusterConfig === undefined ? {} : { config: exec.clusterConfig }),
  };
  return JSON.stringify({
    kind: 'ExecCredential',
    apiVersion: exec.apiVersion,
    spec: { ...(exec.provideClusterInfo ? { cluster } : {}), interactive: false },
  });
}

const output = (
  exec: ExecConfig,
  env: NodeJS.ProcessEnv,
  called: ExecDeps['called'],
  signal: AbortSignal,
): Promise<string> =>
  new Promise((resolve, reject) => {
    const options = { signal, maxBuffer: MAX_OUTPUT, encoding: 'utf8' as const };
    execFile(exec.command, [...exec.args], { ...options, env }, (err, stdout) => {
      called?.(err);
      if (err === null) return resolve(stdout);
      const hint = err.code === 'ENOENT' && exec.installHint !== '' ? `\n${exec.installHint}` : '';
      // No cause: it quotes the arguments and what the plugin printed.
      reject(new KubeletError('denied', `exec plugin ${exec.command} failed: ${shortly(err)}${hint}`));
    });
  });

/** Never the plugin's output: it may hold a token. */
const shortly = (err: Error & { code?: string | number | null }): string =>
  typeof err.code === 'number' ? `exit code ${err.code}` : String(err.code ?? err.name);

function answerOf(exec: ExecConfig, stdout: string): ExecAnswer {
  let answer: Readonly<Record<string, unknown>>;
  try {
    answer = recordOf(parseSecretJson(stdout));
  } catch {
    throw new KubeletError('invalid', `exec plugin ${exec.command}: its answer is not JSON`);
  }
  if (answer['apiVersion'] !== exec.apiVersion) {
    throw new KubeletError('invalid', `exec plugin ${exec.command}: answer has another apiVersion than asked for`);
  }
  const status = recordOf(answer['status']);
  const [token, cert, key] = ['token', 'clientCertificateData', 'clientKeyData'].map((name) => textOf(status[name]));
  if (token === undefined && cert === undefined && key === undefined)
    throw new KubeletError('denied', `exec plugin ${exec.command} returned neither token nor certificate`);
  if ((cert === undefined) !== (key === undefined))
    throw new KubeletError('denied', `exec plugin ${exec.command} returned only certificate or key, not both`);
  const { expirationTimestamp: until } = status;
  const expiresAt = typeof until === 'string' ? Date.parse(until) : Infinity;
  return {
    ...(token === undefined ? {} : { token }),
    ...(cert === undefined || key === undefined ? {} : { tls: { cert, key } }),
    expiresAt: Number.isNaN(expiresAt) ? Infinity : expiresAt,
  };
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Anything else is as good as empty. */
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
