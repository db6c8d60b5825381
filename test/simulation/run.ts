// One run: a seed, a profile, and what came of it.
import { Inspector } from './invariants/inspector.ts';
import type { Violation } from './invariants/violation.ts';
import { Lives } from './lives.ts';
import { drawActions, type Action, type Profile } from './workload/actions.ts';
import { perform } from './world/perform.ts';
import { furnishStorage } from './world/storage.ts';
import { World, type WorldOptions } from './world/world.ts';

export type RunOptions = WorldOptions & {
  readonly profile: Profile;
  /** Instead of those drawn from the seed. */
  readonly actions?: readonly Action[];
  /** Ends the run early, with the actions of the whole. */
  readonly stopMs?: number;
};

export type Outcome = {
  readonly seed: number;
  /** The same for every run of the same seed and program. */
  readonly digest: string;
  readonly steps: number;
  readonly simulatedMs: number;
  readonly mostPods: number;
  readonly violations: readonly Violation[];
  readonly actions: readonly Action[];
  readonly lives: Lives;
};

const SAMPLE_MS = 10_000;

export async function simulate(options: RunOptions): Promise<Outcome> {
  const { profile, seed } = options;
  const also = profile.also ?? [];
  const world = await World.create({ ...options, also });
  const inspector = new Inspector(world);
  const crash = (err: unknown): void => world.agent.crash(`unhandled rejection: ${String(err)}`);
  process.on('unhandledRejection', crash);
  await furnish(world);
  await furnishStorage(world, also, (...told) => inspector.report(...told));
  world.state.report = (...told) => inspector.report(...told);
  await world.claims?.furnish();
  world.agent.start();
  const { scheduler } = world;
  const actions = options.actions ?? drawActions(seed, profile);
  const lives = new Lives(world, actions);
  for (const action of actions)
    scheduler.after(action.atMs - scheduler.monotonic(), () => perform(world, action), scheduler.world);
  const look = (): void => {
    world.faults.sample();
    inspector.look();
    scheduler.after(SAMPLE_MS, look, scheduler.world);
  };
  look();
  await scheduler.runUntil(
    Math.min(options.stopMs ?? Infinity, profile.untilMs),
    () => inspector.violations.length > 0,
  );
  process.off('unhandledRejection', crash);
  lives.end(scheduler.monotonic());
  return {
    seed,
    digest: world.digest(),
    steps: scheduler.steps,
    simulatedMs: scheduler.monotonic(),
    mostPods: inspector.mostPods,
    violations: inspector.violations,
    actions,
    lives,
  };
}

/** Objects that pods refer to. */
async function furnish({ api }: World): Promise<void> {
  const at = '/api/v1/namespaces/default';
  await api.admin('POST', `${at}/configmaps`, { metadata: { name: 'settings' }, data: { value: '1' } });
  await api.admin('POST', `${at}/secrets`, { metadata: { name: 'keys' }, data: { key: btoa('1') } });
}
