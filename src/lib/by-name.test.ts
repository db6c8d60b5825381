import assert from 'node:assert/strict';
import { it } from 'node:test';
import { allNamed, named } from './by-name.ts';

const MANY = 30_000;

for (const count of [3, MANY])
  it(`finds the first and all of a name among ${count}`, () => {
    const list = Array.from({ length: count }, (_, i) => ({ name: `c${i}`, i }));
    list.push({ name: 'c1', i: -1 });
    assert.equal(named(list, 'c1')?.i, 1);
    assert.deepEqual(
      allNamed(list, 'c1').map(({ i }) => i),
      [1, -1],
    );
    assert.equal(named(list, '__proto__'), undefined);
  });
