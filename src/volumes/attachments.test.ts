import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../core/node.ts';
import { Attachments } from './attachments.ts';

const never = new AbortController().signal;
const node = (version: number, inUse: readonly string[], attached: readonly string[] = ['x', 'y']): Node => ({
  metadata: { name: 'n', uid: 'n', resourceVersion: String(version) },
  status: { volumesInUse: inUse, volumesAttached: attached.map((name) => ({ name, devicePath: `/dev/${name}` })) },
});

/** A report that the server took and answered. */
function report(to: Attachments, version: number, names: readonly string[], has = names): boolean {
  const isAwaited = to.reportBegins(names);
  to.reportAnswered(node(version, has));
  return isAwaited;
}

test('a volume that comes back is usable when a report that began afterwards was answered with it', async () => {
  const attachments = new Attachments();
  assert.equal(report(attachments, 1, ['x']), true);
  assert.equal(attachments.isUsable('x'), true);
  assert.equal(attachments.reportBegins(['x']), false, 'nothing waits for the next one');
  // It goes. A report without it begins, and it comes back: whatever the server lists may be older than that report.
  attachments.reportBegins([]);
  let path = '';
  const waiting = attachments.whenAttached('x', never).then((at) => (path = at));
  attachments.nodeSeen(node(2, ['x']));
  assert.equal(attachments.isUsable('x'), false, 'the last object from before');
  attachments.reportAnswered(node(3, []));
  attachments.nodeSeen(node(4, ['x']));
  assert.equal(attachments.isUsable('x'), false, 'the answer to the report without it');
  assert.equal(attachments.reportBegins(['x']), true);
  attachments.nodeSeen(node(4, ['x']));
  assert.equal(attachments.isUsable('x'), false, 'the report is on its way');
  assert.equal(path, '');
  attachments.reportAnswered(node(5, ['x']));
  await waiting;
  assert.equal(path, '/dev/x');
});

test('an answer that was lost leaves a volume unusable, whichever report it belonged to', () => {
  const attachments = new Attachments();
  report(attachments, 1, ['x']);
  attachments.reportBegins([]);
  assert.equal(attachments.reportBegins(['x']), true, 'the next report is awaited, though the server seems to know it');
  assert.equal(attachments.isUsable('x'), false);
  attachments.reportAnswered(node(2, []));
  assert.equal(attachments.isUsable('x'), false, 'the lost report had reached the server, this one did not change it');
  assert.equal(report(attachments, 3, ['x']), true);
  assert.equal(attachments.isUsable('x'), true);
});

test('an answer that is older than what is known confirms, but what is known counts', () => {
  const attachments = new Attachments();
  attachments.reportBegins(['x', 'y']);
  attachments.nodeSeen(node(7, ['x', 'y'], ['y']));
  attachments.reportAnswered(node(6, ['x', 'y'], ['x']));
  assert.deepEqual([attachments.isUsable('x'), attachments.isUsable('y')], [false, true]);
  assert.deepEqual([attachments.isAttached('x'), attachments.isAttached('y')], [false, true]);
});
