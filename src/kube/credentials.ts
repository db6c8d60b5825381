// Who we are, asked before every request. Files are re-read, plugins re-run when their answer expires or is refused, and
// a certificate that rotated shows as a new identity, on which the transport opens new connections.
import { readFile } from 'node:fs/promises';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runExecPlugin, type ExecAnswer } from './exec-credential.ts';
import type { AuthConfig, ClusterAccess, ExecConfig, TlsIdentity } from './kubeconfig.ts';

export type Identity = { readonly authorization?: string; readonly tls?: TlsIdentity };

export interface Credentials {
  /** Cheap when nothing changed. The same `tls` object is returned until it really changes. */
  current(signal: AbortSignal): Promise<Identity>;
  /** The server answered 401. True when asking again may give something better. */
  refused(): boolean;
}

export type CredentialsDeps = { clock: Clock; log: Logger };

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
      return before !== undefined && before.cert === cert && before.key === key ? before : { cert, key };
    } catch (err) {
      if (before === undefined) {
        throw new KubeletError('denied', `client certificate is unreadable: ${messageOf(err)}`, { cause: err });
      }
      this.#deps.log.warn('client certificate is unreadable, keeping the last one', { err });
      return before;
    }
  }
}

/** Answers of an exec plugin, kept until they expire or the server refuses them. */
class ExecCredentials implements Credentials {
  readonly #deps: CredentialsDeps;
  readonly #access: ClusterAccess;
  readonly #exec: ExecConfig;
  #answer: { identity: Identity; expiresAt: number } | undefined;
  #running: Promise<Identity> | undefined;

  constructor(deps: CredentialsDeps, access: ClusterAccess, exec: ExecConfig) {
    this.#deps = deps;
    this.#access = access;
    this.#exec = exec;
  }

  async current(signal: AbortSignal): Promise<Identity> {
    if (this.#answer !== undefined && this.#deps.clock.now() < this.#answer.expiresAt) return this.#answer.identity;
    this.#running ??= this.#ask(signal).finally(() => (this.#running = undefined));
    return await this.#running;
  }

  refused(): boolean {
    const had = this.#answer !== undefined;
    this.#answer = undefined;
    return had;
  }

  async #ask(signal: AbortSignal): Promise<Identity> {
    const answer: ExecAnswer = await runExecPlugin(this.#deps.clock, this.#exec, this.#access, signal);
    const identity: Identity = {
      ...(answer.token === undefined ? {} : { authorization: `Bearer ${answer.token}` }),
      ...(answer.tls === undefined ? {} : { tls: answer.tls }),
    };
    this.#answer = { identity, expiresAt: answer.expiresAt };
    return identity;
  }
}
