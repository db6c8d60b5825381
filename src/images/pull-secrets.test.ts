import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { pullSecretsOf } from './pull-secrets.ts';

const podWith = (...names: (string | undefined)[]): Pod => ({
  metadata: { name: 'p', namespace: 'n' },
  spec: { containers: [], imagePullSecrets: names.map((name) => (name === undefined ? {} : { name })) },
});

const rows: [what: string, names: (string | undefined)[], found: string[], told: number][] = [
  ['none', [], [], 0],
  ['those that are there', ['a', 'b'], ['a', 'b'], 0],
  ['the others are told of', ['a', 'missing', 'forbidden'], ['a'], 1],
  ['names that are none', ['', undefined, 'a'], ['a'], 0],
];

for (const [what, names, found, told] of rows)
  test(what, async () => {
    const events: string[] = [];
    const secrets = await pullSecretsOf(
      {
        secret: async (_namespace, name) => {
          if (name === 'missing') throw new KubeletError('notFound', 'no such secret');
          if (name === 'forbidden') throw new KubeletError('denied', 'no');
          return { metadata: { name } };
        },
        events: {
          pod: (_pod, _type, reason, message) => void events.push(`${reason}: ${message}`),
          node: () => undefined,
        },
      },
      podWith(...names),
      new AbortController().signal,
    );
    assert.deepEqual(
      secrets.map((s) => s.metadata.name),
      found,
    );
    assert.equal(events.length, told);
    if (told > 0) assert.match(events[0] ?? '', /^FailedToRetrieveImagePullSecret: .*\(missing, forbidden\)/);
  });

test('a mistake of ours is no missing secret', async () => {
  const secret = (): Promise<never> => Promise.reject(new TypeError('oops'));
  const events = { pod: () => undefined, node: () => undefined };
  await assert.rejects(pullSecretsOf({ secret, events }, podWith('a'), new AbortController().signal), TypeError);
});

test('of a pod that is called off while its secrets are read nothing is told', async () => {
  const stop = new AbortController();
  const secret = (): Promise<never> => {
    stop.abort(new KubeletError('cancelled', 'the pod is being stopped'));
    return Promise.reject(new KubeletError('cancelled', 'called off'));
  };
  const events = { pod: () => assert.fail('nothing is missing'), node: () => undefined };
  await assert.rejects(pullSecretsOf({ secret, events }, podWith('a'), stop.signal), { kind: 'cancelled' });
});
