import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../lib/clock.ts';
import { Decoder } from './decoder.ts';
import { readManifest, type ManifestOptions } from './read-manifest.ts';
import { describeProblem } from './problem.ts';
import { canonicalJson, isUsableUid, staticUid } from './static-identity.ts';

const decoder = new Decoder(systemClock);
const never = new AbortController().signal;
const OPTIONS: ManifestOptions = { nodeName: 'n1', localObjects: false, lists: false };

const read = (text: string, options: Partial<ManifestOptions> = {}, local = true) =>
  readManifest(text, { where: '/m/a.yaml', local }, { ...OPTIONS, ...options }, decoder, never);
const problemsOf = async (text: string, options: Partial<ManifestOptions> = {}): Promise<readonly string[]> =>
  (await read(text, options)).problems.map((p) => `${p.severity} ${describeProblem(p)}`);

const POD = `apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  containers:
  - name: c
    image: i:1
`;

describe('manifests', () => {
  it('become static pods', async () => {
    const { pods, problems } = await read(POD);
    assert.deepEqual(problems, []);
    const uid = pods[0]?.metadata.uid ?? '';
    assert.match(uid, /^[0-9a-f]{32}$/);
    assert.deepEqual(pods[0]?.metadata, {
      name: 'web-n1',
      namespace: 'default',
      uid,
      annotations: { 'kubernetes.io/config.hash': uid },
    });
    assert.equal(pods[0].spec.restartPolicy, 'Always');
  });

  it('from a URL tolerate nothing more', async () => {
    const { pods } = await read(POD, {}, false);
    assert.equal(pods[0]?.spec.tolerations, undefined);
  });

  it('keep a uid of their own and the toleration they have', async () => {
    const { pods } = await read(
      POD.replace('{name: web}', '{name: web, uid: my-uid}').replace(
        'spec:',
        'spec:\n  tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 3}]',
      ),
    );
    assert.equal(pods[0]?.metadata.uid, 'my-uid');
    assert.equal(pods[0].metadata.annotations?.['kubernetes.io/config.hash'], 'my-uid');
    assert.deepEqual(pods[0].spec.tolerations, [{ operator: 'Exists', effect: 'NoExecute' }]);
  });

  it('with a key that is there twice run, with its last value, and a warning', async () => {
    const text = POD.replace('image: i:1', 'image: i:1\n    image: i:2');
    const { pods } = await read(text);
    assert.equal(pods[0]?.spec.containers[0]?.image, 'i:2');
    assert.deepEqual(await problemsOf(text), [
      'warning /m/a.yaml:8:5: key "image" is already set above; this one counts',
    ]);
  });

  const rows: readonly (readonly [string, string, Partial<ManifestOptions>, readonly RegExp[]])[] = [
    ['empty', '# nothing\n', {}, [/error \/m\/a\.yaml: has no content/]],
    ['a word', 'hello', {}, [/apiVersion: Required value/, /kind: Required value/]],
    [
      'another kind',
      'apiVersion: v1\nkind: Service\n',
      {},
      [/error \/m\/a\.yaml:2:1: kind: Invalid value: "Service": must be Pod$/],
    ],
    [
      'another version',
      'apiVersion: v2\nkind: Pod\n',
      {},
      [/a\.yaml:1:1: apiVersion: Invalid value: "v2": must be v1/],
    ],
    [
      'what only a cluster runs',
      'apiVersion: apps/v1\nkind: Deployment\n',
      {},
      [/a\.yaml:1:1: apiVersion: Invalid value: "apps\/v1": must be v1, the kind Pod$/],
    ],
    [
      'no name',
      POD.replace('{name: web}', '{}'),
      {},
      [/a\.yaml:3:1: metadata\.name: Required value: name is needed for the pod/],
    ],
    [
      'a wrong type',
      POD.replace('i:1', '5'),
      {},
      [/a\.yaml:7:5: spec\.containers\[0\]\.image: Invalid value: 5: must be a string, not a number/],
    ],
    [
      'an unknown field',
      POD.replace('image:', 'imagee: x\n    image:'),
      {},
      [/^warning \/m\/a\.yaml:7:5: unknown field "spec\.containers\[0\]\.imagee" is ignored/],
    ],
    [
      'a uid that is a path',
      POD.replace('{name: web}', '{name: web, uid: ../../etc}'),
      {},
      [/metadata\.uid: Invalid value: "\.\.\/\.\.\/etc"/],
    ],
    [
      'a service account',
      POD.replace('spec:', 'spec:\n  serviceAccountName: x'),
      {},
      [/a\.yaml:5:3: spec\.serviceAccountName: Forbidden: static pods may not reference serviceaccounts/],
    ],
    [
      'a service account, where pods may name what the API server has',
      POD.replace('spec:', 'spec:\n  serviceAccountName: x'),
      { apiObjects: true },
      [],
    ],
    [
      'a secret',
      `${POD}    env: [{name: A, valueFrom: {secretKeyRef: {name: s, key: k}}}]\n`,
      {},
      [/may not reference secrets$/],
    ],
    ['a config map', `${POD}    envFrom: [{configMapRef: {name: s}}]\n`, {}, [/may not reference configmaps$/]],
    [
      'a claim',
      POD.replace('spec:', 'spec:\n  volumes: [{name: v, persistentVolumeClaim: {claimName: x}}]'),
      { localObjects: true },
      [/may not reference persistentvolumeclaims$/],
    ],
    [
      'a projected config map',
      POD.replace('spec:', 'spec:\n  volumes: [{name: v, projected: {sources: [{configMap: {name: x}}]}}]'),
      {},
      [/configmaps \(via projected volumes\)/],
    ],
    [
      'a projected downward API',
      POD.replace(
        'spec:',
        'spec:\n  volumes: [{name: v, projected: {sources: [{downwardAPI: {items: [{path: a, fieldRef: {fieldPath: metadata.name}}]}}]}}]',
      ),
      {},
      [],
    ],
    [
      'a config map, with local objects',
      `${POD}    envFrom: [{configMapRef: {name: s}}]\n`,
      { localObjects: true },
      [],
    ],
    [
      'a second document',
      `${POD}---\n${POD.replace('web', 'two')}`,
      {},
      [/^warning .*a\.yaml:9:1: only the first document/],
    ],
    ['a list', `apiVersion: v1\nkind: PodList\nitems: []\n`, {}, [/kind: Invalid value: "PodList"/]],
  ];
  for (const [name, text, options, expected] of rows)
    it(`say what is wrong: ${name}`, async () => {
      const found = await problemsOf(text, options);
      assert.equal(found.length, expected.length, found.join('\n'));
      expected.forEach((pattern, i) => assert.match(found[i] ?? '', pattern));
    });

  it('in lists are placed in the list', async () => {
    const list = JSON.stringify(
      {
        apiVersion: 'v1',
        kind: 'PodList',
        items: [
          { metadata: { name: 'a' }, spec: { containers: [{ name: 'c', image: 'i' }] } },
          { metadata: { name: 'B' } },
        ],
      },
      undefined,
      1,
    );
    const { pods, problems } = await read(list, { lists: true }, false);
    assert.deepEqual(
      pods.map((p) => p.metadata.name),
      ['a-n1'],
    );
    assert.ok(problems.every((p) => p.field?.startsWith('items[1].')));
    assert.equal(problems.length, 2);
  });

  it('with many problems say how many more', async () => {
    const many = Array.from({ length: 30 }, (_, i) => `  - {name: c${i}}\n`).join('');
    const found = await problemsOf(POD.split('  - name')[0] + many);
    assert.equal(found.length, 21);
    assert.match(found[20] ?? '', /10 more problems/);
  });

  it('never show what is in a Secret', async () => {
    const text = 'apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {p: "hunter2!"}\n';
    const found = await problemsOf(text, { localObjects: true });
    assert.match(found[0] ?? '', /data\[p\]: Invalid value: "<hidden>": must be base64/);
    assert.ok(!found.join().includes('hunter2'));
  });
});

