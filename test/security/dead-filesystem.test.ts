// A termination message on a filesystem whose server does not answer: its reader is told so in time, and nobody else waits.
// runs: gate
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { containerId, podUid } from '../../src/core/ids.ts';
import { emptySnapshot, type ObservedContainer } from '../../src/core/snapshot.ts';
import { fileTail } from '../../src/host/mounts/file-tail.ts';
import { HostMounter } from '../../src/host/mounts/mounter.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { TerminationMessages } from '../../src/status/termination-messages.ts';
import { removeFolder, temporaryFolder } from '../harness/temporary-folder.ts';
import { untilSeen } from '../harness/until.ts';

const noFuse = existsSync('/dev/fuse') ? false : 'this machine has no /dev/fuse';
const { signal } = new AbortController();

describe('a dead filesystem in the place of a termination message', { skip: noFuse }, () => {
  const root = temporaryFolder('kts-dead-');
  const dead = join(root, 'dead');
  let server: ChildProcess;

  before(async () => {
    mkdirSync(dead);
    const script = join(import.meta.dirname, '..', 'node', 'volumes-fuse-server.ts');
    const child = spawn(process.execPath, ['--no-warnings', script, dead, 'silent'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    server = child;
    await new Promise((resolve) => child.stdout.once('data', resolve));
  });
  after(async () => {
    const gone = new Promise((resolve) => server.once('exit', resolve));
    server.kill('SIGKILL');
    await gone;
    removeFolder(root);
  });

  it('is given up within the deadline, eight at a time, and the file threads stay free', async () => {
    const mounter = new HostMounter({ clock: systemClock });
    const clock = new ManualClock();
    const tail = fileTail({ clock, mounter }, { rootDir: root, timeoutMs: 500 });
    const messages = new TerminationMessages({
      logTail: () => Promise.resolve(''),
      fileTail: (path, maxBytes) => tail(path, maxBytes, signal),
    });
    const containers = Array.from({ length: 8 }, (_, i) => ({
      id: containerId(`c${i}`),
      state: 'exited',
      exitCode: 1,
      reason: 'Error',
      logPath: '',
      annotations: { 'io.kubernetes.container.terminationMessagePath': '/dev/termination-log' },
      mounts: [{ containerPath: '/dev/termination-log', hostPath: join(dead, `x${i}`) }],
    })) as unknown as ObservedContainer[];
    const loading = messages.load({ ...emptySnapshot(podUid('u'), 'p', 'n'), containers }, undefined);
    // All eight wait at once, so the same deadline ends them.
    await untilSeen(
      'all of them are waited for',
      () => clock.pending,
      (count) => count === containers.length,
    );
    assert.ok((await stat('/')).isDirectory());
    await clock.advance(500);
    await loading;
    for (const container of containers)
      assert.match(messages.of(container), /^Error on reading termination log .*: no answer in 500ms$/);
    assert.ok((await stat('/')).isDirectory());
  });
});
