// The device checkpoint is damaged or cannot be read while containers run with devices: nobody else gets those.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FakeDevicePlugin } from '../../test/fakes/fake-device-plugin.ts';
import { until } from '../../test/harness/until.ts';
import { container, DeviceNode, pod, R, signal } from './device-node.fixture.ts';

describe('a device checkpoint of an earlier run', () => {
  let node: DeviceNode;
  const plugins: FakeDevicePlugin[] = [];
  const plugin = async (): Promise<FakeDevicePlugin> => {
    const devices = ['a', 'b'].map((id) => ({ id }));
    const made = new FakeDevicePlugin({ directory: node.directory, resource: R, devices });
    plugins.push(made);
    await made.start();
    await until('its devices are known', () => node.amounts() === '2/2');
    return made;
  };

  beforeEach(async () => {
    node = await new DeviceNode(mkdtempSync(join(tmpdir(), 'devices-'))).start();
  });
  afterEach(async () => {
    await Promise.all(plugins.splice(0).map((p) => p.stop()));
    await node.stop();
    rmSync(node.directory, { recursive: true, force: true });
  });

  const damages: readonly (readonly [what: string, damage: (path: string, good: string) => void])[] = [
    ['changed', (path, good) => writeFileSync(path, good.replace('"Checksum":', '"Checksum":1'))],
    ['empty', (path) => writeFileSync(path, '')],
    ['cut off', (path, good) => writeFileSync(path, good.slice(0, 40))],
    ['with a damaged entry', (path) => writeFileSync(path, damagedEntry('1'))],
  ];
  for (const [what, damage] of damages)
    it(`a checkpoint that is ${what} is kept, and nobody gets what a running container may have`, async () => {
      const path = join(node.directory, 'kubelet_internal_checkpoint');
      const fake = await plugin();
      const [first, second] = [pod('1', [container('c', 1)]), pod('2', [container('c', 1)])];
      await node.admit(first);
      await node.stop();
      damage(path, readFileSync(path, 'utf8'));
      const bad = readFileSync(path, 'utf8');
      node.running.add('1');
      await node.start();
      await fake.start();
      assert.equal(node.manager.isForgotten, false);
      assert.equal(readFileSync(`${path}.damaged-1`, 'utf8'), bad);
      await until('the plugin is back', () => node.amounts() === '2/2');
      assert.equal(await node.admit(first), 'admitted', 'it keeps what it has');
      assert.match(
        await node.admit(second),
        /container c of pod .* runs with devices that .*_checkpoint does not name/,
      );
      node.running.delete('1');
      node.active.delete('1');
      assert.equal(await node.admit(pod('3', [container('c', 1)])), 'admitted');
      await node.manager.saved();
      assert.match(readFileSync(path, 'utf8'), /"PodUID":"3"/);
      assert.equal(readFileSync(`${path}.damaged-1`, 'utf8'), bad);
    });

  it('a checkpoint that cannot be read for the moment is no damage: it is read later and not overwritten', async () => {
    const path = join(node.directory, 'kubelet_internal_checkpoint');
    const fake = await plugin();
    const first = pod('1', [container('c', 1)]);
    await node.admit(first);
    const held = node.held('1');
    await node.stop();
    renameSync(path, `${path}.there`);
    mkdirSync(path);
    await node.start();
    await fake.start();
    await until('the plugin is back', () => node.amounts() === '2/2');
    assert.match(
      await node.admit(pod('2', [container('c', 1)])),
      /cannot be read, no device is given out until it can: EISDIR/,
    );
    await assert.rejects(node.manager.saved());
    rmdirSync(path);
    renameSync(`${path}.there`, path);
    await node.manager.loaded(signal);
    assert.equal(node.held('1'), held);
    assert.equal(await node.admit(pod('3', [container('c', 1)])), 'admitted');
    assert.notEqual(node.held('3'), held);
  });
});

/** Its checksum is none, which is allowed; what the plugin answered is not of the right form. */
const damagedEntry = (podUid: string): string =>
  JSON.stringify({
    Data: {
      PodDeviceEntries: [
        { PodUID: podUid, ContainerName: 'c', ResourceName: R, DeviceIDs: { '-1': ['d'] }, AllocResp: '/w==' },
      ],
      RegisteredDevices: {},
    },
    Checksum: 0,
  });