describe('the uid of a static pod', () => {
  const origin = { where: '/a', local: true };
  it('is the same for the same manifest, whatever the order of its fields', () => {
    assert.equal(
      staticUid({ a: 1, b: { c: 2, d: 3 } }, origin, 'n'),
      staticUid({ b: { d: 3, c: 2 }, a: 1 }, origin, 'n'),
    );
    assert.equal(canonicalJson({ b: [1, { z: null, a: undefined }], a: 'x' }), '{"a":"x","b":[1,{"z":null}]}');
  });
  it('differs by content, place and node', () => {
    const uids = new Set([
      staticUid({ a: 1 }, origin, 'n'),
      staticUid({ a: 2 }, origin, 'n'),
      staticUid({ a: 1 }, origin, 'm'),
      staticUid({ a: 1 }, { where: '/b', local: true }, 'n'),
      staticUid({ a: 1 }, { where: '/a', local: false }, 'n'),
    ]);
    assert.equal(uids.size, 5);
  });
  it('that people give must be usable as a name', () => {
    for (const good of ['a', 'A-1_b', '58a6340a132dd834877133b60a5f9c2c']) assert.ok(isUsableUid(good));
    for (const bad of ['', '.', '..', 'a/b', '-a', 'a b', 'x'.repeat(64), 'a\n']) assert.ok(!isUsableUid(bad), bad);
  });
});
