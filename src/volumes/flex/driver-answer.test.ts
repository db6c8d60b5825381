import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { answerOf } from './driver-answer.ts';

const all = { attach: true, selinuxRelabel: true, supportsMetrics: false, fsGroup: true, requiresFSResize: true };

describe('what a driver answered', () => {
  const rows: readonly [string, string, number, unknown][] = [
    ['success', '{"status":"Success"}', 0, { is: 'success', device: '', can: all }],
    ['with a device', '{"status":"Success","device":"/dev/x"}', 0, { is: 'success', device: '/dev/x', can: all }],
    [
      'what it cannot do',
      '{"status":"Success","capabilities":{"attach":false,"fsGroup":false,"supportsMetrics":true}}',
      0,
      { is: 'success', device: '', can: { ...all, attach: false, fsGroup: false, supportsMetrics: true } },
    ],
    [
      'in another case',
      '{"Status":"Success","Capabilities":{"SELinuxRelabel":false,"requiresfsresize":false}}',
      0,
      { is: 'success', device: '', can: { ...all, selinuxRelabel: false, requiresFSResize: false } },
    ],
    ['nothing about itself', '{"status":"Success","capabilities":null}', 0, { is: 'success', device: '', can: all }],
    ['left to us', '{"status":"Not supported"}', 0, { is: 'notSupported' }],
    ['left to us, and failed', '{"status":"Not supported"}', 1, { is: 'notSupported' }],
    [
      'a failure',
      '{"status":"Failure","message":"no such share"}',
      1,
      { is: 'failure', message: 'mount command failed, status: Failure, reason: no such share' },
    ],
    [
      'a failure that exits well',
      '{"status":"Failure"}',
      0,
      { is: 'failure', message: 'mount command failed, status: Failure, reason: ' },
    ],
    ['no status', '{}', 0, { is: 'failure', message: 'mount command failed, status: , reason: ' }],
    ['null', 'null', 0, { is: 'failure', message: 'mount command failed, status: , reason: ' }],
    [
      'contradicts itself',
      '{"status":"Success"}',
      3,
      { is: 'failure', message: 'mount command failed: exit status 3' },
    ],
    ['nothing', '', 0, { is: 'failure', message: 'mount command failed: unexpected end of JSON input' }],
    [
      'garbage',
      'sh: 1: jq: not found',
      127,
      { is: 'failure', message: 'mount command failed: the answer is not JSON: "sh: 1: jq: not found"' },
    ],
    [
      'chatter before the answer',
      'mounting\n{"status":"Success"}',
      0,
      {
        is: 'failure',
        message: 'mount command failed: the answer is not JSON: "mounting\\n{\\"status\\":\\"Success\\"}"',
      },
    ],
    ['a list', '[]', 0, { is: 'failure', message: 'mount command failed: the answer is not a JSON object' }],
    [
      'a number as a device',
      '{"status":"Success","device":7}',
      0,
      { is: 'failure', message: 'mount command failed: a field of the answer has the wrong type' },
    ],
    [
      'a text as a capability',
      '{"status":"Success","capabilities":{"attach":"false"}}',
      0,
      { is: 'failure', message: 'mount command failed: a field of the answer has the wrong type' },
    ],
  ];
  for (const [what, output, code, expected] of rows)
    it(what, () => assert.deepEqual(answerOf('mount', { code, output }), expected));

  it('shows nothing of what may hold secrets', () => {
    const answer = answerOf('mount', { code: 1, output: '+ mount //server -o password=s3cret' }, true);
    assert.deepEqual(answer, {
      is: 'failure',
      message: 'mount command failed: the answer is not JSON: not shown, there may be secrets in it',
    });
  });

  it('shows little of what is no answer', () => {
    const answer = answerOf('init', { code: 0, output: 'x'.repeat(5_000) });
    assert.ok(answer.is === 'failure' && answer.message.length < 300);
  });
});
