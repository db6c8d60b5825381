import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { newKeyPair, privateKeyPem } from '../lib/x509/keys.ts';
import { selfSignedAuthority } from '../lib/x509/certificate.ts';
import { callOutcome, ExecMetrics, type ProgramError } from './exec-metrics.ts';
import type { TlsIdentity } from './kubeconfig.ts';

test('how a run of a plugin ended', () => {
  const rows: readonly (readonly [string, ProgramError | null, string])[] = [
    ['well', null, '0 no_error'],
    ['its own exit code', { code: 3, signal: null }, '3 plugin_execution_error'],
    ['killed', { code: null, signal: 'SIGKILL' }, '-1 plugin_execution_error'],
    ['no such program', { code: 'ENOENT' }, '1 plugin_not_found_error'],
    ['not executable', { code: 'EACCES' }, '1 plugin_not_found_error'],
    ['cut off by us', { code: 'ABORT_ERR' }, '1 client_internal_error'],
    [
      'it printed too much',
      { code: 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER', signal: 'SIGTERM' },
      '1 client_internal_error',
    ],
    ['nobody knows how', {}, '1 client_internal_error'],
  ];
  for (const [what, err, expected] of rows) {
    const { code, call_status } = callOutcome(err);
    assert.equal(`${code} ${call_status}`, expected, what);
  }
});

const HOUR = 3_600_000;

test('certificates: until the first of them ends, and how old those were that are used no more', async () => {
  const clock = new ManualClock();
  const begun = clock.now();
  const keys = newKeyPair();
  const identity = (fromMs: number, untilMs: number): TlsIdentity => ({
    cert: selfSignedAuthority({ commonName: 'c' }, keys, { notBeforeMs: begun + fromMs, notAfterMs: begun + untilMs }),
    key: privateKeyPem(keys.privateKey),
  });
  const registry = new Registry();
  const metrics = new ExecMetrics(clock, registry);
  const shown = (name: string): number =>
    Number(
      new RegExp(`^rest_client_exec_plugin_${name} (.*)$`, 'm')
        .exec(registry.render())?.[1]
        ?.replace('+Inf', 'Infinity'),
    );
  assert.equal(shown('ttl_seconds'), Infinity, 'none is used');
  const [one, other] = [{}, {}];
  const first = identity(-HOUR, 4 * HOUR);
  metrics.uses(one, first);
  metrics.uses(other, identity(0, 2 * HOUR));
  assert.equal(shown('ttl_seconds'), 7200);
  await clock.advance(HOUR);
  metrics.uses(one, first);
  assert.equal(shown('certificate_rotation_age_count'), 0, 'the same one again');
  metrics.uses(other, identity(0, 24 * HOUR));
  assert.equal(shown('certificate_rotation_age_sum'), 3600);
  assert.equal(shown('ttl_seconds'), 3 * 3600);
  metrics.uses(one, undefined);
  assert.equal(shown('certificate_rotation_age_sum'), 3600 + 7200, 'a token instead of a certificate');
  assert.equal(shown('ttl_seconds'), 23 * 3600);
  metrics.uses(other, { cert: 'nonsense', key: '' });
  assert.equal(shown('ttl_seconds'), Infinity);
});
