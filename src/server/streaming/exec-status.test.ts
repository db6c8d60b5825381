import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statusOf } from './exec-status.ts';

const failure = (more: object): string => JSON.stringify({ status: 'Failure', ...more });
const exit = (causes: unknown): string => failure({ reason: 'NonZeroExitCode', details: { causes } });

for (const [said, words] of [
  ['', /"Success"/],
  ['{"status":"Success"}', /"Success"/],
  ['no JSON', /error stream protocol error: no JSON/],
  ['null', /unknown error/],
  ['7', /unknown error/],
  ['{"status":"Strange"}', /unknown error/],
  [failure({ message: 'boom' }), /boom/],
  [failure({}), /InternalError/],
  [failure({ reason: 'NonZeroExitCode' }), /details must be set/],
  [exit(undefined), /no ExitCode cause given/],
  [exit([{ reason: 'Other' }]), /no ExitCode cause given/],
  [exit([{ reason: 'ExitCode' }]), /invalid exit code value undefined/],
  [exit([{ reason: 'ExitCode', message: '256' }]), /invalid exit code value/],
  [exit([{ reason: 'ExitCode', message: '3' }]), /"ExitCode","message":"3"/],
] as const)
  test(`${said === '' ? 'nothing' : said} becomes ${words.source}`, () =>
    assert.match(JSON.stringify(statusOf(said)), words));
