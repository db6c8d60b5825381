import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Image } from '../cri/gen/cri.ts';
import type { CriImages } from '../cri/services.ts';
import { podUid } from '../core/ids.ts';
import type { Pod } from '../core/pod.ts';
import { emptySnapshot, type ObservedContainer } from '../core/snapshot.ts';
import { GrpcCode, GrpcError } from '../lib/grpc/status.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { bytesToFree, insufficientText, sizeText, usedPercent } from './image-gc-plan.ts';
import { ImageGc, type ImageGcOptions } from './image-gc.ts';

const forever = new AbortController().signal;
const MINUTE = 60_000;

function setup(options: Partial<ImageGcOptions> = {}) {
  const clock = new ManualClock();
  const images = new Map<string, Image>();
  const state = { disk: { capacityBytes: 1000, availableBytes: 500 }, ready: true, used: [] as string[], broken: '' };
  const pods: Pod[] = [];
  const removed: string[] = [];
  const pruned: string[][] = [];
  const events: string[] = [];
  const container = (image: string): ObservedContainer => ({ image, imageId: '', imageRef: '' }) as ObservedContainer;
  const gc = new ImageGc(
    {
      images: {
        listImages: async () => ({ images: [...images.values()] }),
        removeImage: async ({ image }: { image: { image: string } }) => {
          if (image.image === state.broken) throw new GrpcError(GrpcCode.Unknown, 'in use');
          state.disk = {
            ...state.disk,
            availableBytes: state.disk.availableBytes + (images.get(image.image)?.size ?? 0),
          };
          images.delete(image.image);
          removed.push(image.image);
          return {};
        },
      } as unknown as CriImages,
      observed: {
        get ready() {
          return state.ready;
        },
        all: () => [{ ...emptySnapshot(podUid('u'), 'p', 'n'), containers: state.used.map(container) }],
      },
      desired: { all: () => pods },
      records: { prune: async (present) => void pruned.push([...present]) },
      disk: async () => state.disk,
      events: { pod: () => undefined, node: (type, reason, message) => events.push(`${type} ${reason} ${message}`) },
      infra: { clock, log: silentLogger, registry: new Registry() },
    },
    { highThresholdPercent: 85, lowThresholdPercent: 80, minAgeMs: 2 * MINUTE, maxAgeMs: 0, ...options },
  );
  const add = (id: string, size: number, more: Partial<Image> = {}): void =>
    void images.set(id, {
      id,
      repoTags: [`reg.io/${id}:v1`],
      repoDigests: [],
      size,
      username: '',
      pinned: false,
      ...more,
    });
  /** What is there has been known for long enough to be removed. */
  const known = async (): Promise<void> => {
    await gc.collect(forever);
    await clock.advance(2 * MINUTE);
  };
  return { clock, images, state, pods, removed, pruned, events, gc, add, known };
}

