import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { createSources, ownSources } from './create.ts';

const deps = {
  events: { pod: () => undefined, node: () => undefined },
  onChange: () => undefined,
  observed: { all: () => [] },
};

const rows: readonly [string, Parameters<typeof environmentOf>[0], readonly string[]][] = [
  ['none', {}, []],
  ['files', { config: { staticPodPath: '/etc/manifests' } }, ['file']],
  ['a URL', { config: { staticPodURL: 'http://x' } }, ['http']],
  ['the manifest API', { flags: { enableManifestApi: true } }, ['manifests']],
];

describe('sources by configuration', () => {
  for (const [name, otherwise, sources] of rows)
    it(name, () => {
      const env = environmentOf(otherwise);
      assert.deepEqual(ownSources(env), sources);
      const made = createSources(env, deps, []);
      assert.equal(made.parts.length, sources.length);
      assert.equal(made.manifests === undefined, !sources.includes('manifests'));
      assert.equal(made.merged.sourcesReady(), sources.length === 0);
    });

  it('waits for the sources that others feed', () => {
    assert.equal(createSources(environmentOf(), deps, ['api']).merged.sourcesReady(), false);
  });
});
