// The pods of the benchmark, and a watch that takes the time of what happens to them.
import type { Pod, PodSpec } from '../src/core/pod.ts';
import type { KubeClient } from '../src/kube/client.ts';
import { Reflector } from '../src/kube/reflector.ts';
import { PODS } from '../src/kube/resources.ts';
import { systemClock } from '../src/lib/clock.ts';
import { isFault } from '../src/lib/errors.ts';
import { silentLogger } from '../src/lib/logger.ts';
import { Semaphore } from '../src/lib/semaphore.ts';
import { BUSYBOX_IMAGE } from '../test/harness/containerd.ts';

export const NAMESPACE = 'default';
export const NODE_NAME = 'bench';
/** Runs until told to stop, then stops at once. The runtime in memory knows no other quotes. */
export const COMMAND = ['/bin/sh', '-c', "trap 'exit 0' TERM; sleep 86400 & wait"];

/** How long a pod lives at least before it is stopped: until its shell listens to signals. */
export const LIFE_MS = 250;

const { signal } = new AbortController();

export type Shape = { readonly spec?: Partial<PodSpec>; readonly container?: object };

export const benchPod = (name: string, shape: Shape = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: NAMESPACE },
  spec: {
    nodeName: NODE_NAME,
    enableServiceLinks: false,
    containers: [
      { name: 'main', image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent', command: COMMAND, ...shape.container },
    ],
    ...shape.spec,
  },
});

/** Monotonic moments in the life of one pod. */
export type Life = {
  createdMs?: number;
  readyMs?: number;
  deletedMs?: number;
  goneMs?: number;
  restarts: number;
  phase?: string;
};

const isReady = (pod: Pod): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

export class PodWatch {
  readonly #client: KubeClient;
  /** A handshake for every pod of many would be work of the client that no kubelet has to do with. */
  readonly #connections = new Semaphore(8);
  readonly #lives = new Map<string, Life>();
  readonly #waiting = new Set<() => void>();
  readonly #stop = new AbortController();
  readonly #reflector: Reflector<Pod>;
  #running: Promise<void> | undefined;

  constructor(client: KubeClient) {
    this.#client = client;
    this.#reflector = new Reflector<Pod>(
      { client, clock: systemClock, log: silentLogger },
      { name: 'bench', resource: PODS, namespace: NAMESPACE },
    );
  }

  async start(): Promise<void> {
    this.#reflector.subscribe((changes) => {
      const now = performance.now();
      for (const { before, after } of changes) {
        const life = this.#life((after ?? before)?.metadata.name ?? '');
        if (after === undefined) life.goneMs ??= now;
        else {
          if (isReady(after)) life.readyMs ??= now;
          life.restarts = after.status?.containerStatuses?.[0]?.restartCount ?? 0;
          life.phase = after.status?.phase ?? '';
        }
      }
      for (const wake of this.#waiting) wake();
    });
    this.#running = this.#reflector.run(this.#stop.signal);
    await this.#reflector.whenSynced(signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async create(name: string, shape?: Shape): Promise<void> {
    this.#lives.set(name, { createdMs: performance.now(), restarts: 0 });
    await this.#connections.run(signal, () =>
      this.#client.create(PODS, { namespace: NAMESPACE }, benchPod(name, shape), signal),
    );
  }

  async delete(name: string, graceSeconds?: number): Promise<void> {
    this.#life(name).deletedMs = performance.now();
    const options = graceSeconds === undefined ? {} : { gracePeriodSeconds: graceSeconds };
    const where = { namespace: NAMESPACE, name };
    await this.#connections
      .run(signal, () => this.#client.delete(PODS, where, options, signal))
      .catch((err: unknown) => {
        if (!isFault(err, 'notFound')) throw err;
      });
  }

  /** Waits until `done` holds for every pod; false when that took too long. */
  async until(names: readonly string[], done: (life: Life) => boolean, withinMs: number): Promise<boolean> {
    const isDone = (): boolean => names.every((name) => done(this.#life(name)));
    if (isDone()) return true;
    return new Promise((resolve) => {
      const finish = (reached: boolean): void => {
        this.#waiting.delete(look);
        timer.cancel();
        resolve(reached);
      };
      const look = (): void => {
        if (isDone()) finish(true);
      };
      const timer = systemClock.after(withinMs, () => finish(false));
      this.#waiting.add(look);
    });
  }

  ready(names: readonly string[], withinMs = 120_000): Promise<boolean> {
    return this.until(names, (life) => life.readyMs !== undefined, withinMs);
  }

  gone(names: readonly string[], withinMs = 120_000): Promise<boolean> {
    return this.until(names, (life) => life.goneMs !== undefined, withinMs);
  }

  /** Deletes and waits until nothing is left. */
  async remove(names: readonly string[], graceSeconds?: number): Promise<void> {
    await Promise.all(names.map((name) => this.delete(name, graceSeconds)));
    await this.gone(names);
  }

  startMs(name: string): number {
    const { createdMs = Number.NaN, readyMs = Number.NaN } = this.#life(name);
    return readyMs - createdMs;
  }

  stopMs(name: string): number {
    const { deletedMs = Number.NaN, goneMs = Number.NaN } = this.#life(name);
    return goneMs - deletedMs;
  }

  lifeOf(name: string): Readonly<Life> {
    return this.#life(name);
  }

  forget(name: string): void {
    this.#lives.delete(name);
  }

  #life(name: string): Life {
    let life = this.#lives.get(name);
    if (life === undefined) this.#lives.set(name, (life = { restarts: 0 }));
    return life;
  }
}

/** `burst-0`, `burst-1`, … */
export const names = (prefix: string, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
