// Runs a client-go credential plugin: argv only, no shell, the request in KUBERNETES_EXEC_INFO, the answer on stdout.
import { execFile } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { endInput, pluginEnvironment } from '../lib/child-environment.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { parseSecretJson } from '../lib/secret-text.ts';
import { keyMatches } from '../lib/x509/certificate.ts';
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
    const child = execFile(exec.command, [...exec.args], { ...options, env }, (err, stdout) => {
      called?.(err);
      if (err === null) return resolve(stdout);
      const hint = err.code === 'ENOENT' && exec.installHint !== '' ? `\n${exec.installHint}` : '';
      // No cause: it quotes the arguments and what the plugin printed.
      reject(new KubeletError('denied', `exec plugin ${exec.command} failed: ${shortly(err)}${hint}`));
    });
    endInput(child);
  });

/** Never the plugin's output: it may hold a token. */
const shortly = (err: Error & { code?: string | number | null }): string =>
  typeof err.code === 'number' ? `exit code ${err.code}` : String(err.code ?? err.name);

function answerOf(exec: ExecConfig, stdout: string): ExecAnswer {
  const refuse = (kind: 'invalid' | 'denied', what: string): never => {
    throw new KubeletError(kind, `exec plugin ${exec.command} ${what}`);
  };
  const answer = recordOf(parsedAnswer(exec, stdout));
  if (answer['kind'] !== 'ExecCredential') refuse('invalid', 'returned no ExecCredential');
  if (answer['apiVersion'] !== exec.apiVersion) refuse('invalid', 'returned another apiVersion than asked for');
  const status = recordOf(answer['status']);
  const wrong = FIELDS.find((name) => typeof (status[name] ?? '') !== 'string');
  if (wrong !== undefined) refuse('invalid', `returned a ${wrong} that is no text`);
  const [token, cert, key] = FIELDS.map((name) => textOf(status[name]));
  if (token === undefined && cert === undefined && key === undefined)
    refuse('denied', 'returned neither token nor certificate');
  if ((cert === undefined) !== (key === undefined)) refuse('denied', 'returned only certificate or key, not both');
  const tls = cert === undefined || key === undefined ? undefined : { cert, key };
  if (tls !== undefined && !isPair(tls)) refuse('denied', 'returned a certificate and key that are no pair');
  const expiresAt = expiryOf(status['expirationTimestamp']);
  if (expiresAt === undefined) return refuse('invalid', 'returned an expirationTimestamp that is no time');
  return { ...(token === undefined ? {} : { token }), ...(tls === undefined ? {} : { tls }), expiresAt };
}

const FIELDS = ['token', 'clientCertificateData', 'clientKeyData'] as const;

function parsedAnswer(exec: ExecConfig, stdout: string): unknown {
  try {
    return parseSecretJson(stdout);
  } catch (err) {
    throw new KubeletError('invalid', `exec plugin ${exec.command}: its answer is ${messageOf(err)}`);
  }
}

const RFC3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;

/** Undefined for what is no time. */
function expiryOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return Infinity;
  const time = typeof value === 'string' && RFC3339.test(value) ? Date.parse(value) : NaN;
  return Number.isNaN(time) ? undefined : time;
}

function isPair({ cert, key }: TlsIdentity): boolean {
  try {
    return keyMatches(cert, createPrivateKey(key));
  } catch {
    return false; // unreadable
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined);

/** Anything else is as good as empty. */
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
