import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { Secret } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { isFault } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { ObjectCache, type ChangeDetection } from './object-cache.ts';
import { configMapsOf, secretsOf } from './pod-references.ts';
import { RecordingClient, unreachable } from './recording-client.ts';
import { SECRETS } from './resources.ts';

const signal = new AbortController().signal;
const secret = (name: string, version: number, immutable = false): Secret => ({
  metadata: { name, namespace: 'ns', uid: `uid-${name}`, resourceVersion: String(version) },
  data: { v: String(version) },
  ...(immutable ? { immutable } : {}),
});
const podUsing = (uid: string, ...names: string[]): Pod => ({
  metadata: { name: uid, namespace: 'ns', uid },
  spec: { containers: [], imagePullSecrets: names.map((name) => ({ name })) },
});
const bookmark = {
  type: 'BOOKMARK',
  object: { metadata: { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } } },
};

function open(
  strategy: ChangeDetection,
  objects: Map<string, Secret>,
  lastKnown?: Map<string, Secret>,
): {
  cache: ObjectCache<Secret>;
  client: RecordingClient;
  clock: ManualClock;
  heard: string[];
  stop: () => Promise<void>;
} {
  const clock = new ManualClock();
  const client = new RecordingClient((call) => {
    const name = /(?:name%3D|secrets\/)([a-z]+)/.exec(call.target)?.[1] ?? '';
    const found = objects.get(name);
    if (call.verb === 'GET') return found;
    return [...(found === undefined ? [] : [{ type: 'ADDED', object: found }]), bookmark];
  });
  const heard: string[] = [];
  const cache = new ObjectCache<Secret>(
    {
      client,
      clock,
      log: silentLogger,
      ...(lastKnown === undefined ? {} : { lastKnown }),
      onChange: ({ namespace, name, object, pods }) =>
        heard.push(`${namespace}/${name} ${object?.data?.['v'] ?? 'none'} ${pods.join('+')}`),
    },
    { name: 'secrets', resource: SECRETS, strategy, namesOf: secretsOf },
  );
  const end = new AbortController();
  const running = cache.run(end.signal);
  const stop = async (): Promise<void> => {
    end.abort();
    await running;
  };
  return { cache, client, clock, heard, stop };
}

describe('ObjectCache with Watch', () => {
  it('opens one watch per object while a pod refers to it, and serves from it', async () => {
    const t = open('Watch', new Map([['a', secret('a', 1)]]));
    t.cache.register(podUsing('p1', 'a'));
    t.cache.register(podUsing('p2', 'a', 'b'));
    t.cache.register(podUsing('p2', 'a', 'b'));
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, 2);
    assert.ok(t.client.log[0]?.startsWith('WATCH /api/v1/namespaces/ns/secrets?allowWatchBookmarks=true'));
    const seconds = Number(/timeoutSeconds=(\d+)/.exec(t.client.log[0] ?? '')?.[1]);
    assert.ok(seconds >= 1800 && seconds < 3600);
    assert.deepEqual(t.heard, [], 'what a watch begins with is news to nobody');
    assert.equal((await t.cache.get('ns', 'a', signal)).data?.['v'], '1');
    await assert.rejects(
      t.cache.get('ns', 'b', signal),
      (e) => isFault(e, 'notFound') && e.message === 'secret "b" not found',
    );
    assert.equal(t.client.calls.length, 2, 'no further request');
    t.cache.unregister(podUid('p1'));
    assert.equal(t.cache.watches, 2);
    t.cache.register(podUsing('p2', 'b'));
    assert.equal(t.cache.watches, 1, 'nobody refers to a any more');
    await t.stop();
  });

  it('looks at a pod object once, and again after the pod was let go', async () => {
    const t = open('Watch', new Map([['a', secret('a', 1)]]));
    const pod = podUsing('p1', 'a');
    t.cache.register(pod);
    t.cache.register(pod);
    assert.equal(t.cache.watches, 1);
    t.cache.unregister(podUid('p1'));
    assert.equal(t.cache.watches, 0);
    t.cache.register(pod);
    assert.equal(t.cache.watches, 1);
    await t.stop();
  });

  it('stops watching what is immutable and keeps it', async () => {
    const t = open('Watch', new Map([['a', secret('a', 1, true)]]));
    t.cache.register(podUsing('p1', 'a'));
    await t.clock.advance(0);
    assert.equal(t.cache.watches, 0);
    assert.equal((await t.cache.get('ns', 'a', signal)).immutable, true);
    t.cache.register(podUsing('p2', 'a'));
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, 1);
    await t.stop();
  });

  it('asks the server itself when the watch does not come up', async () => {
    const t = open('Watch', new Map([['a', secret('a', 1)]]));
    const answer = t.client.answer;
    t.client.answer = (call) => {
      if (call.verb === 'WATCH') throw unreachable();
      return answer(call);
    };
    t.cache.register(podUsing('p1', 'a'));
    const got = t.cache.get('ns', 'a', signal);
    await t.clock.advance(1500);
    assert.equal((await got).data?.['v'], '1');
    await t.stop();
  });
});

