// Drains of the node as `kubectl drain` makes them: cordon, evict what is neither of a DaemonSet nor static, one pod after
// another or all at once, leave the node empty for a while, uncordon. Some of the pods come back, as others of their name.
import type { Pod } from '../../../src/core/pod.ts';
import { Random } from '../engine/random.ts';
import { podOf } from '../workload/pods.ts';
import type { World } from './world.ts';

const PODS = '/api/v1/namespaces/default/pods';
const MIRROR = 'kubernetes.io/config.mirror';
const LOOK_MS = 2000;

type Evicted = { readonly name: string; readonly kind: string; readonly uid: string };

export async function drain(world: World, forMs: number, random: Random): Promise<void> {
  const { scheduler } = world;
  const untilMs = scheduler.monotonic() + forMs;
  const grace = random.chance(0.6) ? -1 : random.pick([0, 1, 10, 60]);
  const isPatient = random.chance(0.5);
  await world.cordon(true);
  const evicted = evictable(world);
  for (const pod of evicted) {
    await evict(world, pod.name, grace);
    // One after another: the next when this one is gone, or when the time is up.
    while (isPatient && isThere(world, pod) && scheduler.monotonic() < untilMs) await pass(world, LOOK_MS);
  }
  await pass(world, untilMs - scheduler.monotonic());
  await world.cordon(false);
  for (const { name, kind } of evicted)
    if (random.chance(0.5)) await world.api.admin('POST', PODS, podOf(name, kind, random.int(1, 2 ** 31)));
  world.trace('end drain');
}

function evictable({ api }: World): readonly Evicted[] {
  return api.store
    .list('pods')
    .map(({ object }) => object as unknown as Pod)
    .filter(({ metadata }) => metadata.annotations?.[MIRROR] === undefined)
    .filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.kind === 'DaemonSet') !== true)
    .map(({ metadata: { name, labels, uid = '' } }) => ({ name, kind: labels?.['kind'] ?? '', uid }));
}

const evict = ({ api }: World, name: string, grace: number): Promise<unknown> =>
  api.admin('POST', `${PODS}/${name}/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace: 'default' },
    ...(grace === -1 ? {} : { deleteOptions: { gracePeriodSeconds: grace } }),
  });

const isThere = ({ api }: World, { name, uid }: Evicted): boolean =>
  (api.store.get('pods', `default/${name}`)?.object as { metadata: { uid?: string } } | undefined)?.metadata.uid ===
  uid;

const pass = ({ scheduler }: World, ms: number): Promise<void> =>
  new Promise((resolve) => void scheduler.after(ms, resolve, scheduler.world));
