import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RuntimeClass } from '../core/node.ts';
import { abortable } from '../lib/abort.ts';
import { KubeletError } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { OFFLINE_AFTER_MS } from './api-error.ts';
import { RuntimeHandlers } from './runtime-handlers.ts';

const never = new AbortController().signal;
const classOf = (handler: string): RuntimeClass => ({ metadata: { name: 'c' }, handler });

type World = { synced: boolean; now?: string; before?: string; lastError?: unknown };

function setup(world: World) {
  const clock = new ManualClock();
  const kept: string[] = [];
  const handlers = new RuntimeHandlers({
    classes: {
      get synced() {
        return world.synced;
      },
      lastError: world.lastError,
      whenSynced: (signal) =>
        world.synced ? Promise.resolve() : abortable(signal, new Promise<never>(() => undefined)),
      store: { byName: () => (world.now === undefined ? undefined : classOf(world.now)) },
    },
    lastKnown: {
      get: () => (world.before === undefined ? undefined : classOf(world.before)),
      set: (_name, value) => void kept.push(value.handler),
    },
    clock,
  });
  return { clock, kept, handlers };
}

const unreachable = new KubeletError('unavailable', 'connect ECONNREFUSED', { detail: { unreachable: true } });
const rows: [what: string, world: World, handler: string, kept: string[]][] = [
  ['as the API server has it', { synced: true, now: 'runc', before: 'old' }, 'runc', ['runc']],
  ['as it was before, when the server does not answer', { synced: false, before: 'old' }, 'old', []],
  [
    'as it was before, when the server is unreachable',
    { synced: false, before: 'old', lastError: unreachable },
    'old',
    [],
  ],
];
for (const [what, world, handler, kept] of rows)
  test(what, async () => {
    const t = setup(world);
    const asked = t.handlers.handlerOf('c', never);
    await t.clock.advance(OFFLINE_AFTER_MS);
    assert.equal(await asked, handler);
    assert.deepEqual(t.kept, kept);
  });

test('a class that was never known is waited for, and may not exist', async () => {
  await assert.rejects(
    setup({ synced: true }).handlers.handlerOf('c', never),
    /runtimeclass.node.k8s.io "c" not found/,
  );
  const stop = new AbortController();
  const waiting = setup({ synced: false }).handlers.handlerOf('c', stop.signal);
  stop.abort();
  await assert.rejects(waiting);
});
