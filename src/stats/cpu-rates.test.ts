import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { CpuRates } from './cpu-rates.ts';

const SECOND = 1e9;

test('a rate needs two samples that are far enough apart', () => {
  const rates = new CpuRates();
  assert.equal(rates.observe('a', 10 * SECOND, 0), 0, 'nothing is known');
  assert.equal(rates.observe('a', 10.05 * SECOND, 100), 0, 'too close to mean anything');
  assert.equal(rates.observe('a', 11 * SECOND, 2000), 0.5 * SECOND, 'a first idea');
  assert.equal(rates.observe('a', 12 * SECOND, 5000), 0.4 * SECOND, 'a full window');
  assert.equal(rates.observe('a', 15 * SECOND, 6000), 0.4 * SECOND, 'stays until the next full window');
  assert.equal(rates.observe('a', 15 * SECOND, 10_000), 0.6 * SECOND);
});

test('a counter that fell belongs to a new cgroup of the same name', () => {
  const rates = new CpuRates();
  rates.observe('a', 10 * SECOND, 0);
  rates.observe('a', 20 * SECOND, 10_000);
  assert.equal(rates.observe('a', 1 * SECOND, 20_000), 0);
  assert.equal(rates.observe('a', 2 * SECOND, 30_000), 0.1 * SECOND);
});

test('what is gone is forgotten', () => {
  const rates = new CpuRates();
  rates.observe('a', 0, 0);
  rates.observe('b', 0, 0);
  rates.keepOnly(new Set(['b']));
  assert.equal(rates.size, 1);
});

test('steady use shows as that rate, however the samples fall', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 64_000 }),
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 2, maxLength: 40 }),
      (millicores, gaps) => {
        const rates = new CpuRates();
        let at = 0;
        for (const gap of gaps) {
          at += gap;
          const rate = rates.observe('a', millicores * 1000 * at, at);
          assert.ok(rate === 0 || Math.abs(rate - millicores * 1e6) <= 1);
        }
      },
    ),
  );
});
