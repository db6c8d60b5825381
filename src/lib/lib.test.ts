import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { threadId } from 'node:worker_threads';
import { abortable } from './abort.ts';
import { writeFileAtomic } from './atomic-file.ts';
import { systemClock, WallStamps } from './clock.ts';
import { grpcTimeout } from './grpc/call-headers.ts';
import { ManualClock } from './manual-clock.ts';
import { Registry } from './metrics.ts';
import { TokenBucket } from './token-bucket.ts';

const root = mkdtempSync(join(tmpdir(), 'lib-'));
after(() => rmSync(root, { recursive: true, force: true }));

describe('the clock', () => {
  it('follows a step of the wall clock to the millisecond and keeps stamps of one millisecond in order and apart', () => {
    const stamps = new WallStamps();
    const rows: [wallMs: number, monotonicMs: number, stamp: bigint, why: string][] = [
      [1_700_000_000_123, 55.25, 1_700_000_000_123_250_000n, 'the fraction of the monotonic clock'],
      [1_700_000_000_123, 55.75, 1_700_000_000_123_750_000n, 'half a millisecond later'],
      [1_700_000_000_123, 56.125, 1_700_000_000_123_750_000n, 'the monotonic millisecond is another one'],
      [1_700_000_000_124, 56.25, 1_700_000_000_124_250_000n, 'the next'],
      [1_600_000_000_000, 58.125, 1_600_000_000_000_125_000n, 'set back'],
      [1_600_000_000_000, 99.999999, 1_600_000_000_000_999_999n, 'the end of one'],
    ];
    for (const [wallMs, monotonicMs, stamp, why] of rows) assert.equal(stamps.at(wallMs, monotonicMs), stamp, why);
  });

  it('stamps in order by the clocks of the system', () => {
    let last = systemClock.nowNanos();
    for (let n = 0; n < 50_000; n++) {
      const now = systemClock.nowNanos();
      assert.ok(now >= last, `${now} after ${last}`);
      last = now;
    }
  });

  it('says the same in nanoseconds as in milliseconds', () => {
    const before = systemClock.now();
    const nanos = systemClock.nowNanos();
    assert.ok(nanos / 1_000_000n >= BigInt(before) && nanos / 1_000_000n <= BigInt(systemClock.now()));
  });
});

describe('grpc-timeout', () => {
  for (const [ms, header] of [
    [0.2, '1m'],
    [5000, '5000m'],
    [99_999_999, '99999999m'],
    [100_000_000, '100000S'],
    [28 * 3_600_000, '100800S'],
    [Number.MAX_SAFE_INTEGER, '99999999H'],
  ] as const)
    it(`${ms} ms is ${header}: eight digits at most`, () => assert.equal(grpcTimeout(ms), header));
});

describe('a token bucket', () => {
  it('gets the token back from a wait that was called off', async () => {
    const clock = new ManualClock();
    const bucket = new TokenBucket(clock, 1, 1);
    const signal = new AbortController().signal;
    assert.equal(await bucket.take(signal), 0);
    const stop = new AbortController();
    const waits = bucket.take(stop.signal);
    stop.abort();
    await assert.rejects(waits);
    const next = bucket.take(signal);
    await clock.advance(1000);
    assert.equal(await next, 1000);
  });
});

describe('an atomic file', () => {
  it('leaves nothing beside a target that cannot be replaced', async () => {
    const target = join(root, 'folder');
    mkdirSync(join(target, 'full'), { recursive: true });
    await assert.rejects(writeFileAtomic(target, 'x', 0o600));
    assert.deepEqual(readdirSync(root), ['folder']);
  });

  it('takes away what killed processes left, and nothing that somebody writes', async () => {
    const dir = mkdtempSync(join(root, 'left-'));
    const ended = 2 ** 22 + 1; // more than a kernel gives
    const named = (pid: number, thread = 0): string => `state.${pid}-${thread}-0123456789ab.tmp`;
    const kept = [named(process.ppid), named(process.pid, threadId + 1), 'state.tmp', 'state.1-0-other.tmp'];
    // In a container the killed agent had the number of this one.
    for (const name of [named(ended), named(process.pid, threadId), ...kept]) writeFileSync(join(dir, name), '');
    await writeFileAtomic(join(dir, 'other'), 'x', 0o600);
    assert.deepEqual(readdirSync(dir).sort(), ['other', ...kept].sort());
  });

  it('lets many write beside each other', async () => {
    const dir = mkdtempSync(join(root, 'many-'));
    const names = Array.from({ length: 40 }, (_, i) => `f${i % 8}`);
    await Promise.all(names.map((name) => writeFileAtomic(join(dir, name), name, 0o600)));
    assert.deepEqual(readdirSync(dir).sort(), [...new Set(names)].sort());
  });
});

describe('abortable', () => {
  it('handles the failure of what nobody waits for any more', async () => {
    const unhandled: unknown[] = [];
    const listen = (reason: unknown): void => void unhandled.push(reason);
    process.on('unhandledRejection', listen);
    try {
      await assert.rejects(abortable(AbortSignal.abort(new Error('gone')), Promise.reject(new Error('late'))), /gone/);
      await new Promise((resolve) => setImmediate(resolve));
      assert.deepEqual(unhandled, []);
    } finally {
      process.off('unhandledRejection', listen);
    }
  });
});

it('bounds of buckets are written as Go does', () => {
  const registry = new Registry();
  registry.histogram('h', 'help', [], [0, 0.00001, 0.0001, 0.5, 60, 604_800, 1_000_000, 2_592_000, 16_777_216, 1e12]);
  assert.deepEqual(
    [...registry.render().matchAll(/le="([^"]+)"/g)].map(([, bound]) => bound),
    ['0', '1e-05', '0.0001', '0.5', '60', '604800', '1e+06', '2.592e+06', '1.6777216e+07', '1e+12', '+Inf'],
  );
});
