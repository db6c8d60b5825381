// The simulated machine that the replaced platform modules belong to. One at a time in a process: `boot` puts a new one in
// its place.
import { EventEmitter } from 'node:events';
import type { FileTree } from './file-tree.ts';
import type { Scheduler } from './scheduler.ts';

/** What runs when the agent starts a program. */
export type Command = (command: string, args: readonly string[]) => { code: number; output: string; tookMs: number };

/** Something that takes calls on a socket path or an address. */
export type Listener = {
  /** A method called on it, with messages that are its own; `gone` aborts when the caller left. */
  call(path: string, request: unknown, send: (message: unknown) => void, gone: AbortSignal): Promise<void>;
  /** Told to all connections when it closes. */
  readonly ended: EventEmitter;
};

export type Machine = {
  readonly scheduler: Scheduler;
  readonly files: FileTree;
  /** gRPC servers by socket path. */
  readonly sockets: Map<string, Listener>;
  run: Command;
  /** Told of every call of the agent on a path. */
  readonly onFileCall: Set<(path: string) => void>;
  /** Who answers on the network. */
  network: Network;
  /** Where the world has shutdowns. */
  logind?: Logind | undefined;
};

export interface Logind {
  /** The bus answers. */
  readonly isReachable: boolean;
  property(name: string): bigint | boolean;
  /** Holds shutdowns up until the answer is called. */
  inhibit(): () => void;
  /** Tells of shutdowns; `lost` when the connection broke. */
  listen(on: (down: boolean) => void, lost: () => void): () => void;
}

export type HttpAnswer = { readonly status: number; readonly body: string };

export interface Network {
  /** Undefined: nobody accepts the connection. */
  tcp(host: string, port: number): boolean | 'silent';
  http(host: string, port: number, path: string): HttpAnswer | 'refused' | 'silent';
  api: ApiNetwork;
}

export type ApiRequest = {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
};

/** What the API server sends back; `write` and `end` may come later, from the server's own events. */
export type ApiSink = {
  head(status: number, headers: Readonly<Record<string, string>>): void;
  write(chunk: string): void;
  end(): void;
  fail(err: Error): void;
};

export interface ApiNetwork {
  /** Whether a connection can be made now: refused at once, silence, or yes. */
  reach(): 'refused' | 'silent' | 'yes';
  /** The server takes the request; the answer aborts it. */
  serve(request: ApiRequest, sink: ApiSink): () => void;
  /** Told when all connections break. */
  readonly broken: EventEmitter;
}

let current: Machine | undefined;

export function boot(machine: Machine): void {
  current = machine;
}

export function machine(): Machine {
  if (current === undefined) throw new Error('no simulated machine is running');
  return current;
}

/** An answer that takes `ms` of virtual time and reaches only the process that asked. 0: it is there at once. */
export function later<T>(ms: number, work: () => T): Promise<T> {
  const { scheduler } = machine();
  if (ms === 0) return new Promise((resolve) => resolve(work()));
  return new Promise((resolve, reject) => {
    scheduler.after(ms, () => {
      try {
        resolve(work());
      } catch (err) {
        reject(err as Error);
      }
    });
  });
}

/** The same with a callback, as Node's older calls have it. */
export function answerLater<T>(ms: number, work: () => T, callback: (err: Error | null, value?: T) => void): void {
  const answer = (): void => {
    let value: T;
    try {
      value = work();
    } catch (err) {
      return callback(err as Error);
    }
    callback(null, value);
  };
  if (ms === 0) process.nextTick(answer);
  else machine().scheduler.after(ms, answer);
}
