import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import { until } from '../../test/harness/until.ts';
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

  for (const prevented of [true, false])
    it(`static pods that name API objects are ${prevented ? 'refused' : 'taken'} as the gate says`, async (t) => {
      const staticPodPath = await mkdtemp(join(tmpdir(), 'kts-sources-'));
      t.after(() => rm(staticPodPath, { recursive: true }));
      const spec = { serviceAccountName: 'x', containers: [{ name: 'c', image: 'i' }] };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec };
      await writeFile(join(staticPodPath, 'p.json'), JSON.stringify(pod));
      const gates = { PreventStaticPodAPIReferences: prevented };
      const { merged, parts } = createSources(environmentOf({ config: { staticPodPath }, gates }), deps, []);
      const stop = new AbortController();
      const running = Promise.all(parts.map((part) => part.run(stop.signal)));
      await until('the file is read', () => merged.sourcesReady());
      assert.equal(merged.pods().length, prevented ? 0 : 1);
      stop.abort();
      await running;
    });
});
