import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { PodGuard } from './pod-guard.ts';

const good = { metadata: { name: 'a', namespace: 'ns', uid: 'u' }, spec: { containers: [{ name: 'c', image: 'i' }] } };
const open = (): { guard: PodGuard; reported: string[] } => {
  const reported: string[] = [];
  const events = { pod: (_p: unknown, _t: unknown, _r: string, message: string) => void reported.push(message) };
  return { guard: new PodGuard({ log: silentLogger, events }), reported };
};
const odd = (change: object): Pod => ({ ...good, ...change }) as unknown as Pod;

describe('pods from the API server', () => {
  it('pass as they are, each looked at once', () => {
    const { guard, reported } = open();
    const [first] = guard.check([odd({})]);
    assert.deepEqual(first, { ...good, status: {} });
    const raw = odd({ status: { phase: 'Running' } });
    assert.equal(guard.check([raw])[0], guard.check([raw])[0]);
    assert.deepEqual(reported, []);
  });

  const broken: readonly [string, object, RegExp][] = [
    ['a list that is none', { spec: { containers: 'x' } }, /spec\.containers.*must be a list/],
    ['a number for a name', { spec: { containers: [{ name: 7 }] } }, /spec\.containers\[0\]\.name/],
    ['a null among containers', { spec: { containers: [null] } }, /spec\.containers\[0\]/],
    ['a way out of the pod', { spec: { containers: [{ name: '../../x' }] } }, /spec\.containers\[0\]\.name/],
    ['a volume called ..', { spec: { containers: [], volumes: [{ name: '..' }] } }, /spec\.volumes\[0\]\.name/],
    ['a spec of another kind', { spec: [] }, /spec: .*must be an object/],
  ];
  for (const [what, change, message] of broken)
    it(`leave out ${what}, and say so once`, () => {
      const { guard, reported } = open();
      const raw = odd(change);
      assert.deepEqual(guard.check([raw]), []);
      guard.check([raw]);
      assert.equal(reported.length, 1);
      assert.match(reported[0] ?? '', message);
    });

  it('keep the spec that was read, until their generation says that it changed', () => {
    const { guard } = open();
    const at = (generation: number, image: string, label: string): Pod =>
      odd({
        metadata: { ...good.metadata, generation, labels: { label } },
        spec: { containers: [{ name: 'c', image }] },
      });
    const [first] = guard.check([at(1, 'one', 'a')]);
    const [second] = guard.check([at(1, 'one', 'b')]);
    assert.equal(second?.spec, first?.spec);
    assert.equal(second?.metadata.labels?.['label'], 'b');
    assert.deepEqual(guard.check([odd({ metadata: { ...good.metadata, generation: 1, labels: 7 } })]), [second]);
    assert.equal(guard.check([at(2, 'two', 'b')])[0]?.spec.containers[0]?.image, 'two');
  });

  it('stay as they were when they become broken', () => {
    const { guard } = open();
    const before = guard.check([odd({})]);
    assert.deepEqual(guard.check([odd({ spec: 'gone mad' })]), before);
    assert.deepEqual(guard.check([]), []);
    assert.deepEqual(guard.check([odd({ spec: 'gone mad' })]), []);
  });

  it('are looked at alone as in a set', () => {
    const { guard, reported } = open();
    const [before] = guard.check([odd({})]);
    assert.equal(guard.checkOne('u', odd({ spec: 'gone mad' })), before, 'what was whole stays as it was');
    assert.equal(guard.checkOne('u', undefined), undefined);
    assert.equal(guard.checkOne('u', odd({ spec: 'gone mad' })), undefined, 'nothing was whole any more');
    assert.equal(reported.length, 2);
    const back = guard.checkOne('u', odd({}));
    assert.deepEqual(guard.check([odd({ spec: 'gone mad' })]), [back]);
  });

  it('lose what is broken in their status', () => {
    const { guard } = open();
    const status = {
      phase: null,
      conditions: 'x',
      containerStatuses: [null, { name: 'c' }],
      podIPs: null,
      reason: 'r',
    };
    assert.deepEqual(guard.check([odd({ status })])[0]?.status, {
      reason: 'r',
      containerStatuses: [{ name: 'c', state: {}, lastState: {} }],
    });
    assert.deepEqual(guard.check([odd({ status: 7 })])[0]?.status, {});
  });

  it('have nulls for nothing', () => {
    const { guard } = open();
    const spec = { containers: null, volumes: null, nodeSelector: null, restartPolicy: null };
    assert.deepEqual(guard.check([odd({ spec })])[0]?.spec, { containers: [] });
  });
});
