// How controllers hang on the store: a change of a resource they care about wakes a key, the key is worked on soon after,
// never twice at once, again after a while when it fails. They use the registry in process, with its checks.
import type { Clock } from '../../lib/clock.ts';
import { KeyedRunner } from '../../lib/keyed-runner.ts';
import type { Logger } from '../../lib/logger.ts';
import { GrpcError } from '../../lib/grpc/status.ts';
import { ApiError } from '../api/api-error.ts';
import type { Registry } from '../api/registry.ts';
import type { Change } from '../api/store.ts';

export type ControllerDeps = { readonly registry: Registry; readonly clock: Clock; readonly log: Logger };

export interface Controller {
  readonly name: string;
  /** The keys a change wakes. Sees every change exactly once, so it may keep an index. */
  keysOf(change: Change): readonly string[];
  /** The keys to look at once at the start. */
  initialKeys(): readonly string[];
  /** Looks at the world and makes it right. */
  reconcile(key: string): Promise<void> | void;
}

const RETRY_MS = 1000;

/** Runs controllers until `signal` aborts. `wakes` is filled with a way to wake each by its name. */
export async function runControllers(
  deps: ControllerDeps,
  controllers: readonly Controller[],
  wakes: Map<string, (key: string) => void>,
  signal: AbortSignal,
): Promise<void> {
  const runners = controllers.map((controller) => ({ controller, runner: runnerOf(deps, controller, signal) }));
  for (const { controller, runner } of runners) wakes.set(controller.name, (key) => runner.wake(key));
  const stop = deps.registry.store.onChange((change) => {
    for (const { controller, runner } of runners) for (const key of controller.keysOf(change)) runner.wake(key);
  });
  for (const { controller, runner } of runners) for (const key of controller.initialKeys()) runner.wake(key);
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  stop();
  await Promise.all(runners.map(({ runner }) => runner.stop()));
}

function runnerOf(deps: ControllerDeps, controller: Controller, signal: AbortSignal): KeyedRunner<string> {
  const runner: KeyedRunner<string> = new KeyedRunner<string>({
    concurrency: 4,
    work: async (key) => {
      try {
        await controller.reconcile(key);
      } catch (err) {
        if (signal.aborted) return;
        // Conflicts and the like are the weather here: the next look sees the newer state.
        if (err instanceof GrpcError) deps.log.warn('a driver failed', { controller: controller.name, key, err });
        else if (!(err instanceof ApiError))
          deps.log.error('reconcile failed', { controller: controller.name, key, err });
        else deps.log.debug('reconcile put off', { controller: controller.name, key, err });
        deps.clock.after(RETRY_MS, () => runner.wake(key));
      }
    },
  });
  return runner;
}
