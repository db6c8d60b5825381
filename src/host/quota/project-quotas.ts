// Asks the process that makes quota calls. It is started at the first question and ends when nobody asks for a while; one that
// does not answer in time (its disk hangs) is killed, and no other is tried for a minute. Whoever asks then counts files.
import { spawn, type ChildProcessByStdio } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { withDeadline } from '../../lib/abort.ts';
import { partCommand } from '../../lib/built.ts';
import { toolEnvironment } from '../../lib/child-environment.ts';
import type { Clock, Timer } from '../../lib/clock.ts';
import { errnoOf, KubeletError } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import { projectsIn } from './project-files.ts';
import type { ProjectFilePaths, ProjectUsage } from './project-quota.ts';

export type QuotaRequest =
  | { readonly do: 'assign'; readonly path: string }
  | { readonly do: 'usage'; readonly path: string; readonly project: number }
  | { readonly do: 'clear'; readonly path: string };

export type QuotaAnswer = {
  readonly number: number;
  readonly project?: number;
  readonly usage?: ProjectUsage;
  readonly error?: string;
  readonly unsupported?: boolean;
};

export type ProjectQuotasOpts = {
  readonly files?: ProjectFilePaths;
  readonly deadlineMs?: number;
  readonly idleMs?: number;
  /** How long after one that did not answer no other process is started. */
  readonly restMs?: number;
  /** Runs `quota-child.ts`. */
  readonly command?: readonly string[];
};

type Child = ChildProcessByStdio<Writable, Readable, null>;
type Pending = { readonly resolve: (answer: QuotaAnswer) => void; readonly reject: (err: Error) => void };

export class ProjectQuotas {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #o: Required<ProjectQuotasOpts>;
  readonly #projects = new Map<string, number>();
  readonly #pending = new Map<number, Pending>();
  #child: Child | undefined;
  #idle: Timer | undefined;
  #notBefore = 0;
  #number = 0;

  constructor(deps: { readonly clock: Clock; readonly log: Logger }, opts: ProjectQuotasOpts = {}) {
    this.#clock = deps.clock;
    this.#log = deps.log;
    this.#o = {
      files: { projects: '/etc/projects', projid: '/etc/projid' },
      deadlineMs: 10_000,
      idleMs: 5 * 60_000,
      restMs: 60_000,
      command: partCommand('quota-child', import.meta.url),
      ...opts,
    };
  }

  /** From now on what the directory holds is accounted for, if its filesystem can. Says whether it is. */
  async assign(path: string, signal: AbortSignal): Promise<boolean> {
    const { project, error, unsupported } = await this.#ask({ do: 'assign', path }, signal);
    if (project !== undefined) this.#projects.set(path, project);
    else if (unsupported === true) this.#log.debug('volume has no project quota', { path, reason: error });
    else this.#log.warn('volume was given no project quota, its files will be counted', { path, reason: error });
    return project !== undefined;
  }

  /** Undefined: not known this way. */
  async usageOf(path: string, signal: AbortSignal): Promise<ProjectUsage | undefined> {
    const project = this.#projects.get(path);
    if (project === undefined) return undefined;
    const { usage, error } = await this.#ask({ do: 'usage', path, project }, signal);
    if (usage === undefined) this.#log.debug('project quota could not be read', { path, project, reason: error });
    return usage;
  }

  /** To be called before the directory goes. Also for those that an earlier run gave an id. */
  async clear(path: string, signal: AbortSignal): Promise<void> {
    if (!this.#projects.delete(path) && !(await this.#isRecorded(path))) return;
    const { error } = await this.#ask({ do: 'clear', path }, signal);
    if (error !== undefined) this.#log.warn('the project id of a volume was not given back', { path, reason: error });
  }

  close(): void {
    this.#end(new KubeletError('cancelled', 'the kubelet stops'));
  }

  async #isRecorded(path: string): Promise<boolean> {
    try {
      return projectsIn(await readFile(this.#o.files.projects, 'utf8')).has(path);
    } catch (err) {
      if (errnoOf(err) !== 'ENOENT') this.#log.warn('the file of projects is not readable', { err });
      return false;
    }
  }

  /** Never fails but by its signal: without an answer there is an error in it. */
  async #ask(request: QuotaRequest, signal: AbortSignal): Promise<QuotaAnswer> {
    const number = ++this.#number;
    const now = this.#clock.monotonic();
    if (now < this.#notBefore) return { number, error: 'no answer a short time ago' };
    try {
      return await withDeadline(this.#clock, signal, this.#o.deadlineMs, (own) => this.#send(number, request, own));
    } catch (err) {
      signal.throwIfAborted();
      this.#notBefore = this.#clock.monotonic() + this.#o.restMs;
      const cause = err instanceof Error ? err : new Error(String(err));
      this.#end(cause);
      return { number, error: cause.message };
    } finally {
      this.#pending.delete(number);
    }
  }

  #send(number: number, request: QuotaRequest, signal: AbortSignal): Promise<QuotaAnswer> {
    return new Promise((resolve, reject) => {
      this.#pending.set(number, { resolve, reject });
      const onAbort = (): void =>
        reject(signal.reason instanceof Error ? signal.reason : new KubeletError('cancelled', 'cancelled'));
      signal.addEventListener('abort', onAbort, { once: true });
      this.#running().stdin.write(`${JSON.stringify({ number, request })}\n`);
      this.#idle?.cancel();
      this.#idle = this.#clock.after(this.#o.idleMs, () => this.close());
    });
  }

  #running(): Child {
    if (this.#child !== undefined) return this.#child;
    const [program = '', ...args] = this.#o.command;
    const child = spawn(program, [...args, JSON.stringify(this.#o.files)], {
      stdio: ['pipe', 'pipe', 'ignore'],
      env: toolEnvironment(),
    });
    this.#child = child;
    const ended = (): void => {
      if (this.#child === child) this.#end(new KubeletError('unavailable', 'the process for quotas ended'));
    };
    child.on('error', ended);
    child.on('exit', ended);
    // A write to one that has just ended; its end is told above.
    child.stdin.on('error', () => {});
    createInterface({ input: child.stdout }).on('line', (line) => this.#answered(line));
    return child;
  }

  /** The last line of a process that ended amid it is no answer. */
  #answered(line: string): void {
    try {
      const answer = JSON.parse(line) as QuotaAnswer;
      this.#pending.get(answer.number)?.resolve(answer);
    } catch (err) {
      this.#log.debug('the process for quotas said something else', { err });
    }
  }

  /** A process in an uninterruptible call cannot be killed; it is left behind. */
  #end(why: Error): void {
    this.#idle?.cancel();
    this.#idle = undefined;
    const child = this.#child;
    this.#child = undefined;
    child?.kill('SIGKILL');
    child?.stdout.destroy();
    child?.stdin.destroy();
    child?.unref();
    for (const { reject } of this.#pending.values()) reject(why);
    this.#pending.clear();
  }
}
