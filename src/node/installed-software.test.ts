import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { InstalledSoftware } from './installed-software.ts';

test('a runtime and a release that were replaced show in a later status, without one that waits for them', async () => {
  const clock = new ManualClock();
  const never = new AbortController().signal;
  const answers: (() => Promise<string>)[] = [
    async () => '2.1.0',
    () => Promise.reject(new Error('down')),
    () => new Promise(() => undefined),
    async () => '2.2.0',
  ];
  let asked = 0;
  const software = new InstalledSoftware(
    {
      runtimeVersion: () => (answers[asked++] ?? (async () => ''))(),
      osImage: async () => `release ${asked}`,
      clock,
      log: silentLogger,
    },
    { runtimeVersion: '2.0.0', osImage: 'release' },
  );
  const shown = async (): Promise<string> => {
    const { runtimeVersion, osImage } = software.latest(never);
    await clock.advance(0);
    return `${runtimeVersion} ${osImage}`;
  };
  assert.equal(await shown(), '2.0.0 release');
  await clock.advance(29_000);
  assert.deepEqual([await shown(), asked], ['2.0.0 release', 0], 'not in every round');
  await clock.advance(1000);
  assert.deepEqual([await shown(), await shown(), asked], ['2.0.0 release', '2.1.0 release 0', 1]);
  await clock.advance(30_000);
  await shown();
  assert.equal(await shown(), '2.1.0 release 0', 'as it was while the runtime is down');
  await clock.advance(30_000);
  await shown();
  await clock.advance(30_000);
  assert.deepEqual([await shown(), await shown(), asked], ['2.1.0 release 0', '2.2.0 release 3', 4]);
});
