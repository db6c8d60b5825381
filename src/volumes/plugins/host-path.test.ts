import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FileKind } from '../../host/mounts/host-files.ts';
import type { VolumeRequest } from '../plugin.ts';
import { HostPathPlugin } from './host-path.ts';

const signal = new AbortController().signal;
const plugin = (kind: FileKind): HostPathPlugin =>
  new HostPathPlugin({
    kindOf: () => Promise.resolve(kind),
    resolve: (path) => Promise.resolve(path),
    makeDirectory: () => Promise.reject(new Error('nothing is to be made')),
    makeFile: () => Promise.reject(new Error('nothing is to be made')),
  });

const claimed = (hostPath: unknown, readOnly: boolean): VolumeRequest => ({
  pod: { metadata: { name: 'p', namespace: 'ns', uid: 'u' }, spec: { containers: [] } },
  volume: { name: 'data', persistentVolumeClaim: { claimName: 'c' } },
  specName: 'pv',
  persistent: {
    volume: { metadata: { name: 'pv' }, spec: { hostPath } },
    claim: { metadata: { name: 'c' } },
    mountOptions: [],
    migrated: false,
  },
  volumeMode: 'Filesystem',
  readOnly,
  inUse: false,
  attachedPath: '',
  progress: () => undefined,
});

test('a persistent volume may be a host path, read-only if the claim is', async () => {
  const mounted = await plugin('directory').setUp(claimed({ path: '/srv/data', type: 'Directory' }, true), signal);
  assert.deepEqual(mounted, { hostPath: '/srv/data', readOnly: true, selinuxRelabel: false });
});

test('the same checks as in a pod', async () => {
  const rows: [unknown, FileKind, RegExp][] = [
    [{ path: '/srv/../etc' }, 'directory', /must not contain '\.\.'/],
    [{ path: 'srv' }, 'directory', /must be absolute/],
    [{ path: '/srv', type: 'Directory' }, 'missing', /hostPath type check failed: \/srv is not a directory/],
    [null, 'directory', /must be absolute/],
  ];
  for (const [source, kind, error] of rows)
    await assert.rejects(plugin(kind).setUp(claimed(source, false), signal), error);
});

test('a file that was missing is made, and looked at again', async () => {
  for (const [kinds, error] of [
    [['missing', 'file'], undefined],
    [['missing', 'other'], /hostPath type check failed: \/srv\/f is not a file/],
    [['missing', 'missing'], /hostPath type check failed: \/srv\/f is not a file/],
  ] as const) {
    const [left, made] = [[...kinds], [] as string[]];
    const files = new HostPathPlugin({
      kindOf: async () => left.shift() ?? assert.fail('asked once too often'),
      resolve: (path) => Promise.resolve(path),
      makeDirectory: () => Promise.reject(new Error('nothing is to be made')),
      makeFile: async (path) => void made.push(path),
    });
    const setUp = files.setUp(claimed({ path: '/srv/f', type: 'FileOrCreate' }, false), signal);
    await (error === undefined ? setUp : assert.rejects(setUp, error));
    assert.deepEqual([left, made], [[], ['/srv/f']]);
  }
});
