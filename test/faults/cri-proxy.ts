// A proxy between a kubelet and a runtime's socket that makes trouble on request: errors, delays, calls that hang, answers
// that get lost after the runtime did the work, duplicated or lost events, connections that break, outages.
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Events } from '../../src/cri/gen/containerd-events.ts';
import { ImageService, RuntimeService } from '../../src/cri/gen/cri.ts';
import { aborted } from '../../src/lib/abort.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import type { Rpc } from '../../src/lib/grpc/rpc.ts';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import { GrpcCode, GrpcError } from '../../src/lib/grpc/status.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';

export type Fault =
  /** The runtime never sees the call. */
  | { readonly do: 'error'; readonly code: GrpcCode; readonly message: string }
  | { readonly do: 'delay'; readonly ms: number }
  /** No answer until the caller gives up; the runtime never sees the call. */
  | { readonly do: 'hang' }
  /** No answer until the rule is lifted, as of a process that is stopped for a while; then it is passed on. */
  | { readonly do: 'freeze' }
  /** The runtime does the work, then every connection breaks before the answer is out. */
  | { readonly do: 'cut' }
  /** The runtime does the work, and the caller gets an answer in which nothing stands. */
  | { readonly do: 'empty' }
  /** The runtime does the work, and the caller is told this instead of the answer. */
  | { readonly do: 'loseAnswer'; readonly code: GrpcCode; readonly message: string };

export type Rule = {
  /** As on the wire: `CreateContainer`; `*` for every unary verb. */
  readonly verb: string;
  readonly fault: Fault;
  /** How many calls it strikes; undefined means all until it is lifted. */
  readonly times?: number;
  /** Only calls whose request it picks. */
  readonly when?: (request: unknown) => boolean;
};

export type ObservedCall = {
  readonly call: string;
  readonly atMs: number;
  readonly tookMs: number;
  readonly request: unknown;
  readonly response?: unknown;
  readonly error?: string;
};

export type EventFault = 'duplicate' | 'drop' | undefined;

type ActiveRule = Rule & { left: number; readonly lifted: AbortController };
const STREAMS: ReadonlySet<string> = new Set([
  RuntimeService.getContainerEvents.path,
  Events.subscribe.path,
  ...[...Object.values(RuntimeService), ...Object.values(ImageService)]
    .map((r) => r.path)
    .filter((p) => /\/Stream/.test(p)),
]);
const ALL: readonly Rpc<unknown, unknown>[] = [
  ...Object.values(RuntimeService),
  ...Object.values(ImageService),
  ...Object.values(Events),
] as unknown as readonly Rpc<unknown, unknown>[];

/** Lists are passed on whatever their size. */
const MAX_RECEIVE_BYTES = 256 * 1024 * 1024;

export class CriProxy {
  readonly root = temporaryFolder('kts-proxy-');
  readonly socketPath = join(this.root, 'cri.sock');
  readonly endpoint = `unix://${this.socketPath}`;
  /** What happens to events on their way. */
  events: EventFault;
  /** How often each verb was called, faults included. */
  readonly counts = new Map<string, number>();
  /** What the caller is told instead of the runtime's answer. */
  rewrite: ((verb: string, answer: unknown) => unknown) | undefined;
  /** Told about every unary call when it is over. */
  observe: ((call: ObservedCall) => void) | undefined;
  readonly #channel: GrpcChannel;
  /** Calls that the runtime is working on, by verb. */
  readonly #underWay = new Map<string, number>();
  /** When the calls began that hang now. */
  readonly #hanging = new Set<{ readonly sinceMs: number }>();
  readonly #rules = new Set<ActiveRule>();
  #server: GrpcServer | undefined;
  #stopped = false;

