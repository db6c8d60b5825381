import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, Pod } from '../core/pod.ts';
import { encode } from '../lib/proto/codec.ts';
import { formatCheckpoint, parseCheckpoint } from './checkpoint.ts';
import { beginChoice, finishChoice } from './choose-devices.ts';
import { containerOptions } from './container-options.ts';
import type { Devices } from './device.ts';
import { ContainerAllocateResponse } from './gen/device-plugin.ts';
import { Inventory, STOP_GRACE_MS } from './inventory.ts';
import { containerRequests, podRequests } from './requests.ts';
import { numaCombinations } from '../core/numa-combinations.ts';
import { deviceHints } from './topology-hints.ts';

const devices = (spec: Record<string, readonly number[]>, sick: readonly string[] = []): Devices =>
  new Map(
    Object.entries(spec).map(([id, nodes]) => [id, { id, nodes, health: sick.includes(id) ? 'Unhealthy' : 'Healthy' }]),
  );

describe('which devices a container gets', () => {
  const all = devices({ a: [0], b: [0], c: [1], d: [1], e: [] });
  const free = ['a', 'b', 'c', 'd', 'e'];
  for (const [what, input, preferred, expected] of [
    ['without a hint, in order', { needed: 2 }, [], ['a', 'b']],
    ['what the plugin prefers', { needed: 2 }, ['d', 'e'], ['d', 'e']],
    ['a preference that is not free is ignored', { needed: 2, free: ['a', 'b'] }, ['x', 'b'], ['b', 'a']],
    ['a preference that is too short is filled up', { needed: 3 }, ['e'], ['e', 'a', 'b']],
    ['near the hinted node', { needed: 1, affinity: [1] }, [], ['c']],
    ['preferred among those near', { needed: 1, affinity: [1] }, ['a', 'd'], ['d']],
    [
      'all near ones first, then others before those without a node',
      { needed: 4, affinity: [1] },
      [],
      ['c', 'd', 'a', 'b'],
    ],
    ['the rest by preference', { needed: 3, affinity: [1] }, ['e'], ['c', 'd', 'e']],
    ['what an init container left first', { needed: 2, reusable: ['z'] }, [], ['z', 'a']],
    ['only what it left', { needed: 1, reusable: ['y', 'z'] }, ['a'], ['y']],
    ['no topology at all', { needed: 1, affinity: [1], devices: devices({ a: [], b: [] }), free: ['b'] }, [], ['b']],
  ] as const)
    it(what, () => {
      const choice = beginChoice({ resource: 'v/r', reusable: [], free, devices: all, affinity: undefined, ...input });
      assert.deepEqual(finishChoice(choice, preferred), expected);
    });

  it('asks the plugin with what is settled', () => {
    const { question } = beginChoice({
      resource: 'v/r',
      needed: 3,
      reusable: ['z'],
      free,
      devices: all,
      affinity: [0, 1],
    });
    assert.deepEqual(question?.mustInclude, ['z']);
    assert.deepEqual(question.available, ['a', 'b', 'c', 'd', 'z']);
    assert.equal(question.size, 3);
  });

  it('says how many are missing', () => {
    const input = { resource: 'v/r', needed: 4, reusable: ['z'], free: ['a'], devices: all, affinity: undefined };
    assert.throws(() => beginChoice(input), {
      message: 'requested number of devices unavailable for v/r. Requested: 3, Available: 1',
    });
  });
});

describe('topology hints', () => {
  const all = devices({ a: [0], b: [0], c: [1], d: [0, 1] });
  const hint = (numaNodes: number[], preferred: boolean) => ({ numaNodes, preferred });
  for (const [what, input, expected] of [
    ['one', { requested: 1 }, [hint([0], true), hint([1], true), hint([0, 1], false)]],
    ['three fit on node 0 with the shared one', { requested: 3 }, [hint([0], true), hint([0, 1], false)]],
    ['four need both', { requested: 4 }, [hint([0, 1], true)]],
    ['free ones only, preferred by all devices', { requested: 2, free: ['a', 'c'] }, [hint([0, 1], false)]],
    [
      'what must be reused',
      { requested: 2, reusable: ['c'], free: ['a', 'd'] },
      [hint([1], true), hint([0, 1], false)],
    ],
    ['more than there are', { requested: 9 }, []],
    ['unknown nodes do not count', { requested: 1, numaNodes: [1] }, [hint([1], true)]],
  ] as const)
    it(what, () => {
      const base = { devices: all, free: ['a', 'b', 'c', 'd'], reusable: [], numaNodes: [0, 1] };
      assert.deepEqual(deviceHints({ ...base, ...input }), expected);
    });

  it('visits masks by size, then by number', () => {
    assert.deepEqual([...numaCombinations([0, 2, 5])], [[0], [2], [5], [0, 2], [0, 5], [2, 5], [0, 2, 5]]);
  });
});

describe('inventory', () => {
  it('counts sick devices in the capacity only, and none of a plugin that left', () => {
    const inventory = new Inventory();
    inventory.connected('v/r');
    assert.deepEqual(inventory.replace('v/r', devices({ a: [], b: [] }, ['b'])), ['a', 'b']);
    assert.deepEqual(inventory.amounts(), { capacity: new Map([['v/r', 2]]), allocatable: new Map([['v/r', 1]]) });
    assert.deepEqual(inventory.replace('v/r', devices({ a: [], b: [] })), ['b']);
    inventory.stopped('v/r', 1000);
    assert.deepEqual(inventory.amounts(), { capacity: new Map([['v/r', 2]]), allocatable: new Map([['v/r', 0]]) });
    assert.deepEqual(inventory.expire(1000 + STOP_GRACE_MS), []);
    assert.deepEqual(inventory.expire(1001 + STOP_GRACE_MS), ['v/r']);
    assert.ok(!inventory.has('v/r'));
    assert.deepEqual(inventory.amounts(), { capacity: new Map([['v/r', 0]]), allocatable: new Map([['v/r', 0]]) });
  });

  it('a plugin back within five minutes is as before', () => {
    const inventory = new Inventory();
    inventory.remember('v/r', 0);
    inventory.connected('v/r');
    assert.deepEqual(inventory.expire(2 * STOP_GRACE_MS), []);
    inventory.replace('v/r', devices({ a: [] }));
    assert.deepEqual([...inventory.healthy('v/r')], ['a']);
  });
});

