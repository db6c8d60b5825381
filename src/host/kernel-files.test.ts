import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { KernelFiles } from './kernel-files.ts';

describe('files of the kernel', () => {
  const setup = () => {
    const clock = new ManualClock();
    return { clock, files: new KernelFiles(clock) };
  };
  const never = (): Promise<string> => new Promise(() => undefined);

  it('are read by the file threads', async () => {
    const { clock, files } = setup();
    assert.match(await files.text('/proc/self/status'), /^Name:/);
    await assert.rejects(files.text('/proc/none'), { code: 'ENOENT' });
    assert.equal(clock.pending, 0);
  });

  it('are read directly after a second, and at once for a while after that', async () => {
    const { clock, files } = setup();
    const reading = files.answer(never, () => 'direct');
    await clock.advance(1000);
    assert.equal(await reading, 'direct');
    assert.equal(await files.answer(never, () => 'at once'), 'at once');
    await clock.advance(5000);
    assert.equal(
      await files.answer(
        () => Promise.resolve('by a thread'),
        () => 'direct',
      ),
      'by a thread',
    );
    assert.equal(clock.pending, 0);
  });

  it('fail as they do', async () => {
    const { clock, files } = setup();
    const failing = (): never => {
      throw new Error('gone');
    };
    const reading = assert.rejects(files.answer(never, failing), /gone/);
    await clock.advance(1000);
    await reading;
  });
});
