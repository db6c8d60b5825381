import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { apiVersionOf, RESOURCES } from '../resources.ts';
import { jsonFields, messageNames, messageOfKind, wireFields } from './messages.ts';

/** Kinds that clients only send as JSON. */
const JSON_ONLY = new Set([
  'ClusterTrustBundle',
  'DeviceClass',
  'PodCertificateRequest',
  'ResourceClaim',
  'ResourceClaimTemplate',
  'ResourceSlice',
]);

const subresourceKinds = RESOURCES.flatMap((r) =>
  r.subresources.map((s) => ({ group: s.group ?? r.group, version: s.version ?? r.version, kind: s.kind })),
).filter((s) => !s.kind.endsWith('Options'));
const served = [...RESOURCES.filter((r) => r.refused === undefined), ...subresourceKinds].filter(
  (r) => !JSON_ONLY.has(r.kind),
);

const innerMessages = (message: string): string[] =>
  wireFields(message).flatMap(({ element }) => (element.kind === 'message' ? [element.message] : []));

test('every served kind has a message, every message is there and reached from a served kind', () => {
  const reached = new Set<string>();
  const visit = (message: string): void => {
    if (reached.has(message)) return;
    reached.add(message);
    innerMessages(message).forEach(visit);
  };
  for (const type of served) {
    const message = messageOfKind(apiVersionOf(type), type.kind);
    assert.ok(message !== undefined, `${apiVersionOf(type)} ${type.kind}`);
    visit(message);
  }
  visit(messageOfKind('v1', 'DeleteOptions') ?? '');
  assert.deepEqual(
    messageNames().filter((m) => !reached.has(m)),
    [],
  );
});

test('numbers and names are unique in their message', () => {
  for (const message of messageNames()) {
    const numbers = wireFields(message).map((f) => f.number);
    assert.equal(new Set(numbers).size, numbers.length, `numbers of ${message}`);
    const names = jsonFields(message).map((f) => f.name);
    assert.equal(new Set(names).size, names.length, `names of ${message}`);
  }
});

test('a field line is read', () => {
  const field = (message: string, name: string) => jsonFields(message).find((f) => f.name === name);
  assert.deepEqual(field('PodSpec', 'containers'), {
    number: 2,
    name: 'containers',
    shape: 'list',
    element: { kind: 'message', message: 'Container' },
    pointer: false,
    always: true,
    inline: false,
  });
  assert.equal(field('Volume', 'emptyDir')?.number, 2);
  assert.deepEqual(field('authentication.UserInfo', 'extra')?.element, { kind: 'wrapped', of: { kind: 'string' } });
  assert.equal(field('ResourceRequirements', 'limits')?.shape, 'map');
  assert.equal(messageOfKind('apps/v1', 'Pod'), undefined);
});
