import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FileBudgets } from './file-budget.ts';

const PER_FILE = 512;
const refusal = { kind: 'invalid', message: /^files of the .* together \(reached at c of volume v2\)$/ };

test('volumes of a pod share one bound, pods do not', () => {
  const budgets = new FileBudgets(4 * PER_FILE + 30);
  budgets.begin('u', 'v1').take(10, 'a');
  const second = budgets.begin('u', 'v2');
  second.take(20, 'b');
  second.take(0, 'b');
  second.take(0, 'b');
  assert.throws(() => second.take(0, 'c'), refusal);
  budgets.begin('other', 'v1').take(10, 'a');
});

test('a new set of files replaces the old one', () => {
  const budgets = new FileBudgets(PER_FILE + 10);
  for (let i = 0; i < 3; i++) budgets.begin('u', 'v').take(10, 'a');
});

test('what was too much stays counted until the volume is tried again or gone', () => {
  const budgets = new FileBudgets(PER_FILE + 10);
  const first = budgets.begin('u', 'v1');
  assert.throws(() => first.take(11, 'a'));
  assert.throws(() => budgets.begin('u', 'v2').take(0, 'c'), refusal);
  budgets.release('u', 'v1');
  budgets.begin('u', 'v2').take(10, 'c');
  budgets.release('u', 'v2');
  budgets.release('u', 'v2');
  assert.equal(budgets.size, 0);
});
