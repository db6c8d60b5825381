import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  answer,
  needsAsking,
  shownState,
  withoutRequest,
  type Asked,
  type CertificateState,
} from './certificate-state.ts';
import type { PodCertificateRequest } from './resources.ts';

const MINUTE = 60_000;
const asked: Asked = { name: 'r', keyPem: 'key', askedMs: 0 };
const issued = { keyPem: 'key', chainPem: '', refreshAtMs: 10 * MINUTE, notAfterMs: 60 * MINUTE };
const waiting: CertificateState = { is: 'waiting', asked };
const refreshing: CertificateState = { is: 'issued', issued, next: asked };
const request = (status?: object): PodCertificateRequest => (status === undefined ? {} : { status }) as never;

test('a request that is not seen is waited for, then made again', () => {
  assert.equal(answer(waiting, asked, undefined, 10 * MINUTE, 0), waiting);
  assert.deepEqual(answer(waiting, asked, undefined, 10 * MINUTE + 1, 0), { is: 'none' });
  assert.deepEqual(answer(refreshing, asked, undefined, 11 * MINUTE, 0), { is: 'issued', issued });
});

test('a request without an answer leaves things as they are', () => {
  assert.equal(answer(waiting, asked, request(), 0, 0), waiting);
  assert.equal(answer(waiting, asked, request({ conditions: [{ type: 'Other' }] }), 0, 0), waiting);
});

test('a signer denies, fails or issues', () => {
  const answered = (type: string, more: object = {}) =>
    answer(waiting, asked, request({ conditions: [{ type, ...more }] }), 0, 0.5);
  assert.deepEqual(answered('Denied', { reason: 'R', message: 'm' }), {
    is: 'refused',
    how: 'denied',
    reason: 'R',
    message: 'm',
  });
  assert.deepEqual(answered('Failed'), { is: 'refused', how: 'failed', reason: '', message: '' });
  assert.deepEqual(answered('Issued'), {
    is: 'issued',
    issued: { keyPem: 'key', chainPem: '', refreshAtMs: 0, notAfterMs: 0 },
  });
});

test('a request that is gone: only its own state changes', () => {
  assert.deepEqual(withoutRequest(waiting, 'r'), { is: 'none' });
  assert.equal(withoutRequest(waiting, 'other'), waiting);
  assert.deepEqual(withoutRequest(refreshing, 'r'), { is: 'issued', issued });
  assert.equal(withoutRequest(refreshing, 'other'), refreshing);
  const none: CertificateState = { is: 'none' };
  assert.equal(withoutRequest(none, 'r'), none);
});

test('asked for when there is none, or when it is time to renew it', () => {
  assert.ok(needsAsking({ is: 'none' }, 0));
  assert.ok(!needsAsking(waiting, 0));
  assert.ok(!needsAsking({ is: 'issued', issued }, 9 * MINUTE));
  assert.ok(needsAsking({ is: 'issued', issued }, 10 * MINUTE));
  assert.ok(!needsAsking(refreshing, 10 * MINUTE));
});

test('states as metrics call them', () => {
  const shown = (state: CertificateState, minutes: number): string => shownState(state, minutes * MINUTE);
  assert.equal(shown({ is: 'none' }, 0), 'not_yet_issued');
  assert.equal(shown(waiting, 0), 'not_yet_issued');
  assert.equal(shown({ is: 'refused', how: 'failed', reason: '', message: '' }, 0), 'failed');
  assert.equal(shown(refreshing, 20), 'fresh');
  assert.equal(shown(refreshing, 21), 'overdue_for_refresh');
  assert.equal(shown(refreshing, 61), 'expired');
});
