import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { giveToGroupElsewhere } from './ownership-elsewhere.ts';

const signal = new AbortController().signal;
const how = { gid: process.getgid?.() ?? 0, readOnly: false, changePolicy: 'Always' } as const;
let dir: string;
beforeEach(() => void (dir = mkdtempSync(join(tmpdir(), 'kubelet-ownership-'))));
afterEach(() => rmSync(dir, { recursive: true }));

test('a child changes the files and every one is counted', async () => {
  mkdirSync(join(dir, 'sub'));
  for (let i = 0; i < 25; i++) writeFileSync(join(dir, 'sub', `f${i}`), '', { mode: 0o600 });
  let files = 0;
  await giveToGroupElsewhere(systemClock, dir, how, signal, () => void files++);
  assert.equal(files, 27);
  assert.equal(statSync(join(dir, 'sub/f0')).mode & 0o777, 0o660);
});

test('a failure is told in the words of the child', async () => {
  await assert.rejects(
    giveToGroupElsewhere(systemClock, join(dir, 'missing'), how, signal, () => undefined),
    /ENOENT/,
  );
});

test('what stays as it is is told in the words of the child, and is no failure', async () => {
  const refused: unknown[] = [];
  const onRefused = (why: unknown): void => void refused.push(why);
  await giveToGroupElsewhere(systemClock, '/proc/self/ns', how, signal, () => undefined, { onRefused });
  assert.match(String(refused), /^EPERM/);
});

test('a child sees nothing of the environment of the agent', async (t) => {
  process.env['PLANTED'] = 'a secret of the administrator';
  t.after(() => delete process.env['PLANTED']);
  const command = ['sh', '-c', 'env >&2; exit 1'];
  await assert.rejects(
    giveToGroupElsewhere(systemClock, dir, how, signal, () => undefined, { command }),
    (err: Error) => err.message.includes('PATH=') && !err.message.includes('PLANTED'),
  );
});

test('a child that gets no further is given up, one that does is not', async () => {
  const sh = (script: string): readonly string[] => ['sh', '-c', script];
  const stuck = { idleMs: 200, command: sh('sleep 60') };
  await assert.rejects(
    giveToGroupElsewhere(systemClock, dir, how, signal, () => undefined, stuck),
    {
      kind: 'deadline',
      message: `${dir} did not answer within 200ms`,
    },
  );
  const slow = { idleMs: 2_000, command: sh('for i in 1 2 3 4 5; do echo $i; sleep 0.1; done') };
  const clock = new ManualClock();
  let files = 0;
  const onFile = (): void => {
    files++;
    void clock.advance(1_900);
  };
  await giveToGroupElsewhere(clock, dir, how, signal, onFile, slow);
  assert.equal(files, 5);
  const cancelled = new AbortController();
  const running = giveToGroupElsewhere(systemClock, dir, how, cancelled.signal, () => undefined, stuck);
  cancelled.abort(new Error('no longer wanted'));
  await assert.rejects(running, /no longer wanted/);
});
