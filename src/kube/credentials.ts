// Who we are, asked before every request. Files are re-read, plugins re-run when their answer expires or is refused, and
// a certificate that rotated shows as a new identity, on which the transport opens new connections.
import { readFile } from 'node:fs/promises';
import { abortable } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runExecPlugin, type ExecAnswer } from './exec-credential.ts';
import type { ExecMetrics, ProgramError } from './exec-metrics.ts';
import type { AuthConfig, ClusterAccess, ExecConfig, TlsIdentity } from './kubeconfig.ts';

export type Identity = { readonly authorization?: string; readonly tls?: TlsIdentity };

export interface Credentials {
  /** Cheap when nothing changed. The same `tls` object is returned until it really changes. */
  current(signal: AbortSignal): Promise<Identity>;
  /** The server answered 401. True when asking again may give something better. */
  refused(): boolean;
}

export type CredentialsDeps = { clock: Clock; log: Logger; execMetrics?: ExecMetrics };

export function credentialsFor(access: ClusterAccess, deps: CredentialsDeps): Credentials {
  if (access.auth.exec !== undefined) return new ExecCredentials(deps, access, access.auth.exec);
  return new ConfiguredCredentials(deps, access.auth);
}

const REREAD_MS = 10_000;

/** Tokens, token files, basic authentication and certificates, inline or in files. */
class ConfiguredCredentials implements Credentials {
  readonly #deps: CredentialsDeps;
  readonly #auth: AuthConfig;
  #readAt = -Infinity;
  #identity: Identity = {};
  #reading: Promise<Identity> | undefined;

  constructor(deps: CredentialsDeps, auth: AuthConfig) {
    this.#deps = deps;
    this.#auth = auth;
  }

  /** Callers at the same moment share one reading, or each would think that the identity had changed. */
  async current(): Promise<Identity> {
    if (this.#deps.clock.monotonic() - this.#readAt < REREAD_MS) return this.#identity;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<Identity> {
    const now = this.#deps.clock.monotonic();
    const authorization = await this.#authorization();
    const tls = await this.#tls();
    this.#readAt = now;
    this.#identity = {
      ...(authorization === undefined ? {} : { authorization }),
      ...(tls === undefined ? {} : { tls }),
    };
    return this.#identity;
  }

  refused(): boolean {
    const fromFiles = this.#auth.tokenFile !== undefined || this.#auth.certFile !== undefined;
    if (fromFiles) this.#readAt = -Infinity;
    return fromFiles;
  }

  async #authorization(): Promise<string | undefined> {
    const { tokenFile, token, basic } = this.#auth;
    if (tokenFile !== undefined) {
      try {
        const text = (await readFile(tokenFile, 'utf8')).trim();
        if (text !== '') return `Bearer ${text}`;
      } catch (err) {
        this.#deps.log.warn('token file is unreadable, keeping the last token', { path: tokenFile, err });
      }
      if (this.#identity.authorization !== undefined) return this.#identity.authorization;
    }
    if (token !== undefined) return `Bearer ${token}`;
    if (basic === undefined) return undefined;
    return `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}`;
  }

  async #tls(): Promise<TlsIdentity | undefined> {
    const { certData, keyData, certFile, keyFile } = this.#auth;
    const before = this.#identity.tls;
    try {
      const cert = certData ?? (certFile === undefined ? undefined : await readFile(certFile, 'utf8'));
      const key = keyData ?? (keyFile === undefined ? undefined : await readFile(keyFile, 'utf8'));
      if (cert === undefined || key === undefined) return undefined;
      return before !== undefined && sameTls(before, { cert, key }) ? before : { cert, key };
    } catch (err) {
      if (before === undefined) {
        throw new KubeletError('denied', `client certificate is unreadable: ${messageOf(err)}`, { cause: err });
      }
      this.#deps.log.warn('client certificate is unreadable, keeping the last one', { err });
      return before;
    }
  }
}

const sameTls = (a: TlsIdentity | undefined, b: TlsIdentity | undefined): boolean =>
  a?.cert === b?.cert && a?.key === b?.key;

/** Everybody who needs credentials waits for the same run: it goes on for as long as somebody does. */
type PluginRun = { readonly identity: Promise<Identity>; readonly stop: AbortController; waiting: number };

/** Answers of an exec plugin, kept until they expire or the server refuses them. */
class ExecCredentials implements Credentials {
  readonly #deps: CredentialsDeps;
  readonly #access: ClusterAccess;
  readonly #exec: ExecConfig;
  #answer: { identity: Identity; expiresAt: number } | undefined;
  /** As last given: the same certificate again is no reason for new connections. */
  #tls: TlsIdentity | undefined;
  #running: PluginRun | undefined;

  constructor(deps: CredentialsDeps, access: ClusterAccess, exec: ExecConfig) {
    this.#deps = deps;
    this.#access = access;
    this.#exec = exec;
  }

  async current(signal: AbortSignal): Promise<Identity> {
    if (this.#answer !== undefined && this.#deps.clock.now() < this.#answer.expiresAt) return this.#answer.identity;
    const run = (this.#running ??= this.#start());
    run.waiting++;
    try {
      return await abortable(signal, run.identity);
    } finally {
      if (--run.waiting === 0) this.#end(run);
    }
  }

  #start(): PluginRun {
    const stop = new AbortController();
    const identity = this.#ask(stop.signal);
    identity.catch(() => undefined); // those who wait hear of it
    return { identity, stop, waiting: 0 };
  }

  /** The answer is there, or nobody waits for it any more. */
  #end(run: PluginRun): void {
    if (this.#running === run) this.#running = undefined;
    run.stop.abort(new KubeletError('cancelled', 'nobody waits for the credentials'));
  }

  refused(): boolean {
    const had = this.#answer !== undefined;
    this.#answer = undefined;
    return had;
  }

  async #ask(signal: AbortSignal): Promise<Identity> {
    const { clock, execMetrics } = this.#deps;
    const called = (err: ProgramError | null): void => execMetrics?.called(err);
    const answer: ExecAnswer = await runExecPlugin({ clock, called }, this.#exec, this.#access, signal);
    execMetrics?.uses(this, answer.tls);
    if (!sameTls(this.#tls, answer.tls)) this.#tls = answer.tls;
    const identity: Identity = {
      ...(answer.token === undefined ? {} : { authorization: `Bearer ${answer.token}` }),
      ...(this.#tls === undefined ? {} : { tls: this.#tls }),
    };
    this.#answer = { identity, expiresAt: answer.expiresAt };
    return identity;
  }
}
