// Environment files are read inside their volume only, whatever a container planted there.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { containerBudget } from '../core/bounds.ts';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { fakeCluster } from '../../test/golden/fixture.ts';
import { EnvReader } from './env-reader.ts';
import type { ClusterView } from './needs.ts';

const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'u' },
  spec: { containers: [], enableServiceLinks: false },
};
let root = '';
before(async () => {
  root = await mkdtemp(join(tmpdir(), 'kts-env-'));
  await mkdir(join(root, 'vol', 'sub'), { recursive: true });
  await writeFile(join(root, 'vol', 'f'), "A='1'\n");
  await writeFile(join(root, 'secret'), "A='stolen'\n");
  await symlink('../secret', join(root, 'vol', 'out'));
  await symlink('f', join(root, 'vol', 'in'));
  await writeFile(join(root, 'vol', 'large'), 'A=1\n'.padEnd(1024 * 1024 + 1, '#'));
  execFileSync('mkfifo', [join(root, 'vol', 'fifo')]);
});
after(() => rm(root, { recursive: true, force: true }));

const read = async (path: string, volume = 'vol', cluster: Partial<ClusterView> = {}): Promise<string | undefined> => {
  const reader = new EnvReader({ ...fakeCluster(false), ...cluster });
  const valueFrom = { fileKeyRef: { volumeName: volume, path, key: 'A' } };
  const volumes = new Map([['vol', { hostPath: join(root, 'vol'), readOnly: false, selinuxRelabel: false }]]);
  const facts = { podIPs: [], hostIPs: [], allocatable: {}, ipFamily: 4 } as const;
  const container = { name: 'c', env: [{ name: 'V', valueFrom }] };
  return (await reader.read(pod, container, volumes, facts, containerBudget(), new AbortController().signal)).get('V');
};

describe('environment files', () => {
  it('are read', async () => assert.equal(await read('f'), '1'));
  it('through links inside the volume', async () => assert.equal(await read('in'), '1'));
  for (const [what, path, problem] of [
    ['not through links out of it', 'out', /outside of volume/],
    ['not above it', '../secret', /outside of volume/],
    ['not from a pipe, which would wait for ever', 'fifo', /not a regular file/],
    ['not from a directory', 'sub', /not a regular file/],
    ['not larger than a mebibyte', 'large', /too large/],
    ['not there', 'missing', /environment variable key "A" not found in file "missing"/],
  ] as const)
    it(what, () => assert.rejects(read(path), problem));
  it('no such volume', () => assert.rejects(read('f', 'x'), /cannot find the volume "x" referenced by FileKeyRef/));
});

describe('services', () => {
  const steps = async (of: Pod): Promise<readonly string[]> => {
    const did: string[] = [];
    const reader = new EnvReader({
      ...fakeCluster(false),
      servicesRead: async () => void did.push('waited'),
      services: () => (did.push('read'), []),
    });
    const facts = { podIPs: [], hostIPs: [], allocatable: {}, ipFamily: 4 } as const;
    await reader.read(of, { name: 'c' }, new Map(), facts, containerBudget(), new AbortController().signal);
    return did;
  };
  it('are waited for before they are read', async () => assert.deepEqual(await steps(pod), ['waited', 'read']));
  it('but not by static pods', async () => {
    const annotations = { 'kubernetes.io/config.source': 'file' };
    assert.deepEqual(await steps({ ...pod, metadata: { ...pod.metadata, annotations } }), ['read']);
  });
});

describe('objects', () => {
  it('a failing read is passed on, an absent object is only missing', async () => {
    const env = (get: () => Promise<undefined>): Promise<unknown> =>
      new EnvReader({ ...fakeCluster(false), secret: get }).read(
        pod,
        { name: 'c', envFrom: [{ secretRef: { name: 's', optional: true } }] },
        new Map(),
        { podIPs: [], hostIPs: [], allocatable: {}, ipFamily: 4 },
        containerBudget(),
        new AbortController().signal,
      );
    await env(() => Promise.reject(new KubeletError('notFound', 'x')));
    await assert.rejects(
      env(() => Promise.reject(new KubeletError('unavailable', 'no answer'))),
      /no answer/,
    );
  });
});
