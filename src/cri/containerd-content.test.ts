import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { digestIn, readLayers } from './containerd-content.ts';

describe('the layers of a manifest', () => {
  for (const [name, text, expected] of [
    [
      'configuration and layers with their sizes',
      '{"config":{"digest":"sha256:c","size":7},"layers":[{"digest":"sha256:a","size":10},{"digest":"sha256:b","size":20}]}',
      [
        { digest: 'sha256:c', sizeBytes: 7 },
        { digest: 'sha256:a', sizeBytes: 10 },
        { digest: 'sha256:b', sizeBytes: 20 },
      ],
    ],
    ['damaged ones are left out', '{"config":null,"layers":[{"digest":1,"size":2},{"digest":"a","size":-1},null]}', []],
    ['none of an index', '{"manifests":[]}', undefined],
    ['none of what is not JSON', '{', undefined],
    ['none of null', 'null', undefined],
  ] as const)
    it(name, () => assert.deepEqual(readLayers(text), expected));
});

describe('the digest in the name of an ingest', () => {
  const hex = '0123456789abcdef'.repeat(4);
  for (const [name, ref, expected] of [
    ['a layer', `layer-sha256:${hex}`, `sha256:${hex}`],
    ['a manifest', `manifest-sha256:${hex}`, `sha256:${hex}`],
    ['a reference', `registry:5000/team/app@sha256:${hex}`, `sha256:${hex}`],
    ['another algorithm', `index-sha512:${hex}${hex}`, `sha512:${hex}${hex}`],
    ['a tag', 'registry:5000/team/app:v1', undefined],
    ['no algorithm', `:${hex}`, undefined],
    ['upper case', `layer-sha256:${hex.toUpperCase()}`, undefined],
    ['too short', 'layer-sha256:0123', undefined],
    ['nothing', '', undefined],
  ] as const)
    it(name, () => assert.equal(digestIn(ref), expected));
  it('of a long name', () => assert.equal(digestIn(`${'a-'.repeat(500_000)}sha256:${hex}`), `sha256:${hex}`));
});
