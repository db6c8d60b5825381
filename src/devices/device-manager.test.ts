import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FakeDevicePlugin, serveGarbage, type FakeDevicePluginOptions } from '../../test/fakes/fake-device-plugin.ts';
import { until } from '../../test/harness/until.ts';
import { uidOf } from '../core/pod.ts';
import { container, DeviceNode, pod, R, signal } from './device-node.fixture.ts';
import { STOP_GRACE_MS } from './inventory.ts';

describe('device manager', () => {
  let node: DeviceNode;
  const plugins: FakeDevicePlugin[] = [];
  const plugin = async (
    options: Partial<FakeDevicePluginOptions> = {},
    devices = ['a', 'b'].map((id) => ({ id })),
  ): Promise<FakeDevicePlugin> => {
    const made = new FakeDevicePlugin({ directory: node.directory, resource: R, devices, ...options });
    plugins.push(made);
    await made.start();
    await until('its devices are known', () => node.amounts() !== '0/0' && node.amounts() !== '-/-');
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

  it('gives each device to one pod, and again when the pod is over', async () => {
    await plugin();
    assert.equal(node.amounts(), '2/2');
    assert.equal(await node.admit(pod('1', [container('c', 1)])), 'admitted');
    assert.equal(await node.admit(pod('2', [container('c', 1)])), 'admitted');
    assert.notEqual(node.held('1'), node.held('2'));
    const third = pod('3', [container('c', 1)]);
    const full = `UnexpectedAdmissionError: Allocate failed due to requested number of devices unavailable for ${R}. Requested: 1, Available: 0, which is unexpected`;
    assert.equal(await node.admit(third), full);
    node.active.delete('1');
    node.running.add('1');
    assert.equal(await node.admit(third), full, 'the containers of a pod that nobody knows any more still run');
    node.running.delete('1');
    assert.equal(await node.admit(third), 'admitted');
  });

  it('hands the container what the plugin answered, at every start', async () => {
    const fake = await plugin({
      options: { preStartRequired: true },
      answer: (ids) => ({
        envs: { IDS: ids.join() },
        mounts: [{ containerPath: '/m', hostPath: '/h', readOnly: true }],
        devices: [{ containerPath: '/dev/x', hostPath: '/dev/null', permissions: 'rw' }],
        annotations: { note: 'yes' },
        cdiDevices: [{ name: 'example.com/card=a' }],
      }),
    });
    const wanted = pod('1', [container('c', 2)]);
    assert.equal(await node.admit(wanted), 'admitted');
    for (const _ of [1, 2])
      assert.deepEqual(await node.hook.preCreate(wanted, container('c', 2), signal), {
        env: [{ name: 'IDS', value: 'a,b' }],
        annotations: { note: 'yes' },
        mounts: [{ containerPath: '/m', hostPath: '/h', readonly: true }],
        devices: [{ containerPath: '/dev/x', hostPath: '/dev/null', permissions: 'rw' }],
        cdiDevices: ['example.com/card=a'],
      });
    assert.deepEqual(
      fake.calls.map((c) => c.call),
      ['Allocate', 'PreStartContainer', 'PreStartContainer'],
    );
  });

  it('asks for a preference', async () => {
    const fake = await plugin(
      {
        options: { getPreferredAllocationAvailable: true },
        prefer: (available) => [...available].reverse(),
      },
      ['a', 'b', 'c'].map((id) => ({ id })),
    );
    assert.equal(await node.admit(pod('1', [container('c', 2)])), 'admitted');
    assert.equal(node.held('1'), 'b c');
    assert.deepEqual(fake.calls[0], { call: 'GetPreferredAllocation', ids: ['a', 'b', 'c'] });
  });

  it('stays near the NUMA nodes of the hint', async () => {
    await plugin({}, [
      { id: 'a', nodes: [0] },
      { id: 'b', nodes: [1] },
      { id: 'c', nodes: [1] },
    ] as never);
    const wanted = pod('1', [container('c', 2)]);
    node.active.set('1', wanted);
    assert.deepEqual(node.manager.hints(wanted, container('c', 2)), {
      [R]: [
        { numaNodes: [1], preferred: true },
        { numaNodes: [0, 1], preferred: false },
      ],
    });
    await node.manager.allocate(wanted, container('c', 2), { numaNodes: [1], preferred: true }, signal);
    assert.equal(node.held('1'), 'b c');
    assert.deepEqual(node.manager.hints(wanted, container('c', 2))[R]?.[0], { numaNodes: [1], preferred: true });
    assert.deepEqual(node.manager.hints(pod('2', []), container('c', 2)), { [R]: [] });
    assert.deepEqual(node.manager.devicesOf(uidOf(wanted), 'c')[0], { resource: R, id: 'b', node: 1 });
  });

  it('init containers pass their devices on, sidecars keep theirs', async () => {
    await plugin(
      {},
      ['a', 'b', 'c'].map((id) => ({ id })),
    );
    const init = [container('i', 2), container('s', 1, { restartPolicy: 'Always' })];
    assert.equal(await node.admit(pod('1', [container('c', 2)], init)), 'admitted');
    assert.equal(node.held('1', 'i'), 'a b');
    assert.equal(node.held('1', 's'), 'a');
    assert.equal(node.held('1', 'c'), 'b c');
  });

  it('tells how the devices of a pod are', async () => {
    const fake = await plugin();
    await node.admit(pod('1', [container('c', 1)]));
    const health = () => node.manager.healthOf(uidOf(pod('1', [])), 'c')?.[0];
    assert.deepEqual(health(), { name: R, resources: [{ resourceID: 'a', health: 'Healthy' }] });
    fake.list([{ id: 'a', health: 'Unhealthy' }, { id: 'b' }]);
    await until('the pod is told', () => node.woken.includes('1'));
    assert.deepEqual(health(), { name: R, resources: [{ resourceID: 'a', health: 'Unhealthy' }] });
    assert.equal(node.amounts(), '1/2');
  });

  it('a plugin that leaves and comes back: the pod keeps its device, others wait', async () => {
    const fake = await plugin();
    await node.admit(pod('1', [container('c', 1)]));
    await fake.stop();
    await until('it is seen gone', () => node.amounts() === '0/2');
    const refused = `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${R}, which is unexpected`;
    assert.equal(await node.admit(pod('2', [container('c', 1)])), refused);
    assert.equal((await node.hook.preCreate(pod('1', []), container('c', 1), signal)).env?.[0]?.value, 'a');
    await fake.start();
    await until('it is back', () => node.amounts() === '2/2');
    assert.equal(await node.admit(pod('2', [container('c', 1)])), 'admitted');
    assert.equal(node.held('2'), 'b');
  });

  it('a plugin that stays away is forgotten after five minutes', async () => {
    await (await plugin()).stop();
    await until('it is seen gone', () => node.amounts() === '0/2');
    node.skipMs = STOP_GRACE_MS + 1000;
    assert.equal(node.amounts(), '0/0');
    // No plugin's resource any more: nobody's business here.
    assert.equal(await node.admit(pod('1', [container('c', 1)])), 'admitted');
    assert.equal(node.held('1'), '');
  });

  it('of a resource that left for good nothing is kept once no container has a device of it', async () => {
    const fake = await plugin();
    await node.admit(pod('1', [container('c', 1)]));
    await fake.stop();
    await until('it is seen gone', () => node.amounts() === '0/2');
    node.skipMs = STOP_GRACE_MS + 1000;
    assert.equal(node.amounts(), '0/0');
    assert.deepEqual([node.gone, node.isConnected()], [[], true], 'a container has its device');
    node.active.delete('1');
    await node.admit(pod('2', [container('c', 1)]));
    assert.equal(node.amounts(), '0/0');
    assert.deepEqual([node.gone, node.isConnected()], [[R], false]);
  });

  it('comes back with fewer devices: the pod whose device is gone keeps it on record', async () => {
    const fake = await plugin();
    await node.admit(pod('1', [container('c', 2)]));
    fake.list([{ id: 'b' }]);
    await until('the list is known', () => node.amounts() === '1/1');
    assert.equal(node.held('1'), 'a b');
    assert.match(await node.admit(pod('2', [container('c', 1)])), /Requested: 1, Available: 0/);
    const changed = await node.admit(pod('1', [container('c', 1)]));
    assert.match(changed, /pod "1" container "c" changed request for resource "example.com\/card" from 2 to 1/);
  });

  it('registers twice: the newest counts, the old one takes nothing down', async () => {
    const old = await plugin();
    await node.admit(pod('1', [container('c', 1)]));
    const fresh = await plugin(
      { socketName: 'fresh.sock' },
      ['a', 'b', 'x'].map((id) => ({ id })),
    );
    await until('the new list is known', () => node.amounts() === '3/3');
    await old.stop();
    assert.equal(await node.admit(pod('2', [container('c', 2)])), 'admitted');
    assert.equal(fresh.calls.length, 1);
    assert.equal(node.held('1'), 'a');
  });

  it('found in the plugin folder and gone from it: a container whose start it must prepare waits for it', async () => {
    const { handler } = node.registration;
    const fake = await plugin({ options: { preStartRequired: true } });
    const info = { name: R, endpoint: fake.socketPath, versions: ['v1beta1'] };
    const wanted = pod('1', [container('c', 1)]);
    assert.equal(await node.admit(wanted), 'admitted');
    handler.deregister(info);
    assert.equal(node.amounts(), '0/2');
    const start = (): Promise<unknown> => node.hook.preCreate(wanted, container('c', 1), signal);
    await assert.rejects(start, { message: `endpoint ${R} has been stopped` });
    await handler.register(info, signal);
    await start();
    assert.deepEqual(
      fake.calls.map((c) => c.call),
      ['Allocate', 'PreStartContainer'],
    );
  });

  it('found in the plugin folder: a new one takes over before the old socket goes', async () => {
    const { handler } = node.registration;
    const info = (fake: FakeDevicePlugin) => ({ name: R, endpoint: fake.socketPath, versions: ['v1beta1'] });
    const [old, fresh] = ['old.sock', 'fresh.sock'].map(
      (socketName) =>
        new FakeDevicePlugin({ directory: node.directory, resource: R, devices: [{ id: 'a' }], socketName }),
    );
    assert.ok(old && fresh);
    plugins.push(old, fresh);
    for (const fake of [old, fresh]) {
      await fake.listen();
      handler.validate(info(fake));
      await handler.register(info(fake), signal);
    }
    await until('its devices are known', () => node.amounts() === '1/1');
    handler.deregister(info(old));
    assert.equal(await node.admit(pod('1', [container('c', 1)])), 'admitted');
    assert.deepEqual([old.calls.length, fresh.calls.length], [0, 1]);
    handler.deregister(info(fresh));
    assert.equal(node.amounts(), '0/1');
    assert.throws(() => handler.validate({ ...info(old), versions: ['v1'] }), {
      message: 'manager version, v1beta1, is not among plugin supported versions [v1]',
    });
    assert.throws(() => handler.validate({ ...info(old), name: 'x' }), {
      message: 'invalid name of device plugin socket: the ResourceName "x" is invalid',
    });
  });

  for (const [fault, text] of [
    ['die', /Allocate failed due to rpc error: code = Unavailable desc = /],
    ['refuse', /Allocate failed due to rpc error: code = Unknown desc = the card is on fire, which is unexpected/],
    ['empty', /Allocate failed due to no containers return in allocation response , which is unexpected/],
  ] as const)
    it(`Allocate: ${fault}; nothing is lost`, async () => {
      const fake = await plugin();
      fake.fault = fault;
      assert.match(await node.admit(pod('1', [container('c', 1)])), text);
      fake.fault = undefined;
      if (fault === 'die') {
        await until('it is seen gone', () => node.amounts() === '0/2');
        await fake.start();
        await until('it is back', () => node.amounts() === '2/2');
      }
      assert.equal(await node.admit(pod('2', [container('c', 2)])), 'admitted');
    });

  it('Allocate hangs: its devices are nobody else’s meanwhile, and free when it is given up', async () => {
    const fake = await plugin();
    fake.fault = 'hang';
    const stop = new AbortController();
    const wanted = pod('1', [container('c', 1)]);
    node.active.set('1', wanted);
    const hanging = node.manager.allocate(
      wanted,
      container('c', 1),
      { numaNodes: undefined, preferred: true },
      stop.signal,
    );
    await until('it was asked', () => fake.calls.length === 1);
    fake.fault = undefined;
    assert.match(await node.admit(pod('2', [container('c', 2)])), /Requested: 2, Available: 1/);
    stop.abort(new Error('given up'));
    await assert.rejects(hanging, /given up/);
    assert.equal(await node.admit(pod('3', [container('c', 2)])), 'admitted');
  });

  it('answers garbage: it is not registered', async () => {
    const server = await serveGarbage(join(node.directory, 'garbage.sock'));
    const fake = new FakeDevicePlugin({
      directory: node.directory,
      resource: R,
      devices: [],
      socketName: 'garbage.sock',
    });
    await assert.rejects(fake.register(), /failed to get device plugin options: rpc error: code = Internal/);
    server.close();
    assert.equal(node.amounts(), '-/-');
  });

  for (const [what, options, version, text] of [
    [
      'another version',
      {},
      'v1alpha',
      /requested API version "v1alpha" is not supported by kubelet. Supported version is \["v1beta1"\]$/,
    ],
    [
      'a name of Kubernetes',
      { resource: 'kubernetes.io/x' },
      'v1beta1',
      /the ResourceName "kubernetes.io\/x" is invalid$/,
    ],
    ['nobody listens', { socketName: 'nobody.sock' }, 'v1beta1', /failed to dial device plugin: /],
  ] as const)
    it(`refuses ${what}`, async () => {
      const fake = new FakeDevicePlugin({ directory: node.directory, resource: R, devices: [], ...options });
      await assert.rejects(fake.register(version), text);
    });

  it('the agent starts again: running pods keep their devices before the plugin is back', async () => {
    const fake = await plugin();
    const first = pod('1', [container('c', 1)], [container('i', 1)]);
    await node.admit(first);
    await node.admit(pod('2', [container('c', 1)]));
    const before = node.held('1');
    await node.stop();
    node.active.clear();
    node.synced = false;
    node.running.add('1');
    await node.start();
    assert.ok(!existsSync(fake.socketPath), 'the plugin sees that it must register again');
    assert.equal(node.amounts(), '0/0');
    assert.equal(await node.admit(first), 'admitted');
    assert.deepEqual(node.manager.allocatedTo(first), new Map([[R, 2]]));
    const gone = `UnexpectedAdmissionError: Allocate failed due to no healthy devices present; cannot allocate unhealthy devices ${R}, which is unexpected`;
    assert.equal(
      await node.admit(pod('2', [container('c', 1)])),
      gone,
      'a pod that does not run has to wait for its plugin',
    );
    await fake.start();
    await until('it is back', () => node.amounts() === '2/2');
    node.synced = true;
    assert.equal(await node.admit(pod('3', [container('c', 1)])), 'admitted');
    assert.equal(node.held('1'), before);
    assert.notEqual(node.held('3'), before);
    assert.equal((await node.hook.preCreate(first, container('c', 1), signal)).env?.[0]?.value, before);
  });

  it('a container waits until its devices are on disk, admission does not', async () => {
    const path = join(node.directory, 'kubelet_internal_checkpoint');
    await plugin();
    await until('its devices are written', () => existsSync(path));
    rmSync(path);
    // Nothing can be put in its place.
    mkdirSync(join(path, 'x'), { recursive: true });
    const wanted = pod('1', [container('c', 1)]);
    assert.equal(await node.admit(wanted), 'admitted');
    await assert.rejects(node.hook.preCreate(wanted, container('c', 1), signal), {
      reason: 'CreateContainerConfigError',
      message: /^failed to write checkpoint file "kubelet_internal_checkpoint": /,
    });
    rmSync(path, { recursive: true });
    await node.hook.preCreate(wanted, container('c', 1), signal);
    assert.match(readFileSync(path, 'utf8'), /"PodUID":"1"/);
  });
});
