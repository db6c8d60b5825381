import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PodSandboxStatusResponse } from '../cri/gen/cri.ts';
import { aborted } from '../lib/abort.ts';
import { KubeletError } from '../lib/errors.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { imageIn, SandboxImages } from './sandbox-images.ts';

const never = new AbortController().signal;
const answer = (info: string): PodSandboxStatusResponse => ({ info: { info } }) as unknown as PodSandboxStatusResponse;

test('each sandbox is asked about once', async () => {
  let asked = 0;
  const images = new SandboxImages(new ManualClock(), {
    podSandboxStatus: () => Promise.resolve((asked++, answer('{"image":"pause:3.10"}'))),
  });
  assert.equal(await images.of('a', never), 'pause:3.10');
  assert.equal(await images.of('a', never), 'pause:3.10');
  assert.equal(asked, 1);
});

test('a runtime that fails or hangs costs the label, not the page', async () => {
  const failing = new SandboxImages(new ManualClock(), {
    podSandboxStatus: () => Promise.reject(new KubeletError('unavailable', 'down')),
  });
  assert.equal(await failing.of('a', never), '');
  const clock = new ManualClock();
  const hanging = new SandboxImages(clock, {
    podSandboxStatus: async (_, signal) => {
      await aborted(signal);
      throw signal.reason;
    },
  });
  const waiting = hanging.of('a', never);
  await clock.advance(1001);
  assert.equal(await waiting, '');
});

for (const [text, image] of [
  ['{"pid":1,"image":"registry.k8s.io/pause:3.10"}', 'registry.k8s.io/pause:3.10'],
  ['{"pid":1}', ''],
  ['{"image":7}', ''],
  ['null', ''],
  ['not json', ''],
  ['', ''],
] as const)
  test(`image in ${text}`, () => assert.equal(imageIn(text), image));
