import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Ingest, LayerSize, StoredManifest } from '../cri/containerd-content.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { chooseManifest, PullMeter } from './pull-meter.ts';

const forever = new AbortController().signal;

function setup() {
  const clock = new ManualClock();
  const store = {
    ingests: [] as Ingest[],
    manifests: [] as StoredManifest[],
    layers: [] as LayerSize[],
    present: new Set<string>(),
    asked: [] as string[],
    isContainerd: true,
    free: 1000e6,
    size: undefined as number | undefined,
  };
  const meter = new PullMeter({
    content: {
      ingests: async () => {
        if (!store.isContainerd) throw new KubeletError('unimplemented', 'unknown service');
        return store.ingests;
      },
      manifestsFrom: async (registry) => {
        store.asked.push(registry);
        return store.manifests;
      },
      layersOf: async () => store.layers,
      isPresent: async (digest) => {
        store.asked.push(digest);
        return store.present.has(digest);
      },
    },
    freeBytes: async () => store.free,
    sizeOf: async (image, logins) => {
      store.asked.push(`size of ${image} as ${logins.map((l) => l.username).join()}`);
      if (store.size === undefined) throw new KubeletError('unavailable', 'no answer');
      return store.size;
    },
    clock,
    log: silentLogger,
  });
  return { clock, store, meter };
}

const manifest = (digest: string, layers: string[], createdAtMs: number, repository = 'team/app'): StoredManifest => ({
  digest,
  layers,
  createdAtMs,
  repositories: ['other', repository],
});

