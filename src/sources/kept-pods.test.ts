import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CONFIG_SOURCE } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import type { ObservedSandbox, PodSnapshot } from '../core/snapshot.ts';
import { KeptPods } from './kept-pods.ts';
import type { FoundProblem } from './problem.ts';

const podFrom = (source: string): PodSnapshot => ({
  ...aliveSnapshot(source),
  sandboxes: [{ annotations: { [CONFIG_SOURCE]: source } } as unknown as ObservedSandbox],
});

test('a running pod may be wanted while a manifest of its own source is broken', () => {
  let broken: readonly string[] = ['/m/a.yaml', '/m/b.yaml'];
  const told: (readonly FoundProblem[])[] = [];
  const unread = new Map([
    ['file', () => broken],
    ['manifests', () => []],
  ]);
  const kept = new KeptPods({ problems: { set: (_source, found) => void told.push(found) }, unread });
  const wanted = (): string[] =>
    ['file', 'manifests', 'http', 'api'].filter((source) => kept.mayBeWanted(podFrom(source)));
  assert.deepEqual(wanted(), ['file']);
  assert.equal(kept.mayBeWanted(aliveSnapshot('u')), false, 'nothing says where it came from');
  kept.tell([podFrom('file')]);
  assert.deepEqual(told[0], [
    {
      where: 'pod n/file',
      severity: 'warning',
      message:
        'kept, its manifest is broken: no manifest names this running pod, and not usable is /m/a.yaml, /m/b.yaml',
    },
  ]);
  broken = [];
  assert.deepEqual(wanted(), []);
});