describe('image garbage collection', () => {
  it('leaves everything while the disk is empty enough', async () => {
    const t = setup();
    t.add('a', 100);
    t.state.disk = { capacityBytes: 1000, availableBytes: 160 };
    await t.gc.collect(forever);
    assert.deepEqual(t.removed, []);
  });

  it('removes the longest unused first, until the low threshold is reached', async () => {
    const t = setup();
    for (const id of ['old', 'middle', 'young']) t.add(id, 60);
    t.state.used = ['reg.io/young:v1'];
    await t.gc.collect(forever);
    await t.clock.advance(MINUTE);
    t.state.used = ['reg.io/middle:v1'];
    await t.gc.collect(forever);
    await t.clock.advance(MINUTE);
    t.state.used = [];
    t.state.disk = { capacityBytes: 1000, availableBytes: 100 };
    await t.gc.collect(forever);
    assert.deepEqual(t.removed, ['old', 'young']);
  });

  it('keeps pinned images, those of any container, image volumes and static pods', async () => {
    const t = setup();
    t.add('pinned', 60, { pinned: true });
    t.add('by-id', 60);
    t.add('by-digest', 60, { repoTags: [], repoDigests: ['reg.io/d@sha256:1'] });
    t.add('volume', 60);
    t.add('static', 60, { repoTags: ['docker.io/library/static:latest'] });
    t.add('unused', 60);
    t.state.used = ['by-id', 'reg.io/d@sha256:1'];
    t.pods.push(
      {
        metadata: { name: 'v', uid: 'v', annotations: { 'kubernetes.io/config.source': 'api' } },
        spec: {
          containers: [{ name: 'c', image: 'reg.io/unused:v1' }],
          volumes: [{ name: 'i', image: { reference: 'reg.io/volume:v1' } }],
        },
      },
      {
        metadata: { name: 's', uid: 's', annotations: { 'kubernetes.io/config.source': 'file' } },
        spec: { containers: [{ name: 'c', image: 'static' }] },
      },
    );
    await t.known();
    t.state.disk = { capacityBytes: 1000, availableBytes: 0 };
    await assert.rejects(t.gc.collect(forever), { kind: 'exhausted' });
    assert.deepEqual(t.removed, ['unused']);
  });

  it('spares young images, and those it sees for the first time count as young', async () => {
    const t = setup();
    t.add('before', 60);
    t.state.disk = { capacityBytes: 1000, availableBytes: 0 };
    await assert.rejects(t.gc.collect(forever), { kind: 'exhausted' });
    assert.equal(await t.gc.deleteUnused(forever), 0);
    await t.clock.advance(MINUTE);
    t.add('fresh', 60);
    await assert.rejects(t.gc.collect(forever));
    assert.deepEqual(t.removed, []);
    await t.clock.advance(MINUTE);
    await assert.rejects(t.gc.collect(forever));
    assert.deepEqual(t.removed, ['before']);
    await t.clock.advance(MINUTE);
    assert.equal(await t.gc.deleteUnused(forever), 60);
    assert.deepEqual(t.removed, ['before', 'fresh']);
  });

  const ways: readonly (readonly [who: string, go: (t: ReturnType<typeof setup>) => Promise<unknown>])[] = [
    ['for space', (t) => t.gc.deleteUnused(forever)],
    ['by age', (t) => t.gc.collect(forever)],
    ['by somebody else', async (t) => t.images.delete('old')],
  ];
  for (const [who, go] of ways)
    it(`has the record of an image dropped that was removed ${who}`, async () => {
      const t = setup({ maxAgeMs: 3 * MINUTE });
      const stop = new AbortController();
      const running = t.gc.run(stop.signal);
      t.add('old', 60);
      await t.clock.advance(4 * MINUTE);
      await go(t);
      assert.deepEqual([...t.images.keys()], []);
      await t.clock.advance(5 * MINUTE);
      assert.deepEqual(t.pruned.at(-1), []);
      stop.abort();
      await running;
    });

  it('without a minimum age, also removes what it sees for the first time, however long the look takes', async () => {
    const t = setup({ minAgeMs: 0 });
    const now = t.clock.monotonic.bind(t.clock);
    let asked = 0;
    t.clock.monotonic = () => now() + asked++;
    t.add('new', 60);
    t.state.disk = { capacityBytes: 1000, availableBytes: 140 };
    await t.gc.collect(forever);
    t.add('newer', 60);
    assert.equal(await t.gc.deleteUnused(forever), 60);
    assert.deepEqual(t.removed, ['new', 'newer']);
  });

  it('an image grows neither younger nor older by a step of the clock', async () => {
    const back = setup();
    back.add('a', 60);
    await back.known();
    back.clock.jumpWall(-60 * MINUTE);
    assert.equal(await back.gc.deleteUnused(forever), 60);

    const ahead = setup({ maxAgeMs: 60 * MINUTE });
    ahead.add('a', 60);
    const stop = new AbortController();
    const running = ahead.gc.run(stop.signal);
    await ahead.clock.advance(MINUTE);
    ahead.clock.jumpWall(120 * MINUTE);
    await ahead.clock.advance(10 * MINUTE);
    stop.abort();
    await running;
    assert.deepEqual(ahead.removed, []);
  });

  it('collects soon after the start, as soon as it is known what runs', async () => {
    const t = setup({ minAgeMs: 0 });
    t.add('a', 60);
    t.state.disk = { capacityBytes: 1000, availableBytes: 145 };
    t.state.ready = false;
    const stop = new AbortController();
    const running = t.gc.run(stop.signal);
    await t.clock.advance(15_000);
    assert.deepEqual(t.removed, []);
    t.state.ready = true;
    await t.clock.advance(10_000);
    assert.deepEqual(t.removed, ['a']);
    stop.abort();
    await running;
  });

  it('says that it could not free enough', async () => {
    const t = setup();
    t.add('a', 10);
    await t.known();
    t.state.disk = { capacityBytes: 10 * 2 ** 30, availableBytes: 2 ** 30 };
    await assert.rejects(t.gc.collect(forever));
    const text =
      "Insufficient free disk space on the node's image filesystem (90% of 10.0 GiB used). Failed to free sufficient space by deleting unused images (freed 10 bytes). Investigate disk usage, as it could be used by active images, logs, volumes, or other data.";
    assert.deepEqual(t.events, [`Warning FreeDiskSpaceFailed ${text}`]);
  });

  it('goes on past an image that cannot be removed, and tells of it when that was needed', async () => {
    const t = setup();
    for (const id of ['a', 'b']) t.add(id, 60);
    t.state.broken = 'a';
    await t.known();
    t.state.disk = { capacityBytes: 1000, availableBytes: 140 };
    await t.gc.collect(forever);
    assert.deepEqual(t.removed, ['b']);
    t.state.disk = { capacityBytes: 1000, availableBytes: 100 };
    await assert.rejects(t.gc.collect(forever), {
      message:
        'wanted to free 100 bytes, but freed 0 bytes space with errors in image deletion: rpc error: code = Unknown desc = in use',
    });
  });

  it('complains about a disk without size', async () => {
    const t = setup();
    t.state.disk = { capacityBytes: 0, availableBytes: 0 };
    await assert.rejects(t.gc.collect(forever), { message: 'invalid capacity 0 on image filesystem' });
    assert.deepEqual(t.events, ['Warning InvalidDiskCapacity invalid capacity 0 on image filesystem']);
  });

  it('removes by age only after it ran that long, and then what was unused that long', async () => {
    const t = setup({ maxAgeMs: 20 * MINUTE });
    t.add('unused', 60);
    t.add('used', 60);
    t.state.used = ['used'];
    const stop = new AbortController();
    const running = t.gc.run(stop.signal);
    await t.clock.advance(20 * MINUTE);
    assert.deepEqual(t.removed, []);
    await t.clock.advance(5 * MINUTE);
    assert.deepEqual(t.removed, ['unused']);
    t.state.used = [];
    await t.clock.advance(20 * MINUTE);
    assert.deepEqual(t.removed, ['unused']);
    await t.clock.advance(10 * MINUTE);
    assert.deepEqual(t.removed, ['unused', 'used']);
    stop.abort();
    await running;
  });

  it('tells people of the second failure in a row', async () => {
    const t = setup();
    t.state.disk = { capacityBytes: 0, availableBytes: 0 };
    const stop = new AbortController();
    const running = t.gc.run(stop.signal);
    await t.clock.advance(5 * MINUTE);
    assert.equal(t.events.filter((e) => e.includes('ImageGCFailed')).length, 0);
    await t.clock.advance(5 * MINUTE);
    assert.equal(t.events.filter((e) => e.includes('ImageGCFailed')).length, 1);
    stop.abort();
    await running;
  });

  it('removes nothing before the first relist', async () => {
    const t = setup();
    t.add('a', 60);
    t.state.ready = false;
    t.state.disk = { capacityBytes: 1000, availableBytes: 0 };
    await t.gc.collect(forever);
    assert.equal(await t.gc.deleteUnused(forever), 0);
    assert.deepEqual(t.removed, []);
  });

  it('computes as upstream does', () => {
    assert.equal(usedPercent({ capacityBytes: 1000, availableBytes: 151 }), 85);
    assert.equal(bytesToFree({ capacityBytes: 1000, availableBytes: 151 }, 85, 80), 49);
    assert.equal(bytesToFree({ capacityBytes: 1000, availableBytes: 160 }, 85, 80), 0);
    assert.equal(usedPercent({ capacityBytes: 100, availableBytes: 200 }), 0);
    assert.deepEqual(
      [sizeText(512), sizeText(1536), sizeText(43.6e9), sizeText(2 ** 51)],
      ['512 B', '1.5 KiB', '40.6 GiB', '2048.0 TiB'],
    );
    assert.match(insufficientText({ capacityBytes: 100, availableBytes: 5 }, 0), /\(95% of 100 B used\)/);
  });
});
