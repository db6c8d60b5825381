// One credential provider: an executable that is asked on stdin and answers on stdout. Its answers are kept as long as
// they say; several pulls that ask the same question at once run it once, and it ends when none of them waits any more.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { pluginEnvironment } from '../lib/child-environment.ts';
import { tryParseDuration } from '../core/duration.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { parseSecretJson } from '../lib/secret-text.ts';
import type { Counter, Histogram } from '../lib/metrics.ts';
import { patternMatches, type RegistryLogin } from './keyring.ts';
import type { ProviderConfig } from './provider-config.ts';

export type ServiceAccountIdentity = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** Asks for a token bound to the pod, for this audience. */
  token(audience: string, signal: AbortSignal): Promise<string>;
};

type Answer = {
  readonly logins: readonly (readonly [string, RegistryLogin])[];
  readonly key: string;
  readonly cacheMs: number;
};
type Run = { readonly answer: Promise<Answer['logins']>; readonly stop: AbortController; waiting: number };
type Cached = { readonly logins: Answer['logins']; readonly until: number };

export type PluginMetrics = { readonly errors: Counter; readonly duration: Histogram };
export type PluginDeps = { readonly clock: Clock; readonly metrics: PluginMetrics };

const TIMEOUT_MS = 60_000;
const PURGE_EVERY_MS = 15 * 60_000;
const MAX_ANSWER_BYTES = 1024 * 1024;

export class ProviderPlugin {
  readonly config: ProviderConfig;
  readonly #deps: PluginDeps;
  readonly #path: string;
  readonly #cache = new Map<string, Cached>();
  readonly #running = new Map<string, Run>();
  #purgedAt: number;

  constructor(deps: PluginDeps, config: ProviderConfig, binDir: string) {
    this.#deps = deps;
    this.config = config;
    this.#path = join(binDir, config.name);
    this.#purgedAt = deps.clock.monotonic();
  }

  covers(repository: string): boolean {
    return this.config.matchImages.some((pattern) => patternMatches(pattern, repository));
  }

  /** Logins by registry pattern for this image. `image` is fully qualified and has neither tag nor digest. */
  async logins(
    image: string,
    account: ServiceAccountIdentity | undefined,
    signal: AbortSignal,
  ): Promise<Answer['logins']> {
    const question = await this.#question(image, account, signal);
    if (question === undefined) return [];
    const cached = this.#lookup(image, question.identity);
    if (cached !== undefined) return cached;
    const key = `${image}\n${question.identity}`;
    const run = this.#running.get(key) ?? this.#begin(key, image, question);
    run.waiting++;
    try {
      return await abortable(signal, run.answer);
    } finally {
      if (--run.waiting === 0) {
        this.#running.delete(key);
        run.stop.abort(new KubeletError('cancelled', 'nobody waits for the answer'));
      }
    }
  }

  #begin(key: string, image: string, question: { request: Record<string, unknown>; identity: string }): Run {
    const stop = new AbortController();
    const run: Run = { answer: this.#ask(image, question, stop.signal), stop, waiting: 0 };
    this.#running.set(key, run);
    return run;
  }

