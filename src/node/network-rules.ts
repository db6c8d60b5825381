// The kubelet's iptables chains: a hint chain that tells others which iptables is in use here, a rule that keeps packets
// from outside away from 127.0.0.0/8, and canary chains whose loss shows that somebody flushed the rules. Best effort.
import { execFile } from 'node:child_process';
import { endInput, toolEnvironment } from '../lib/child-environment.ts';
import { withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { runEvery } from '../lib/loop.ts';
import type { Runnable } from '../lib/supervise.ts';

/** Runs `program` with `args`; rejects when it fails. */
export type RunProgram = (program: string, args: readonly string[], signal: AbortSignal) => Promise<void>;

export type NetworkRulesDeps = { clock: Clock; log: Logger; run?: RunProgram };

const EVERY_MS = 60_000;
const TIMEOUT_MS = 30_000;
const HINT = 'KUBE-IPTABLES-HINT';
const FIREWALL = 'KUBE-FIREWALL';
const CANARY = 'KUBE-KUBELET-CANARY';
const TABLES = ['mangle', 'nat', 'filter'];
const BLOCK_LOCALNET = [
  ['-m', 'comment', '--comment', 'block incoming localnet connections'],
  ['--dst', '127.0.0.0/8', '!', '--src', '127.0.0.0/8'],
  ['-m', 'conntrack', '!', '--ctstate', 'RELATED,ESTABLISHED,DNAT', '-j', 'DROP'],
].flat();

export class NetworkRules implements Runnable {
  readonly name = 'network-rules';
  readonly #deps: NetworkRulesDeps;
  /** Families that have no iptables here, told once. */
  readonly #missing = new Set<string>();
  /** Families whose rules were made by this process. */
  readonly #made = new Set<string>();

  constructor(deps: NetworkRulesDeps) {
    this.#deps = deps;
  }

  run(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#deps;
    return runEvery(clock, log, { name: this.name, everyMs: EVERY_MS }, (s) => this.sync(s), signal);
  }

  /** Everything is created only if it is not there, so running it again and again changes nothing. */
  async sync(signal: AbortSignal): Promise<void> {
    for (const program of ['iptables', 'ip6tables']) {
      if (this.#missing.has(program)) continue;
      try {
        await this.#syncFamily(program, signal);
      } catch (err) {
        signal.throwIfAborted();
        // What could be made before can be made again, once whoever holds the lock has let go of it.
        if (!this.#made.has(program)) this.#missing.add(program);
        this.#deps.log.info('no iptables rules for this IP family', { program, reason: messageOf(err) });
      }
    }
  }

  async #syncFamily(program: string, signal: AbortSignal): Promise<void> {
    const hasCanary = await this.#succeeds(program, ['-t', 'mangle', '-S', CANARY, '1'], signal);
    // One that an earlier process left tells nothing of single rules that were lost since.
    if (hasCanary && this.#made.has(program)) return;
    await this.#chain(program, 'mangle', HINT, signal);
    if (program === 'iptables') await this.#firewall(program, signal);
    for (const table of TABLES) await this.#chain(program, table, CANARY, signal);
    this.#made.add(program);
  }

  async #firewall(program: string, signal: AbortSignal): Promise<void> {
    await this.#chain(program, 'filter', FIREWALL, signal);
    await this.#rule(program, '-A', FIREWALL, BLOCK_LOCALNET, signal);
    for (const from of ['OUTPUT', 'INPUT']) await this.#rule(program, '-I', from, ['-j', FIREWALL], signal);
  }

  async #chain(program: string, table: string, chain: string, signal: AbortSignal): Promise<void> {
    if (await this.#succeeds(program, ['-t', table, '-S', chain, '1'], signal)) return;
    await this.#run(program, ['-t', table, '-N', chain], signal);
  }

  async #rule(
    program: string,
    how: '-A' | '-I',
    chain: string,
    rule: readonly string[],
    signal: AbortSignal,
  ): Promise<void> {
    if (await this.#succeeds(program, ['-t', 'filter', '-C', chain, ...rule], signal)) return;
    await this.#run(program, ['-t', 'filter', how, chain, ...rule], signal);
  }

  async #succeeds(program: string, args: readonly string[], signal: AbortSignal): Promise<boolean> {
    try {
      await this.#run(program, args, signal);
      return true;
    } catch {
      signal.throwIfAborted();
      return false; // iptables says "no" by failing; a real failure shows when we try to create
    }
  }

  async #run(program: string, args: readonly string[], signal: AbortSignal): Promise<void> {
    const run = this.#deps.run ?? runProgram;
    await withDeadline(this.#deps.clock, signal, TIMEOUT_MS, (s) => run(program, ['-w', '5', ...args], s));
  }
}

const runProgram: RunProgram = (program, args, signal) =>
  new Promise((resolve, reject) => {
    const child = execFile(program, [...args], { signal, env: toolEnvironment() }, (err, _stdout, stderr) => {
      if (err === null) resolve();
      else reject(new Error(stderr.trim() || err.message, { cause: err }));
    });
    endInput(child);
  });