describe('progress of a pull', () => {
  it('is the sum of its layers, with rate and time left', async () => {
    const { clock, store, meter } = setup();
    const end = meter.begin('reg.io/team/app:1', 'reg.io/team/app');
    await meter.read(forever);
    assert.equal(meter.progressOf('reg.io/team/app:1'), undefined, 'nothing is known yet');
    store.manifests = [manifest('m', ['a', 'b', 'c'], clock.now())];
    store.layers = [
      { digest: 'config', sizeBytes: 1e6 },
      { digest: 'a', sizeBytes: 49e6 },
      { digest: 'b', sizeBytes: 30e6 },
      { digest: 'c', sizeBytes: 20e6 },
    ];
    store.present.add('config');
    for (let second = 0; second <= 4; second++) {
      store.ingests = [{ digest: 'a', doneBytes: second * 5e6, totalBytes: 49e6 }];
      await meter.read(forever);
      await clock.advance(1000);
    }
    assert.deepEqual(meter.progressOf('reg.io/team/app:1'), {
      source: 'layers',
      doneBytes: 21e6,
      totalBytes: 100e6,
      bytesPerSecond: 5e6,
      remainingSeconds: 79 / 5,
      layers: [
        { digest: 'config', doneBytes: 1e6, totalBytes: 1e6, done: true },
        { digest: 'a', doneBytes: 20e6, totalBytes: 49e6, done: false },
        { digest: 'b', doneBytes: 0, totalBytes: 30e6, done: false },
        { digest: 'c', doneBytes: 0, totalBytes: 20e6, done: false },
      ],
    });
    end();
    assert.equal(meter.progressOf('reg.io/team/app:1'), undefined);
  });

  it('asks about a layer once, and again when its download is over', async () => {
    const { clock, store, meter } = setup();
    meter.begin('reg.io/team/app:1', 'reg.io/team/app');
    store.manifests = [manifest('m', ['a', 'b'], clock.now())];
    store.layers = [
      { digest: 'a', sizeBytes: 10 },
      { digest: 'b', sizeBytes: 10 },
    ];
    store.ingests = [{ digest: 'a', doneBytes: 4, totalBytes: 10 }];
    for (let i = 0; i < 3; i++) await meter.read(forever);
    assert.deepEqual(store.asked, ['reg.io', 'b']);
    store.ingests = [{ digest: 'b', doneBytes: 1, totalBytes: 10 }];
    store.present.add('a');
    for (let i = 0; i < 3; i++) await meter.read(forever);
    assert.deepEqual(store.asked, ['reg.io', 'b', 'a']);
    assert.equal(meter.progressOf('reg.io/team/app:1')?.doneBytes, 11);
    store.ingests = [];
    store.present.add('b');
    await meter.read(forever);
    const { doneBytes, totalBytes, remainingSeconds } = meter.progressOf('reg.io/team/app:1') ?? {};
    assert.deepEqual([doneBytes, totalBytes, remainingSeconds], [20, 20, undefined]);
  });

  it('is how much the disk filled up where the runtime is not containerd', async () => {
    const { clock, store, meter } = setup();
    store.isContainerd = false;
    const end = meter.begin('reg.io/app:1', 'reg.io/app');
    await meter.read(forever);
    store.free += 1e6;
    await meter.read(forever);
    assert.equal(meter.progressOf('reg.io/app:1'), undefined, 'others have freed more');
    for (const freeBytes of [998e6, 992e6]) {
      await clock.advance(2000);
      store.free = freeBytes;
      await meter.read(forever);
    }
    const progress = meter.progressOf('reg.io/app:1');
    assert.deepEqual(progress, { source: 'disk', doneBytes: 8e6, bytesPerSecond: 3e6, layers: [] });
    meter.begin('reg.io/other:1', 'reg.io/other');
    await meter.read(forever);
    assert.equal(meter.progressOf('reg.io/app:1'), undefined, 'nobody knows whose bytes they are');
    end();
  });

  for (const [name, size, freeBytes, expected] of [
    ['against the size that the registry tells', 100e6, 980e6, { source: 'size', totalBytes: 100e6, left: 42 }],
    ['without it once more is unpacked than was to come', 100e6, 890e6, { source: 'disk', left: undefined }],
    ['without it where the registry does not tell', undefined, 980e6, { source: 'disk', left: undefined }],
  ] as const)
    it(`is how much the disk filled up, ${name}`, async () => {
      const { clock, store, meter } = setup();
      store.isContainerd = false;
      store.size = size;
      meter.begin('reg.io/app:1', 'reg.io/app', [{ username: 'me', password: 'x' }]);
      await meter.read(forever);
      store.free -= 1e6;
      await meter.read(forever);
      assert.deepEqual(store.asked, [], 'not of a short pull');
      await clock.advance(10_000);
      store.free = freeBytes;
      await meter.read(forever);
      await meter.read(forever);
      assert.deepEqual(store.asked, ['size of reg.io/app:1 as me'], 'once');
      const { source, totalBytes, remainingSeconds } = meter.progressOf('reg.io/app:1') ?? {};
      assert.deepEqual(
        {
          source,
          ...(totalBytes === undefined ? {} : { totalBytes }),
          left: remainingSeconds === undefined ? undefined : Math.round(remainingSeconds),
        },
        expected,
      );
    });

  it('rests while nothing is pulled', async () => {
    const { clock, store, meter } = setup();
    const stop = new AbortController();
    const running = meter.run(stop.signal);
    await clock.advance(10_000);
    assert.deepEqual(store.asked, []);
    const end = meter.begin('reg.io/app:1', 'reg.io/app');
    await clock.advance(2500);
    assert.deepEqual(store.asked, ['reg.io', 'reg.io', 'reg.io']);
    end();
    await clock.advance(10_000);
    assert.equal(store.asked.length, 3);
    stop.abort();
    await running;
  });
});

describe('the manifest of a pull', () => {
  const wanted = {
    path: 'team/app',
    sinceMs: 1000,
    downloading: (digest: string) => digest === 'busy',
    taken: (digest: string) => digest === 'taken',
  };
  for (const [name, manifests, expected] of [
    ['none', [], undefined],
    ['of another repository', [manifest('m', ['busy'], 2000, 'team/other')], undefined],
    ['with a layer under way, however old', [manifest('m', ['busy'], 1), manifest('n', ['x'], 2000)], 'm'],
    ['the newest that came since', [manifest('m', ['x'], 2000), manifest('n', ['x'], 3000)], 'n'],
    ['not one from before', [manifest('m', ['x'], 999)], undefined],
    ['not that of another pull', [manifest('taken', ['busy'], 2000)], undefined],
  ] as const)
    it(name, () => assert.equal(chooseManifest(manifests, wanted), expected));
});
