// Directories of others, of a cluster, and of a cluster among files of others: whose they are, and what `reset` takes away.
import assert from 'node:assert/strict';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, describe, it } from 'node:test';
import { isFault } from '../../lib/errors.ts';
import { reset } from './down.ts';
import { ownerOf, removeFiles, type Owner } from './ownership.ts';
import { pathsBelow, realDirectory, type Paths } from './paths.ts';
import type { Settings } from './settings.ts';

const root = realDirectory(mkdtempSync(join(tmpdir(), 'kts-owner-')));
after(() => rmSync(root, { recursive: true }));
const { signal } = new AbortController();

const SETTINGS: Settings = {
  nodeName: 'n',
  apiPort: 1,
  kubeletPort: 2,
  healthzPort: 3,
  network: { name: 'kd-none', bridge: 'kdnone', subnet: '10.1.2.0/24', gateway: '10.1.2.1' },
  cgroupRoot: '/kd-none',
  installed: [],
  before: { kernel: {}, hostPortChains: true, directories: [] },
};
const NETWORK = '{"name": "n", "bridge": "b", "subnet": "s", "gateway": "g"}';
const STATE = '{"pid":1,"startTime":"x","startedMs":1,"phase":"running","children":{}}';

/** A directory with these files; a name that ends in / is a directory. */
function directoryWith(files: Readonly<Record<string, string>>): Paths {
  const paths = pathsBelow(mkdtempSync(join(root, 'd-')));
  for (const [name, text] of Object.entries(files)) {
    const path = join(paths.directory, name);
    mkdirSync(name.endsWith('/') ? path : dirname(path), { recursive: true });
    if (!name.endsWith('/')) writeFileSync(path, text);
  }
  return paths;
}

const settings = JSON.stringify(SETTINGS);
const ROWS: readonly (readonly [string, Readonly<Record<string, string>>, Owner])[] = [
  ['empty', {}, 'nobody'],
  ['a file system of its own', { 'lost+found/': '' }, 'nobody'],
  ['a write that was cut off', { 'settings.json.12-0-0123456789ab.tmp': '{' }, 'nobody'],
  ['a cluster', { 'settings.json': settings, 'logs/': '' }, 'kubelet-dev'],
  ['a cluster among files of others', { 'settings.json': settings, 'thesis.txt': 'x' }, 'kubelet-dev'],
  ['damaged settings', { 'settings.json': '{', 'containerd/cni/10-kubelet-dev.conflist': NETWORK }, 'kubelet-dev'],
  ['lost settings', { 'containerd/cni/10-kubelet-dev.conflist': NETWORK }, 'kubelet-dev'],
  ['damaged settings before the network', { 'settings.json': '', 'supervisor.json': STATE }, 'kubelet-dev'],
  ['files of others', { 'sub/thesis.txt': 'precious' }, 'others'],
  ['names like those of a cluster', { 'logs/a.log': '', 'volumes/': '', 'api/': '' }, 'others'],
  ['settings of an editor', { 'settings.json': '{\n  // colours\n  "editor.fontSize": 14\n}' }, 'others'],
  ['settings of another program', { 'settings.json': '{"nodeName": "n", "network": {}}' }, 'others'],
  ['a supervisor of others', { 'supervisor.json': '{"pid": 1}' }, 'others'],
];

describe('the owner of a directory', () => {
  for (const [name, files, owner] of ROWS)
    it(`${name}: ${owner}`, async () => assert.equal(await ownerOf(directoryWith(files)), owner));

  it('one that is not there, or no directory', async () => {
    assert.equal(await ownerOf(pathsBelow(join(root, 'none'))), 'nobody');
    const { settings: file } = directoryWith({ 'settings.json': settings });
    await assert.rejects(ownerOf(pathsBelow(file)), /settings.json is not a directory$/);
  });
});

describe('reset', () => {
  it('removes nothing from a directory of others', async () => {
    for (const [, files, owner] of ROWS.filter(([, , by]) => by === 'others')) {
      const paths = directoryWith(files);
      const before = readdirSync(paths.directory, { recursive: true });
      await assert.rejects(
        reset(paths, () => undefined, signal),
        (err: Error) => isFault(err, 'conflict') && err.message.endsWith('nothing was removed'),
        owner,
      );
      assert.deepEqual(readdirSync(paths.directory, { recursive: true }), before);
    }
  });

  it('leaves an empty directory, and one that is not there', async () => {
    const lines: string[] = [];
    const { directory } = directoryWith({});
    for (const path of [directory, join(root, 'none')])
      assert.deepEqual(await reset(pathsBelow(path), (line) => lines.push(line), signal), []);
    assert.deepEqual(lines, [`nothing here (${directory})`, `nothing here (${join(root, 'none')})`]);
    assert.ok(existsSync(directory));
  });
});

describe('the files of a cluster', () => {
  const CLUSTER = { 'settings.json': settings, 'logs/kubelet.log': 'x', 'kubelet/pods/a': 'x', 'api/pki/ca.crt': 'x' };

  it('go with their directory', async () => {
    const paths = directoryWith({ ...CLUSTER, 'supervisor.json.12-0-0123456789ab.tmp': '' });
    assert.deepEqual(await removeFiles(paths), []);
    assert.ok(!existsSync(paths.directory));
  });

  it('go from among files of others, which stay', async () => {
    const paths = directoryWith({ ...CLUSTER, 'thesis.txt': 'precious', 'photos/a.jpg': 'precious' });
    const elsewhere = directoryWith({ 'big/image': 'precious' });
    symlinkSync(join(elsewhere.directory, 'big'), paths.containerd);
    assert.deepEqual([...(await removeFiles(paths))].sort(), ['photos', 'thesis.txt']);
    assert.equal(readFileSync(join(paths.directory, 'thesis.txt'), 'utf8'), 'precious');
    assert.equal(readFileSync(join(paths.directory, 'photos', 'a.jpg'), 'utf8'), 'precious');
    assert.ok(existsSync(join(elsewhere.directory, 'big', 'image')), 'a link is removed, not its target');
    assert.equal(await ownerOf(paths), 'others');
  });
});

it('a directory has one name, however it is written', () => {
  const { directory } = directoryWith({});
  const link = join(root, 'link');
  symlinkSync(directory, link);
  const names = [directory, `${directory}/`, `${directory}/../x/..//${directory.split('/').at(-1)}`, link, `${link}/`];
  assert.deepEqual(new Set(names.map(realDirectory)), new Set([directory]));
  assert.equal(realDirectory(join(link, 'not', 'yet')), join(directory, 'not', 'yet'));
  assert.equal(realDirectory('x'), join(realDirectory(process.cwd()), 'x'));
});
