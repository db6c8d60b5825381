// The end of what a container left in its termination message file, and nothing from anywhere else.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { containerId, podUid } from '../core/ids.ts';
import { tailInProcess } from '../host/mounts/file-tail.ts';
import { emptySnapshot, type ObservedContainer } from '../core/snapshot.ts';
import { TerminationMessages } from './termination-messages.ts';

let dir = '';
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'kts-messages-'));
  writeFileSync(join(dir, 'secret'), 'secret');
  writeFileSync(join(dir, 'plain'), 'said');
  writeFileSync(join(dir, 'empty'), '');
  writeFileSync(join(dir, 'long'), `${'x'.repeat(5000)}end`);
  symlinkSync(join(dir, 'secret'), join(dir, 'link'));
  mkdirSync(join(dir, 'directory'));
  execFileSync('mkfifo', [join(dir, 'pipe')]);
});
after(() => rmSync(dir, { recursive: true, force: true }));

const PATH = '/dev/termination-log';
async function messageIn(file: string, more: Partial<ObservedContainer> = {}, policy = 'File'): Promise<string> {
  const container = {
    id: containerId('c'),
    state: 'exited',
    exitCode: 1,
    reason: 'Error',
    logPath: '/log',
    annotations: {
      'io.kubernetes.container.terminationMessagePath': PATH,
      'io.kubernetes.container.terminationMessagePolicy': policy,
    },
    mounts: [{ containerPath: PATH, hostPath: join(dir, file) }],
    ...more,
  } as unknown as ObservedContainer;
  const messages = new TerminationMessages({ logTail: () => Promise.resolve('from the log'), fileTail: tailInProcess });
  await messages.load({ ...emptySnapshot(podUid('u'), 'p', 'n'), containers: [container] }, undefined);
  return messages.of(container);
}

describe('termination messages', () => {
  it('of a file whose path is not written from the root', async () => {
    const annotations = { 'io.kubernetes.container.terminationMessagePath': 'dev//termination-log' };
    assert.equal(await messageIn('plain', { annotations }), 'said');
  });

  for (const [what, file, expected] of [
    ['what was written', 'plain', 'said'],
    ['the end of it when it is long', 'long', `${'x'.repeat(4093)}end`],
    ['nothing when nothing was', 'empty', ''],
    ['nothing when the file is gone', 'missing', ''],
    ['nothing through a link', 'link', ''],
    ['nothing from a pipe, which would wait for ever', 'pipe', ''],
    ['nothing from a directory', 'directory', ''],
  ] as const)
    it(what, async () => assert.equal(await messageIn(file), expected));

  it('the log instead, where asked for and the container failed', async () => {
    assert.equal(await messageIn('empty', {}, 'FallbackToLogsOnError'), 'from the log');
    assert.equal(await messageIn('plain', {}, 'FallbackToLogsOnError'), 'said');
    assert.equal(await messageIn('empty', { exitCode: 0 }, 'FallbackToLogsOnError'), '');
    assert.equal(await messageIn('empty', { reason: 'ContainerCannotRun' }, 'FallbackToLogsOnError'), '');
  });

  it('a log that cannot be read is said so, and holds up nothing', async () => {
    const messages = new TerminationMessages({
      logTail: () => Promise.reject(new Error('not a regular file')),
      fileTail: tailInProcess,
    });
    const container = {
      id: containerId('c'),
      state: 'exited',
      exitCode: 1,
      reason: 'Error',
      logPath: '/log',
      annotations: { 'io.kubernetes.container.terminationMessagePolicy': 'FallbackToLogsOnError' },
      mounts: [],
    } as unknown as ObservedContainer;
    await messages.load({ ...emptySnapshot(podUid('u'), 'p', 'n'), containers: [container] }, undefined);
    assert.equal(messages.of(container), 'Error on reading termination message from logs: not a regular file');
  });

  it('are forgotten with the container or its pod', async () => {
    const messages = new TerminationMessages({
      logTail: () => Promise.resolve('from the log'),
      fileTail: tailInProcess,
    });
    const ended = (id: string) =>
      ({
        id: containerId(id),
        state: 'exited',
        exitCode: 1,
        reason: 'Error',
        logPath: '/log',
        annotations: { 'io.kubernetes.container.terminationMessagePolicy': 'FallbackToLogsOnError' },
        mounts: [],
      }) as unknown as ObservedContainer;
    const [a, b, c] = [ended('a'), ended('b'), ended('c')];
    const first = { ...emptySnapshot(podUid('u'), 'p', 'n'), containers: [a, b] };
    await messages.load(first, undefined);
    await messages.load({ ...emptySnapshot(podUid('v'), 'q', 'n'), containers: [c] }, undefined);
    await messages.load({ ...first, containers: [b] }, first);
    assert.deepEqual(
      [a, b, c].map((one) => messages.of(one)),
      ['', 'from the log', 'from the log'],
    );
    messages.keepOnly(new Set([podUid('v')]));
    assert.deepEqual(
      [a, b, c].map((one) => messages.of(one)),
      ['', '', 'from the log'],
    );
  });
});