  constructor(runtimeSocketPath: string) {
    this.#channel = new GrpcChannel(systemClock, {
      target: { socketPath: runtimeSocketPath },
      maxReceiveBytes: MAX_RECEIVE_BYTES,
    });
  }

  async start(): Promise<void> {
    const server = new GrpcServer();
    for (const rpc of ALL) {
      if (STREAMS.has(rpc.path))
        server.serverStream(rpc, (request, signal, send) => this.#stream(rpc, request, signal, send));
      else server.unary(rpc, (request, signal) => this.#observed(rpc, request, signal));
    }
    this.#server = server;
    await server.listen(this.socketPath);
  }

  /** Returns the way to lift the rule before it is used up. */
  inject(rule: Rule): () => void {
    const active: ActiveRule = { ...rule, left: rule.times ?? Infinity, lifted: new AbortController() };
    this.#rules.add(active);
    return () => {
      this.#rules.delete(active);
      active.lifted.abort();
    };
  }

  /** How many calls of the verb the runtime is working on. */
  underWay(verb: string): number {
    return this.#underWay.get(verb) ?? 0;
  }

  /** Since when the longest of the calls hangs that hang now; Infinity when there is none. */
  get hangsSinceMs(): number {
    return Math.min(...[...this.#hanging].map(({ sinceMs }) => sinceMs));
  }

  /** No more faults. */
  lift(): void {
    for (const { lifted } of this.#rules) lifted.abort();
    this.#rules.clear();
  }

  /** Nobody can connect for `ms`; connections that were open break. One outage at a time: two would leave two servers. */
  async outage(ms: number): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    await server.close();
    rmSync(this.socketPath, { force: true });
    await systemClock.sleep(ms, new AbortController().signal);
    if (!this.#stopped) await this.start();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#server?.close();
    this.#channel.close();
    removeFolder(this.root);
  }

  async #observed(rpc: Rpc<unknown, unknown>, request: unknown, signal: AbortSignal): Promise<unknown> {
    const atMs = performance.now();
    const done = (outcome: { response: unknown } | { error: string }): void =>
      this.observe?.({ call: verbOf(rpc), atMs, tookMs: performance.now() - atMs, request, ...outcome });
    try {
      const response = await this.#call(rpc, request, signal);
      done({ response });
      return response;
    } catch (err) {
      done({ error: err instanceof Error ? err.message : String(err) });
      throw err;
    }
  }

  async #call(rpc: Rpc<unknown, unknown>, request: unknown, signal: AbortSignal): Promise<unknown> {
    const verb = verbOf(rpc);
    this.counts.set(verb, (this.counts.get(verb) ?? 0) + 1);
    const rule = this.#strike(verb, request);
    const fault = rule?.fault;
    const forward = (): Promise<unknown> => this.#forward(rpc, request, signal);
    switch (fault?.do) {
      case undefined:
        return forward();
      case 'error':
        throw new GrpcError(fault.code, fault.message);
      case 'delay':
        await systemClock.sleep(fault.ms, signal);
        return forward();
      case 'hang':
        await this.#hang(signal);
        throw new GrpcError(GrpcCode.Canceled, 'the caller gave up');
      case 'freeze':
        await Promise.race([aborted(signal), aborted(rule?.lifted.signal ?? signal)]);
        if (signal.aborted) throw new GrpcError(GrpcCode.Canceled, 'the caller gave up');
        return forward();
      case 'cut':
        await forward();
        await this.outage(0);
        throw new GrpcError(GrpcCode.Unavailable, 'cut');
      case 'empty':
        await forward();
        return {};
      case 'loseAnswer':
        await forward();
        throw new GrpcError(fault.code, fault.message);
    }
  }

  async #hang(signal: AbortSignal): Promise<void> {
    const call = { sinceMs: performance.now() };
    this.#hanging.add(call);
    await aborted(signal);
    this.#hanging.delete(call);
  }

  async #forward(rpc: Rpc<unknown, unknown>, request: unknown, signal: AbortSignal): Promise<unknown> {
    const verb = verbOf(rpc);
    this.#underWay.set(verb, this.underWay(verb) + 1);
    try {
      const answer = await this.#channel.unary(rpc, request, { signal });
      return this.rewrite === undefined ? answer : this.rewrite(verb, answer);
    } finally {
      this.#underWay.set(verb, this.underWay(verb) - 1);
    }
  }

  async #stream(
    rpc: Rpc<unknown, unknown>,
    request: unknown,
    signal: AbortSignal,
    send: (message: unknown) => void,
  ): Promise<void> {
    const fault = this.#strike(verbOf(rpc), request)?.fault;
    if (fault?.do === 'error') throw new GrpcError(fault.code, fault.message);
    await this.#channel.serverStream(rpc, request, { signal }, (message) => {
      if (this.events === 'drop') return;
      send(message);
      if (this.events === 'duplicate') send(message);
    });
  }

  #strike(verb: string, request: unknown): ActiveRule | undefined {
    for (const rule of this.#rules) {
      if (rule.verb !== verb && rule.verb !== '*') continue;
      if (rule.when !== undefined && !rule.when(request)) continue;
      if (--rule.left <= 0) this.#rules.delete(rule);
      return rule;
    }
    return undefined;
  }
}

const verbOf = (rpc: Rpc<unknown, unknown>): string => rpc.path.split('/').at(-1) ?? '';