describe('ObjectCache tells of changes', () => {
  /** A server whose watch is silent until told to speak, and whose reads wait for their answer. */
  function slowWatch(objects: Map<string, Secret>): ReturnType<typeof open> & { speak: () => void } {
    const t = open('Watch', objects);
    const answer = t.client.answer;
    let isSilent = true;
    t.client.answer = (call) => {
      if (call.verb === 'WATCH' && isSilent) throw unreachable();
      return answer(call);
    };
    return { ...t, speak: () => (isSilent = false) };
  }

  const rows: [string, number, number | undefined, readonly string[]][] = [
    ['the same as was read before', 1, 1, []],
    ['another than was read before', 1, 2, ['ns/a 2 p1']],
    ['gone since it was read', 1, undefined, ['ns/a none p1']],
  ];
  for (const [what, before, after, heard] of rows) {
    it(`when a watch begins with an object that is ${what}`, async () => {
      const objects = new Map([['a', secret('a', before)]]);
      const t = slowWatch(objects);
      t.cache.register(podUsing('p1', 'a'));
      const got = t.cache.get('ns', 'a', signal);
      await t.clock.advance(1500);
      assert.equal((await got).data?.['v'], String(before));
      if (after === undefined) objects.delete('a');
      else objects.set('a', secret('a', after));
      t.speak();
      await t.clock.advance(60_000);
      assert.deepEqual(t.heard, heard);
      await t.stop();
    });
  }

  it('when an object appears that a caller was told is not there', async () => {
    const objects = new Map<string, Secret>();
    const t = slowWatch(objects);
    t.cache.register(podUsing('p1', 'a'));
    const refused = assert.rejects(t.cache.get('ns', 'a', signal));
    await t.clock.advance(1500);
    await refused;
    objects.set('a', secret('a', 1));
    t.speak();
    await t.clock.advance(60_000);
    assert.deepEqual(t.heard, ['ns/a 1 p1']);
    await t.stop();
  });

  it('when two callers were told different versions, though the second is the present one', async () => {
    const objects = new Map([['a', secret('a', 1)]]);
    const t = slowWatch(objects);
    t.cache.register(podUsing('p1', 'a'));
    for (const version of [1, 2]) {
      objects.set('a', secret('a', version));
      const got = t.cache.get('ns', 'a', signal);
      await t.clock.advance(1500);
      assert.equal((await got).data?.['v'], String(version));
    }
    t.speak();
    await t.clock.advance(60_000);
    assert.deepEqual(t.heard, ['ns/a 2 p1']);
    await t.stop();
  });
});

describe('ObjectCache with the other strategies', () => {
  it('Get reads every time, Cache for a minute', async () => {
    for (const [strategy, reads] of [
      ['Get', 4],
      ['Cache', 2],
    ] as const) {
      const t = open(strategy, new Map([['a', secret('a', 1)]]));
      t.cache.register(podUsing('p1', 'a'));
      for (const ms of [0, 30_000, 20_000, 20_000]) {
        await t.clock.advance(ms);
        await t.cache.get('ns', 'a', signal);
      }
      assert.equal(t.client.calls.length, reads, strategy);
      await t.stop();
    }
  });
});

describe('references of a pod', () => {
  it('finds every kind of reference', () => {
    const pod: Pod = {
      metadata: { name: 'p' },
      spec: {
        imagePullSecrets: [{ name: 'pull' }],
        initContainers: [
          { name: 'i', envFrom: [{ secretRef: { name: 's-from' } }, { configMapRef: { name: 'c-from' } }] },
        ],
        containers: [
          {
            name: 'c',
            env: [
              { name: 'A', valueFrom: { secretKeyRef: { name: 's-key', key: 'k' } } },
              { name: 'B', valueFrom: { configMapKeyRef: { name: 'c-key', key: 'k' } } },
            ],
          },
        ],
        volumes: [
          { name: '1', secret: { secretName: 's-vol' } },
          { name: '2', configMap: { name: 'c-vol' } },
          { name: '3', projected: { sources: [{ secret: { name: 's-pro' } }, { configMap: { name: 'c-pro' } }] } },
          { name: '4', csi: { driver: 'd', nodePublishSecretRef: { name: 's-csi' } } },
          { name: '5', iscsi: { secretRef: { name: 's-iscsi' } } },
          { name: '6', azureFile: { secretName: 's-azure' } },
        ],
      },
    };
    assert.deepEqual([...secretsOf(pod)], ['pull', 's-from', 's-key', 's-vol', 's-pro', 's-csi', 's-iscsi', 's-azure']);
    assert.deepEqual([...configMapsOf(pod)], ['c-from', 'c-key', 'c-vol', 'c-pro']);
  });
});

describe('ObjectCache with what was known before', () => {
  for (const strategy of ['Watch', 'Cache', 'Get'] as const)
    it(`remembers what it reads, and falls back to it while the server is away (${strategy})`, async () => {
      const known = new Map<string, Secret>();
      const objects = new Map([['a', secret('a', 1)]]);
      const first = open(strategy, objects, known);
      first.cache.register(podUsing('p1', 'a'));
      await first.clock.advance(0);
      await first.cache.get('ns', 'a', signal);
      assert.deepEqual([...known.keys()], ['ns/a']);
      await first.stop();

      const next = open(strategy, objects, known);
      const online = next.client.answer;
      next.client.answer = () => {
        throw unreachable();
      };
      next.cache.register(podUsing('p1', 'a', 'b'));
      const got = next.cache.get('ns', 'a', signal);
      const none = next.cache.get('ns', 'b', signal);
      none.catch(() => undefined); // looked at below
      await next.clock.advance(1100);
      assert.equal((await got).data?.['v'], '1');
      await assert.rejects(none, { kind: 'unavailable' });

      objects.set('a', secret('a', 2));
      next.client.answer = online;
      await next.clock.advance(61_000);
      assert.equal((await next.cache.get('ns', 'a', signal)).data?.['v'], '2', 'fresh values replace');
      assert.equal(known.get('ns/a')?.data?.['v'], '2');
      await next.stop();
    });

  it('believes the server that an object is gone', async () => {
    const known = new Map([['ns/a', secret('a', 1)]]);
    const t = open('Get', new Map(), known);
    await assert.rejects(t.cache.get('ns', 'a', signal), { kind: 'notFound' });
    assert.equal(known.size, 0);
    await t.stop();
  });
});
