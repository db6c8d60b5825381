// Whatever order of pods, slow and failing commands, lost reports and kills a node with network disks goes through: no disk is
// taken away while something holds it, none that is held is missing among the volumes in use, no second pod gets a volume
// for one pod, and in the end what is wanted is mounted and everything else is gone.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { DiskWorld, PODS, type Mood, type PodName } from './attached-disk-world.fixture.ts';

type Action =
  | { readonly do: 'want' | 'remove'; readonly pod: PodName }
  | { readonly do: 'kill'; readonly order: readonly PodName[] }
  | { readonly do: 'advance'; readonly ms: number }
  | { readonly do: 'moods'; readonly moods: readonly Mood[] }
  | { readonly do: 'reports'; readonly moods: readonly Mood[] };

const NAMES = Object.keys(PODS) as PodName[];
const pod = fc.constantFrom(...NAMES);
const moods = fc.array(fc.constantFrom<Mood>('fine', 'slow', 'stuck', 'fails'), { maxLength: 6 });
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constantFrom('want' as const, 'remove' as const), pod }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), order: fc.shuffledSubarray(NAMES) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.oneof(fc.constantFrom(0, 200, 250, 500), fc.integer({ min: 0, max: 90_000 })),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('moods' as const), moods }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('reports' as const), moods }) },
);

async function act(world: DiskWorld, step: Action): Promise<void> {
  switch (step.do) {
    case 'want':
    case 'remove':
      return world[step.do](step.pod);
    case 'kill':
      return world.kill(step.order);
    case 'advance':
      return world.advance(step.ms);
    case 'moods':
    case 'reports':
      world[step.do] = [...step.moods];
  }
}

/** Names of what is wrong when nothing fails any more. */
async function ending(world: DiskWorld): Promise<string[]> {
  Object.assign(world, { moods: [], reports: [] });
  await world.advance(900_000);
  const wrong: string[] = [];
  for (const disk of ['rwop', 'shared'] as const) {
    const wants = [...world.wanted].filter((name) => PODS[name] === disk);
    const has = wants.filter((name) => world.agent.manager.mountsOf(`uid-${name}`).size > 0);
    const fits = disk === 'rwop' ? Math.min(wants.length, 1) : wants.length;
    if (has.length !== fits) wrong.push(`${disk} is mounted for ${has.length} of ${fits} pods`);
    if (wants.length === 0 && (world.isHeld(disk) || world.attached.has(disk))) wrong.push(`${disk} is left`);
  }
  if (world.deleted.size > 0) wrong.push(`pods are left: ${[...world.deleted].join()}`);
  return wrong;
}

const wants = (pod: PodName): Action => ({ do: 'want', pod });
const removes = (pod: PodName): Action => ({ do: 'remove', pod });
const passes = (ms: number): Action => ({ do: 'advance', ms });
const goes = (...of: Mood[]): Action => ({ do: 'moods', moods: of });

const killed = (...order: PodName[]): Action => ({ do: 'kill', order });
const reports = (...of: Mood[]): Action => ({ do: 'reports', moods: of });

const HISTORIES: Readonly<Record<string, readonly Action[]>> = {
  'an unmount takes long': [wants('c'), passes(8_000), goes('stuck'), removes('c'), passes(90_000)],
  'the agent is killed amid an unmount': [
    wants('c'),
    passes(8_000),
    goes('stuck'),
    removes('c'),
    passes(0),
    killed(),
    passes(1_000),
  ],
  'a mount takes long': [goes('fine', 'fine', 'stuck'), wants('c'), passes(80_000), removes('c'), passes(1_000)],
  'a pod goes while its disk is formatted': [goes('fine', 'stuck'), wants('c'), passes(8_000), removes('c'), passes(0)],
  'a volume comes back while the report without it is on its way': [
    wants('c'),
    passes(8_000),
    reports('stuck'),
    removes('c'),
    passes(500),
    passes(15_000),
    wants('d'),
    passes(500),
  ],
  'after a restart another pod comes first': [
    wants('a'),
    passes(8_000),
    wants('b'),
    passes(500),
    killed('b'),
    passes(10_000),
  ],
  'the agent is killed before the pod has its bind': [
    goes('fine', 'stuck'),
    wants('c'),
    passes(8_000),
    removes('c'),
    killed(),
    passes(500),
  ],
};

/** What is wrong with a history. */
async function wrongWith(steps: readonly Action[]): Promise<string[]> {
  const world = new DiskWorld();
  try {
    await world.start();
    for (const step of steps) await act(world, step);
    return [...(await ending(world)), ...new Set(world.violations)];
  } finally {
    await world.end();
  }
}

for (const [what, steps] of Object.entries(HISTORIES))
  test(what, async () => assert.deepEqual(await wrongWith(steps), []));

test('any history of pods with network disks', async () => {
  const property = fc.asyncProperty(fc.array(action, { maxLength: 20 }), async (steps) =>
    assert.deepEqual(await wrongWith(steps), []),
  );
  await fc.assert(property, { numRuns: 40 });
});
