import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readLayers } from './containerd-content.ts';

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
