// runs: gate
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { parseAuditLog } from './audit-log.ts';

const line = (auditID: string, stage: string, verb: string, code: number): string =>
  JSON.stringify({
    kind: 'Event',
    apiVersion: 'audit.k8s.io/v1',
    level: 'Metadata',
    auditID,
    stage,
    requestURI: `/api/v1/pods?who=${auditID}`,
    verb,
    user: {
      username: 'system:node:n1',
      groups: ['system:nodes'],
      extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=ab'] },
    },
    userAgent: 'kubelet/v1.36.4',
    responseStatus: { metadata: {}, code },
    requestReceivedTimestamp: '2026-11-15T03:16:20.063852Z',
    stageTimestamp: '2026-11-15T03:16:20.163852Z',
  });

it('reads each request once, watches from their beginning, and nothing half written', () => {
  const text = [
    line('a', 'ResponseStarted', 'watch', 200),
    line('b', 'ResponseComplete', 'deletecollection', 403),
    line('a', 'ResponseComplete', 'watch', 200),
    line('c', 'ResponseComplete', 'get', 200).slice(0, 40),
  ].join('\n');
  const found = parseAuditLog(text);
  assert.deepEqual(
    found.map(({ method, url, user, code }) => ({ method, url, user, code })),
    [
      { method: 'GET', url: '/api/v1/pods?who=a', user: 'system:node:n1', code: 200 },
      { method: 'DELETE', url: '/api/v1/pods?who=b', user: 'system:node:n1', code: 403 },
    ],
  );
  assert.equal(found[0]?.credential, 'X509SHA256=ab');
  assert.equal(found[0].atMs, Date.parse('2026-11-15T03:16:20.163Z'));
});
