import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { cniConfig, networkOf } from '../containerd/config.ts';
import { pathsBelow } from './paths.ts';
import { takenText } from './ports.ts';
import { readSettings, settingsProblem } from './settings.ts';

it('settings that may not be read are not called damaged', async () => {
  const paths = pathsBelow(await mkdtemp(join(tmpdir(), 'kts-settings-')));
  try {
    assert.equal(await readSettings(paths), undefined);
    await writeFile(paths.settings, '{');
    await assert.rejects(readSettings(paths), /is damaged; 'kubelet-dev reset' starts over/);
    await assert.rejects(readSettings(pathsBelow(paths.settings)), /settings.json is not a directory$/);
    for (const [code, message] of [
      ['EACCES', /is for root alone: use sudo$/],
      ['EPERM', /is for root alone: use sudo$/],
      ['EIO', /cannot be read: no$/],
    ] as const)
      assert.match(settingsProblem(paths, Object.assign(new Error('no'), { code })).message, message);
  } finally {
    await rm(paths.directory, { recursive: true });
  }
});

it('the network is found again in its configuration', () => {
  const network = { name: 'kds-1x2', bridge: 'kd1x2', subnet: '10.1.2.0/24', gateway: '10.1.2.1' };
  const layout = { root: '/r', socketPath: '/r/c.sock', snapshotter: 'native', network } as const;
  assert.deepEqual(networkOf(cniConfig(layout)), network);
  for (const text of ['', '{}', '{"name": "x"}']) assert.equal(networkOf(text), undefined);
});

it('ports that are taken are named, with what to do', () => {
  assert.equal(
    takenText([{ port: 6443, what: 'the API server' }], 'bin/kubelet-dev reset'),
    "port 6443 of the API server is taken by another program: see ss -ltnp 'sport = :6443'\nStop that program, or choose other ports with: bin/kubelet-dev reset (removes the cluster and its pods)",
  );
});