  /** What to send; undefined when the plugin wants a service account that this pod cannot offer. */
  async #question(
    image: string,
    account: ServiceAccountIdentity | undefined,
    signal: AbortSignal,
  ): Promise<{ request: Record<string, unknown>; identity: string } | undefined> {
    const { apiVersion, tokenAttributes } = this.config;
    const request = { kind: 'CredentialProviderRequest', apiVersion, image };
    if (tokenAttributes === undefined) return { request, identity: '' };
    if (account === undefined) return tokenAttributes.requireServiceAccount ? undefined : { request, identity: '' };
    const wanted = [
      ...tokenAttributes.requiredServiceAccountAnnotationKeys,
      ...tokenAttributes.optionalServiceAccountAnnotationKeys,
    ];
    if (tokenAttributes.requiredServiceAccountAnnotationKeys.some((k) => account.annotations[k] === undefined))
      return undefined;
    const annotations = Object.fromEntries(
      wanted.filter((k) => account.annotations[k] !== undefined).map((k) => [k, account.annotations[k]]),
    );
    const token = await account.token(tokenAttributes.serviceAccountTokenAudience, signal);
    const shown = tokenAttributes.cacheType === 'Token' ? token : '';
    const { uid, namespace, name } = account;
    return {
      request: { ...request, serviceAccountToken: token, serviceAccountAnnotations: annotations },
      identity: sha256(JSON.stringify([uid, namespace, name, annotations, shown])),
    };
  }

  #lookup(image: string, identity: string): Answer['logins'] | undefined {
    const now = this.#deps.clock.monotonic();
    if (now - this.#purgedAt > PURGE_EVERY_MS) {
      this.#purgedAt = now;
      for (const [key, { until }] of this.#cache) if (until <= now) this.#cache.delete(key);
    }
    for (const key of [image, registryOf(image), GLOBAL]) {
      const hit = this.#cache.get(`${key}\n${identity}`);
      if (hit !== undefined && hit.until > now) return hit.logins;
    }
    return undefined;
  }

  async #ask(
    image: string,
    question: { request: Record<string, unknown>; identity: string },
    stop: AbortSignal,
  ): Promise<Answer['logins']> {
    const { clock, metrics } = this.#deps;
    const label = { plugin_name: this.config.name };
    const begun = clock.monotonic();
    try {
      const text = await withDeadline(clock, stop, TIMEOUT_MS, (signal) =>
        this.#execute(JSON.stringify(question.request), signal),
      );
      const answer = readAnswer(text, image, this.config);
      this.#refuseEcho(answer, question.request['serviceAccountToken']);
      if (answer.cacheMs > 0)
        this.#cache.set(`${answer.key}\n${question.identity}`, {
          logins: answer.logins,
          until: clock.monotonic() + answer.cacheMs,
        });
      return answer.logins;
    } catch (err) {
      if (!stop.aborted) metrics.errors.inc(label);
      throw err;
    } finally {
      metrics.duration.observe((clock.monotonic() - begun) / 1000, label);
    }
  }

  /** A token is one pod's: as a password it must not be kept for all pods of the account. */
  #refuseEcho({ logins }: Answer, token: unknown): void {
    if (token === undefined || this.config.tokenAttributes?.cacheType === 'Token') return;
    if (logins.some(([, { password }]) => password === token))
      throw new KubeletError(
        'invalid',
        "credential provider plugin returned the service account token as the password which is not allowed when service account cache type is not set to 'Token'",
      );
  }

  #execute(input: string, signal: AbortSignal): Promise<string> {
    const { name, args, env } = this.config;
    return new Promise((resolve, reject) => {
      const child = spawn(this.#path, [...args], {
        env: { ...pluginEnvironment(), ...Object.fromEntries(env.map((e) => [e.name, e.value])) },
        stdio: ['pipe', 'pipe', 'ignore'],
        signal,
        killSignal: 'SIGKILL',
      });
      const fail = (text: string, cause?: unknown): void =>
        reject(new KubeletError('internal', `credential provider plugin ${name}: ${text}`, { cause }));
      const chunks: Buffer[] = [];
      let size = 0;
      child.stdout.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > MAX_ANSWER_BYTES) child.kill('SIGKILL');
        else chunks.push(chunk);
      });
      child.on('error', (err) => fail(signal.aborted ? `no answer in ${TIMEOUT_MS}ms` : err.message, err));
      child.on('close', (code, killed) => {
        if (size > MAX_ANSWER_BYTES) fail('its answer is too long');
        else if (code === 0) resolve(Buffer.concat(chunks).toString('utf8'));
        else fail(code === null ? `killed by ${killed}` : `exit status ${code}`);
      });
      // A plugin may end without reading its input; that alone is no failure.
      child.stdin.on('error', () => undefined);
      child.stdin.end(input);
    });
  }
}

const GLOBAL = '\0global';
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const registryOf = (image: string): string => image.split('/')[0] ?? '';

/** Never quotes the answer in an error: it holds secrets. */
function readAnswer(text: string, image: string, config: ProviderConfig): Answer {
  const problem = (what: string): KubeletError =>
    new KubeletError('invalid', `credential provider plugin ${config.name}: ${what}`);
  let answer: Readonly<Record<string, unknown>>;
  try {
    answer = recordOf(parseSecretJson(text));
  } catch {
    throw problem('its answer is not JSON');
  }
  if (answer['kind'] !== 'CredentialProviderResponse') throw problem('its answer is no CredentialProviderResponse');
  if (answer['apiVersion'] !== config.apiVersion)
    throw problem(`its answer has apiVersion ${JSON.stringify(answer['apiVersion'])}, not ${config.apiVersion}`);
  const keys: Record<string, string> = { Image: image, Registry: registryOf(image), Global: GLOBAL };
  const type = String(answer['cacheKeyType']);
  const key = Object.hasOwn(keys, type) ? keys[type] : undefined;
  if (key === undefined) throw problem(`invalid cacheKeyType ${JSON.stringify(answer['cacheKeyType'])}`);
  const logins = Object.entries(recordOf(answer['auth'])).map(([registry, login]) => {
    const { username, password } = recordOf(login);
    return [registry, { username: textOf(username), password: textOf(password) }] as const;
  });
  const said = answer['cacheDuration'];
  const nanos = typeof said === 'string' ? tryParseDuration(said) : undefined;
  return { logins, key, cacheMs: nanos === undefined ? config.defaultCacheMs : nanos / 1e6 };
}

/** Anything else is as good as empty. */
const recordOf = (value: unknown): Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');
