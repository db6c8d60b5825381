import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { DiskLayouts, layoutOf, type Devices } from './disk-layout.ts';

test('layouts by the devices that hold things', () => {
  const rows: [Devices, string][] = [
    [{ own: 1 }, 'shared'],
    [{ own: 1, images: 1 }, 'shared'],
    [{ own: 1, images: 1, containers: 2 }, 'split'],
    [{ own: 1, images: 2 }, 'dedicated'],
    [{ own: 1, images: 2, containers: 2 }, 'dedicated'],
    [{ own: 1, images: 2, containers: 1 }, 'split'],
    [{ own: 1, images: 2, containers: 3 }, 'split'],
  ];
  for (const [devices, layout] of rows) assert.equal(layoutOf(devices), layout, JSON.stringify(devices));
});

test('a runtime that hangs leaves the layout as it was, after five seconds', async () => {
  const clock = new ManualClock();
  const never = new AbortController().signal;
  let hangs = true;
  const layouts = new DiskLayouts(
    {
      imageFsInfo: (signal) =>
        hangs
          ? new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(new Error('no answer'))))
          : Promise.resolve({ imageFilesystems: [{ fsId: { mountpoint: '/images' } }], containerFilesystems: [] }),
      deviceOf: async (path) => (path === '/images' ? 2 : 1),
      clock,
      log: silentLogger,
    },
    '/var/lib/kubelet',
  );
  const first = layouts.read(never);
  await clock.advance(5000);
  assert.equal(await first, 'shared', 'before anybody said otherwise');
  hangs = false;
  assert.equal(await layouts.read(never), 'dedicated');
  hangs = true;
  await clock.advance(5 * 60_000);
  const last = layouts.read(never);
  await clock.advance(5000);
  assert.equal(await last, 'dedicated');
  assert.equal(clock.pending, 0);
});

test('a layout that was told is not asked for again for five minutes', async () => {
  const clock = new ManualClock();
  const never = new AbortController().signal;
  let [asked, images] = [0, 2];
  const layouts = new DiskLayouts(
    {
      imageFsInfo: async () => {
        asked++;
        return { imageFilesystems: [{ fsId: { mountpoint: '/images' } }], containerFilesystems: [] };
      },
      deviceOf: async (path) => (path === '/images' ? images : 1),
      clock,
      log: silentLogger,
    },
    '/var/lib/kubelet',
  );
  assert.equal(await layouts.read(never), 'dedicated');
  images = 1;
  await clock.advance(299_000);
  assert.equal(await layouts.read(never), 'dedicated');
  assert.equal(asked, 1);
  await clock.advance(1000);
  assert.equal(await layouts.read(never), 'shared');
  assert.equal(asked, 2);
});
