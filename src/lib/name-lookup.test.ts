import assert from 'node:assert/strict';
import type { LookupAddress } from 'node:dns';
import { describe, it } from 'node:test';
import { NameLookup } from './name-lookup.ts';

type Pending = { readonly name: string; readonly answer: PromiseWithResolvers<LookupAddress[]> };

const unknown = (): Promise<undefined> => Promise.resolve(undefined);

/** A resolver that is answered by hand. */
function byHand(): { names: NameLookup; asked: Pending[] } {
  const asked: Pending[] = [];
  const names = new NameLookup({
    search: unknown,
    system: (name) => {
      const answer = Promise.withResolvers<LookupAddress[]>();
      asked.push({ name, answer });
      return answer.promise;
    },
  });
  return { names, asked };
}

const one = (names: NameLookup, name: string, signal = new AbortController().signal): Promise<unknown> =>
  new Promise((resolve, reject) =>
    names.until(signal)(name, {}, (err, address) => (err === null ? resolve(address) : reject(err))),
  );
const turn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));
const V4 = { address: '192.0.2.1', family: 4 };
const V6 = { address: '2001:db8::1', family: 6 };

describe('names', () => {
  it('that hosts file or name servers know, or owe an answer for, wait for no other name', async () => {
    const asked: string[] = [];
    const names = new NameLookup({
      search: (name) => (name === 'known' ? Promise.resolve([V4]) : new Promise(() => undefined)),
      system: (name) => {
        asked.push(name);
        return Promise.reject(new Error('the system was asked'));
      },
    });
    const gone = new AbortController();
    const slow = one(names, 'slow', gone.signal);
    assert.equal(await one(names, 'known'), '192.0.2.1');
    gone.abort(new Error('over'));
    await assert.rejects(slow, /over/);
    assert.deepEqual(asked, []);
  });

  it('that only the system may know are looked up one at a time, each once for all who ask', async () => {
    const { names, asked } = byHand();
    const [a, again, b] = [one(names, 'a'), one(names, 'a'), one(names, 'b')];
    await turn();
    assert.deepEqual(
      asked.map((q) => q.name),
      ['a'],
    );
    asked[0]?.answer.resolve([V4]);
    assert.deepEqual(await Promise.all([a, again]), ['192.0.2.1', '192.0.2.1']);
    await turn();
    assert.deepEqual(
      asked.map((q) => q.name),
      ['a', 'b'],
    );
    asked[1]?.answer.reject(new Error('no such host'));
    await assert.rejects(b, /no such host/);
  });

  it('that nobody waits for any more are not asked for', async () => {
    const { names, asked } = byHand();
    const slow = one(names, 'slow');
    const gone = new AbortController();
    const dropped = one(names, 'dropped', gone.signal);
    const wanted = one(names, 'wanted');
    await turn();
    gone.abort(new Error('over'));
    await assert.rejects(dropped, /over/);
    asked[0]?.answer.resolve([V4]);
    await slow;
    await turn();
    assert.deepEqual(
      asked.map((q) => q.name),
      ['slow', 'wanted'],
    );
    asked[1]?.answer.resolve([V4]);
    await wanted;
  });

  it('that take long are not asked for again and again', async () => {
    const { names, asked } = byHand();
    for (let i = 0; i < 3; i++) {
      const own = new AbortController();
      const asking = one(names, 'slow', own.signal);
      await turn();
      own.abort(new Error('over'));
      await assert.rejects(asking, /over/);
    }
    const last = one(names, 'slow');
    assert.equal(asked.length, 1);
    asked[0]?.answer.resolve([V6]);
    assert.equal(await last, '2001:db8::1');
    void one(names, 'slow');
    await turn();
    assert.equal(asked.length, 2, 'an answer is not kept');
  });

  it('have all their addresses for who wants them', async () => {
    const names = new NameLookup({ search: () => Promise.resolve([V6, V4]), system: () => Promise.resolve([]) });
    const found = await new Promise((resolve) =>
      names.until(new AbortController().signal)('a', { all: true }, (_, addresses) => resolve(addresses)),
    );
    assert.deepEqual(found, [V6, V4]);
    const none = new NameLookup({ search: unknown, system: () => Promise.resolve([]) });
    await assert.rejects(one(none, 'a'), /a has no address/);
  });
});
