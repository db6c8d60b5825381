import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import type { ApiObject, Json } from '../objects.ts';
import { resourceNamed } from '../resources.ts';
import { fromFieldsV1, pathsOf, pathText, toFieldsV1 } from './field-paths.ts';
import { applyTo, ownersAfterUpdate, ownersOfNew, type Manager } from './ownership.ts';
import { structureOfKind } from './structure.ts';

const STRUCTURE = structureOfKind(resourceNamed('pods'));
const by = (name: string, operation: Manager['operation'] = 'Apply'): Manager => ({
  name,
  operation,
  apiVersion: 'v1',
  subresource: '',
});
const pod = (spec: Json, labels: Json = {}): Json => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'p', ...(Object.keys(labels).length === 0 ? {} : { labels }) },
  spec,
});
const live = (object: Json, managedFields: Json[]): ApiObject =>
  ({ ...object, metadata: { ...(object['metadata'] as Json), managedFields } }) as unknown as ApiObject;
const made = (config: Json, name: string): ApiObject => live(config, ownersOfNew(config, STRUCTURE, by(name), 't'));
const apply = (object: ApiObject, config: Json, name: string, force = false): ApiObject => {
  const done = applyTo(object, config, STRUCTURE, by(name), { force, time: 't2' });
  return live(done.object, done.managedFields);
};
const owned = (object: ApiObject, name: string): string[] =>
  ((object.metadata.managedFields ?? []) as Json[])
    .filter((e) => e['manager'] === name)
    .flatMap((e) => [...fromFieldsV1(e['fieldsV1'])].map(pathText))
    .sort();
const web = (more: Json): Json => ({ containers: [{ name: 'web', ...more }] });

test('the fields of an object, and their written form', () => {
  const paths = pathsOf(
    pod({
      ...web({ image: 'a', command: ['x', 'y'], ports: [{ containerPort: 80 }], env: [{ name: 'A', value: '1' }] }),
      nodeSelector: { a: 'b' },
    }),
    STRUCTURE,
  );
  assert.deepEqual([...paths].map(pathText).sort(), [
    '.spec.containers[name="web"]',
    '.spec.containers[name="web"].command',
    '.spec.containers[name="web"].env[name="A"]',
    '.spec.containers[name="web"].env[name="A"].name',
    '.spec.containers[name="web"].env[name="A"].value',
    '.spec.containers[name="web"].image',
    '.spec.containers[name="web"].name',
    '.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]',
    '.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort',
    '.spec.nodeSelector',
  ]);
  assert.deepEqual(fromFieldsV1(toFieldsV1(paths)), paths);
  assert.deepEqual(toFieldsV1(pathsOf(pod(web({ image: 'a' })), STRUCTURE)), {
    'f:spec': { 'f:containers': { 'k:{"name":"web"}': { '.': {}, 'f:image': {}, 'f:name': {} } } },
  });
});

test('what a manager no longer applies is gone, unless somebody else owns it', () => {
  const first = made(pod(web({ image: 'a', env: [{ name: 'A', value: '1' }] }), { x: '1', y: '1' }), 'one');
  const shared = apply(first, pod({}, { x: '1' }), 'two');
  assert.deepEqual(owned(shared, 'two'), ['.metadata.labels.x', '.spec']);
  const less = apply(shared, pod(web({ image: 'a' })), 'one');
  assert.deepEqual(less.metadata.labels, { x: '1' });
  assert.deepEqual(less['spec'], { containers: [{ name: 'web', image: 'a' }] });
});

test('elements of others stay, defaults inside own elements go with them', () => {
  const first = made(pod({ containers: [{ name: 'a', image: 'x' }] }), 'one');
  const both = apply(first, pod({ containers: [{ name: 'b', image: 'x' }] }), 'two');
  (both['spec'] as { containers: Json[] }).containers[0] = { name: 'a', image: 'x', tty: false };
  const left = apply(both, pod({ containers: [] }), 'one');
  assert.deepEqual(left['spec'], { containers: [{ name: 'b', image: 'x' }] });
});

test('a different value of somebody else is a conflict, the same value is shared', () => {
  const first = made(pod(web({ image: 'a' })), 'one');
  const shared = apply(first, pod(web({ image: 'a' })), 'two');
  assert.deepEqual(owned(shared, 'two'), owned(shared, 'one'));
  assert.throws(() => apply(first, pod(web({ image: 'b' })), 'two'), {
    code: 409,
    message: 'Apply failed with 1 conflict: conflict with "one": .spec.containers[name="web"].image',
  });
  const forced = apply(first, pod(web({ image: 'b' })), 'two', true);
  assert.ok(!owned(forced, 'one').includes('.spec.containers[name="web"].image'));
  assert.deepEqual((forced['spec'] as { containers: Json[] }).containers[0]?.['image'], 'b');
});

test('objects from before belong to before-first-apply', () => {
  const old = pod(web({ image: 'a' })) as ApiObject;
  assert.throws(() => apply(old, pod(web({ image: 'b' })), 'one'), /conflict with "before-first-apply" using v1/);
  assert.deepEqual(owned(apply(old, pod(web({ image: 'a' })), 'one'), 'before-first-apply').length, 3);
});

test('any other write takes over what it changes; nobody owns what is gone', () => {
  const old = made(pod(web({ image: 'a' }), { x: '1', y: '1' }), 'one');
  const now = pod(web({ image: 'b' }), { x: '1', z: '1' }) as ApiObject;
  const after = live(now, ownersAfterUpdate(old, now, STRUCTURE, by('kubectl-edit', 'Update'), 't2') ?? []);
  assert.deepEqual(owned(after, 'kubectl-edit'), ['.metadata.labels.z', '.spec.containers[name="web"].image']);
  assert.deepEqual(owned(after, 'one'), [
    '.metadata.labels.x',
    '.spec.containers[name="web"]',
    '.spec.containers[name="web"].name',
  ]);
  assert.equal(ownersAfterUpdate(now, now, STRUCTURE, by('x', 'Update'), 't2'), undefined);
});
