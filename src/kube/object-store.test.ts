// Events in any order: what the store then has, and which changes it tells of.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeObject } from '../core/meta.ts';
import { compareVersions, ObjectStore, type Change } from './object-store.ts';

const object = (uid: string, version: string, name = 'n', namespace?: string): KubeObject => ({
  metadata: { uid, name, resourceVersion: version, ...(namespace === undefined ? {} : { namespace }) },
});
const versionOf = (o: KubeObject | undefined): string =>
  o === undefined ? '-' : `${o.metadata.uid}@${o.metadata.resourceVersion}`;
const told = (changes: readonly Change<KubeObject>[]): string =>
  changes.map(({ before, after }) => `${versionOf(before)} to ${versionOf(after)}`).join(', ');

type Step = ['set' | 'delete', KubeObject] | ['replace', ...KubeObject[]];
const rows: readonly [string, readonly Step[], readonly string[], string][] = [
  ['a new one', [['set', object('a', '1')]], ['- to a@1'], 'a@1'],
  [
    'a newer one',
    [
      ['set', object('a', '1')],
      ['set', object('a', '2')],
    ],
    ['- to a@1', 'a@1 to a@2'],
    'a@2',
  ],
  [
    'the same again',
    [
      ['set', object('a', '1')],
      ['set', object('a', '1')],
    ],
    ['- to a@1', ''],
    'a@1',
  ],
  [
    'an older one',
    [
      ['set', object('a', '2')],
      ['set', object('a', '1')],
    ],
    ['- to a@2', ''],
    'a@2',
  ],
  [
    'gone',
    [
      ['set', object('a', '1')],
      ['delete', object('a', '2')],
    ],
    ['- to a@1', 'a@1 to -'],
    '-',
  ],
  ['gone before it was seen', [['delete', object('a', '1')]], [''], '-'],
  [
    'a late word on what is gone',
    [
      ['set', object('a', '1')],
      ['delete', object('a', '2')],
      ['set', object('a', '3')],
    ],
    ['- to a@1', 'a@1 to -', ''],
    '-',
  ],
  [
    'the same name anew',
    [
      ['set', object('a', '1')],
      ['set', object('b', '2')],
    ],
    ['- to a@1', 'a@1 to -, - to b@2'],
    'b@2',
  ],
  [
    'a late word on an older one of the same name',
    [
      ['set', object('b', '2')],
      ['set', object('a', '1')],
    ],
    ['- to b@2', ''],
    'b@2',
  ],
  [
    'the end of the older one comes late',
    [
      ['set', object('a', '1')],
      ['set', object('b', '2')],
      ['delete', object('a', '1')],
    ],
    ['- to a@1', 'a@1 to -, - to b@2', ''],
    'b@2',
  ],
  ['a list without it', [['set', object('a', '1')], ['replace']], ['- to a@1', 'a@1 to -'], '-'],
  [
    'a list with it',
    [
      ['set', object('a', '1')],
      ['replace', object('a', '1')],
    ],
    ['- to a@1', ''],
    'a@1',
  ],
  [
    'a list with another version',
    [
      ['set', object('a', '2')],
      ['replace', object('a', '1')],
    ],
    ['- to a@2', 'a@2 to a@1'],
    'a@1',
  ],
  [
    'what a list lacked comes back by an event',
    [['set', object('a', '1')], ['replace'], ['set', object('a', '2')]],
    ['- to a@1', 'a@1 to -', '- to a@2'],
    'a@2',
  ],
  [
    'what was gone is in a list',
    [
      ['set', object('a', '1')],
      ['delete', object('a', '1')],
      ['replace', object('a', '1')],
    ],
    ['- to a@1', 'a@1 to -', '- to a@1'],
    'a@1',
  ],
];

describe('what a reflector knows', () => {
  for (const [name, steps, changes, expected] of rows)
    it(name, () => {
      const store = new ObjectStore<KubeObject>();
      const heard = steps.map(([how, ...objects]) => {
        if (how === 'replace') return told(store.replace(objects));
        const [first] = objects;
        return first === undefined ? '' : told(store[how](first));
      });
      assert.deepEqual(heard, changes);
      assert.equal(versionOf(store.byName(undefined, 'n')), expected);
      assert.equal(store.size, expected === '-' ? 0 : 1);
      assert.equal(versionOf(store.get(expected.split('@')[0] ?? '')), expected);
    });

  it('names are apart by namespace', () => {
    const store = new ObjectStore<KubeObject>();
    store.set(object('a', '1', 'n', 'one'));
    store.set(object('b', '2', 'n', 'two'));
    assert.deepEqual([...store.values()].map(versionOf), ['a@1', 'b@2']);
    assert.equal(versionOf(store.byName('one', 'n')), 'a@1');
    assert.equal(store.byName(undefined, 'n'), undefined);
  });
});

it('an object without UID and version is one like others', () => {
  const store = new ObjectStore<KubeObject>();
  const bare: KubeObject = { metadata: { name: 'n' } };
  assert.equal(store.set(bare).length, 1);
  assert.equal(store.set(bare).length, 0);
  assert.equal(store.replace([bare]).length, 0);
  assert.equal(store.delete(bare).length, 1);
});

describe('resource versions', () => {
  for (const [a, b, sign] of [
    ['1', '1', 0],
    ['2', '1', 1],
    ['1', '2', -1],
    ['10', '9', 1],
    ['9', '10', -1],
    ['x', '9', 1],
    ['9', 'x', 1],
  ] as const)
    it(`${a} and ${b}`, () => assert.equal(Math.sign(compareVersions(a, b)), sign));
});
