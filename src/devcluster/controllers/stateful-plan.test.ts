import { strict as assert } from 'node:assert';
import { describe, it } from 'node:test';
import { nextSteps, ordinalOf, type Member, type StatefulWish } from './stateful-plan.ts';

const base: StatefulWish = { start: 0, replicas: 3, ordered: true, rolling: true, partition: 0, revision: 'b' };
const STATES = { p: 'pending', a: 'available', f: 'finished', d: 'deleting' } as const;

/** `a:b p:a` are pods 0 and 1: available at revision b, pending at revision a; `-` is none. */
const pods = (text: string, first = 0): Member[] =>
  text
    .split(' ')
    .map((word, i) => ({ word, ordinal: first + i }))
    .filter(({ word }) => /^[pafd]:/.test(word))
    .map(({ word, ordinal }) => ({ ordinal, revision: word.slice(2), state: STATES[word[0] as keyof typeof STATES] }));

const said = (wish: Partial<StatefulWish>, members: readonly Member[]): string =>
  nextSteps({ ...base, ...wish }, members)
    .map((s) => `${s.do === 'create' ? (s.old ? '+old' : '+') : '-'}${s.ordinal}`)
    .join(' ');

describe('steps of a stateful set', () => {
  const rows: readonly (readonly [string, Partial<StatefulWish>, string, string, number?])[] = [
    ['the first pod', {}, '', '+0'],
    ['the second only when the first is available', {}, 'p:b', ''],
    ['the second', {}, 'a:b', '+1'],
    ['a gap is filled before the rest', {}, 'a:b - a:b', '+1'],
    ['one that is going is waited for', {}, 'a:b d:b a:b', ''],
    ['a finished pod is replaced', {}, 'a:b f:b', '-1'],
    ['all are there', {}, 'a:b a:b a:b', ''],
    ['all at once', { ordered: false }, '', '+0 +1 +2'],
    ['all at once, what is missing', { ordered: false }, 'p:b - f:b', '+1 -2'],
    ['smaller: the highest goes', { replicas: 1 }, 'a:b a:b a:b', '-2'],
    ['smaller: the next when it is gone', { replicas: 1 }, 'a:b a:b d:b', ''],
    ['smaller, all at once', { replicas: 1, ordered: false }, 'p:b a:b a:b', '-2 -1'],
    ['to nothing', { replicas: 0 }, 'p:b', '-0'],
    ['a new revision, from the top', {}, 'a:a a:a a:a', '-2'],
    ['a new revision waits for the pod above', {}, 'a:a a:a p:b', ''],
    ['a new revision, the next', {}, 'a:a a:a a:b', '-1'],
    ['a new revision down to the partition', { partition: 2 }, 'a:a a:a a:b', ''],
    ['below the partition the old revision comes back', { partition: 2 }, 'a:a', '+old1'],
    ['above it the new one', { partition: 1 }, 'a:a', '+1'],
    ['only when deleted by hand', { rolling: false }, 'a:a a:a a:a', ''],
    ['a new revision of unordered pods, still one at a time', { ordered: false }, 'a:a a:a a:a', '-2'],
    ['other ordinals', { start: 5, replicas: 2 }, 'a:b', '+6', 5],
    ['other ordinals: those before the start go', { start: 1, replicas: 2 }, 'a:b a:b a:b', '-0'],
  ];
  for (const [name, wish, members, expected, first] of rows)
    it(name, () => assert.equal(said(wish, pods(members, first)), expected));

  it('reads ordinals', () => {
    for (const [name, expected] of [
      ['web-0', 0],
      ['web-12', 12],
      ['web-01', undefined],
      ['web-', undefined],
      ['web-x-1', undefined],
      ['other-1', undefined],
    ] as const)
      assert.equal(ordinalOf('web', name), expected, name);
  });
});