describe('requests', () => {
  const container = (name: string, count: number, sidecar = false): Container => ({
    name,
    ...(sidecar ? { restartPolicy: 'Always' as const } : {}),
    resources: { limits: { cpu: '2', 'v/r': String(count) } },
  });
  const pod = (init: Container[], main: Container[], status?: Pod['status']): Pod => ({
    metadata: { name: 'p' },
    spec: { initContainers: init, containers: main },
    ...(status === undefined ? {} : { status }),
  });
  const isPlugin = (name: string): boolean => name === 'v/r';

  for (const [what, init, main, expected] of [
    ['main containers add up', [], [container('a', 1), container('b', 2)], 3],
    ['the largest init container', [container('i', 5), container('j', 1)], [container('a', 1)], 5],
    ['sidecars run beside what follows', [container('s', 1, true), container('i', 2)], [container('a', 1)], 3],
    ['sidecars after an init container do not', [container('i', 3), container('s', 2, true)], [container('a', 1)], 3],
  ] as const)
    it(what, () => assert.deepEqual(podRequests(pod([...init], [...main]), isPlugin), new Map([['v/r', expected]])));

  it('none where the scheduler used a claim', () => {
    const mapping = { containerName: 'a', resourceName: 'v/r', requestName: 'x' };
    const claimed = pod([], [container('a', 1)], {
      extendedResourceClaimStatus: { resourceClaimName: 'c', requestMappings: [mapping] },
    });
    assert.equal(containerRequests(claimed, container('a', 1), isPlugin).size, 0);
    assert.equal(containerRequests(claimed, container('b', 1), isPlugin).size, 1);
  });
});

it('the first of two resources that name the same thing counts', () => {
  const answer = (value: string): ContainerAllocateResponse => ({
    envs: { SAME: value, [`ONLY_${value}`]: value },
    annotations: { same: value },
    mounts: [{ containerPath: '/same', hostPath: `/${value}`, readOnly: true }],
    devices: [{ containerPath: '/dev/same', hostPath: `/dev/${value}`, permissions: 'rw' }],
    cdiDevices: [{ name: 'v/c=same' }, { name: `v/c=${value}` }],
  });
  assert.deepEqual(containerOptions([answer('1'), answer('2')]), {
    env: [
      { name: 'SAME', value: '1' },
      { name: 'ONLY_1', value: '1' },
      { name: 'ONLY_2', value: '2' },
    ],
    annotations: { same: '1' },
    mounts: [{ containerPath: '/same', hostPath: '/1', readonly: true }],
    devices: [{ containerPath: '/dev/same', hostPath: '/dev/1', permissions: 'rw' }],
    cdiDevices: ['v/c=same', 'v/c=1', 'v/c=2'],
  });
});

describe('checkpoint', () => {
  const response = { envs: { A: 'b' }, annotations: {}, mounts: [], devices: [], cdiDevices: [] };
  const nothing = '{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":3467439661}';

  it('is what upstream writes for nothing', () => {
    assert.equal(formatCheckpoint({ grants: [], registered: new Map() }), nothing);
    assert.deepEqual(parseCheckpoint(nothing), { grants: [], registered: new Map(), damaged: [] });
  });

  it('accepts the sum that upstream makes', () => {
    const text =
      '{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"c","ResourceName":"example.com/a",' +
      '"DeviceIDs":{"-1":["d0"],"0":["d1"]},"AllocResp":"CgY="}],' +
      '"RegisteredDevices":{"example.com/a":["d0","d1"]}},"Checksum":1481506765}';
    const { damaged, registered } = parseCheckpoint(text);
    // The recorded answer is cut off in the middle of a message: that entry is named, the rest is used.
    assert.equal(damaged.length, 1);
    assert.deepEqual(registered, new Map([['example.com/a', ['d0', 'd1']]]));
    assert.throws(() => parseCheckpoint(text.replace('"d1"]}},', '"d2"]}},')), { message: 'checkpoint is corrupted' });
    assert.throws(() => parseCheckpoint(text.slice(0, 80)));
  });

  it('reads what it wrote', () => {
    const entry = {
      podUid: 'u',
      container: 'c',
      resource: 'v/r',
      grant: {
        devices: new Map([
          ['x', [0, 10]],
          ['y', []],
          ['z', [2]],
        ]),
        response,
      },
    };
    const text = formatCheckpoint({ grants: [entry], registered: new Map([['v/r', ['x']]]) });
    assert.ok(text.includes('"DeviceIDs":{"-1":["y"],"0":["x"],"10":["x"],"2":["z"]}'), text);
    assert.ok(text.includes(`"AllocResp":"${encode(ContainerAllocateResponse, response).toString('base64')}"`));
    const read = parseCheckpoint(text).grants[0];
    assert.deepEqual(read?.grant.devices, entry.grant.devices);
    assert.deepEqual(read?.grant.response, response);
  });
});
