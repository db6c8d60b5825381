import assert from 'node:assert/strict';
import { existsSync, mkdirSync, mkdtempSync, rmSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { until } from '../../test/harness/until.ts';
import type { Pod } from '../core/pod.ts';
import { systemClock } from '../lib/clock.ts';
import { GrpcChannel } from '../lib/grpc/channel.ts';
import { GrpcCode } from '../lib/grpc/status.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { PodResourcesLister } from './gen/pod-resources.ts';
import { PodResourcesServer, type Assigned } from './pod-resources.ts';

const { signal } = new AbortController();
const pod = (name: string): Pod => ({
  metadata: { name, namespace: 'n', uid: `uid-${name}` },
  spec: {
    initContainers: [{ name: 'init' }, { name: 'side', restartPolicy: 'Always' }],
    containers: [{ name: 'main' }],
  },
});

const assigned: Assigned = {
  devices: {
    devicesOf: (_, container) =>
      container === 'main'
        ? [
            { resource: 'v/r', id: 'a' },
            { resource: 'v/r', id: 'b', node: 1 },
          ]
        : [],
    allocatableDevices: () => [{ resource: 'v/r', id: 'c', node: 0 }],
  },
  cpus: { exclusiveCpus: (_, container) => (container === 'side' ? [3, 2] : []), allocatableCpus: () => [1, 2, 3] },
  memory: {
    memoryOf: (_, container) => (container === 'main' ? [{ type: 'memory', bytes: 4096, nodes: [0, 1] }] : []),
    allocatableMemory: () => [{ type: 'hugepages-2Mi', bytes: 2 ** 21, nodes: [0] }],
  },
  claims: {
    claimsOf: (_, container) =>
      container.name === 'main'
        ? [
            {
              name: 'claim',
              namespace: 'n',
              devices: [
                { driver: 'd', pool: 'p', device: 'x', cdiIds: ['d/c=x'] },
                { driver: 'd', pool: 'p', device: 'y', shareId: 's', cdiIds: ['d/c=y'] },
              ],
            },
          ]
        : [],
  },
};

describe('pod resources API', () => {
  const dir = mkdtempSync(join(tmpdir(), 'pod-resources-'));
  const socketPath = join(dir, 'kubelet.sock');
  const registry = new Registry();
  const channel = new GrpcChannel(systemClock, { target: { socketPath } });
  const stop = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const call = { signal, deadlineMs: 5000 };
  const topology = (...nodes: number[]) => ({ nodes: nodes.map((ID) => ({ ID })) });

  before(async () => {
    const pods = { active: () => [pod('one')], all: () => [pod('one'), pod('ended')] };
    const deps = { clock: systemClock, log: silentLogger, registry, ...pods, listsActiveOnly: true, assigned };
    running = new PodResourcesServer(deps, socketPath).run(stop.signal);
    await until('it listens', () => existsSync(socketPath));
  });
  after(async () => {
    channel.close();
    stop.abort();
    await running;
    rmSync(dir, { recursive: true, force: true });
  });

  it('lists sidecars and main containers of active pods with all they have', async () => {
    const { podResources } = await channel.unary(PodResourcesLister.list, {}, call);
    assert.deepEqual(podResources, [
      {
        name: 'one',
        namespace: 'n',
        containers: [
          { name: 'side', devices: [], cpuIds: [3, 2], memory: [], dynamicResources: [] },
          {
            name: 'main',
            devices: [
              { resourceName: 'v/r', deviceIds: ['a'] },
              { resourceName: 'v/r', deviceIds: ['b'], topology: topology(1) },
            ],
            cpuIds: [],
            memory: [{ memoryType: 'memory', size: 4096, topology: topology(0, 1) }],
            dynamicResources: [
              {
                claimName: 'claim',
                claimNamespace: 'n',
                claimResources: [
                  { cdiDevices: [{ name: 'd/c=x' }], driverName: 'd', poolName: 'p', deviceName: 'x', shareId: '' },
                  {
                    cdiDevices: [{ name: 'd/c=x' }, { name: 'd/c=y' }],
                    driverName: 'd',
                    poolName: 'p',
                    deviceName: 'y',
                    shareId: 's',
                  },
                ],
              },
            ],
          },
        ],
      },
    ]);
  });

  it('gets one active pod, and says so of any other', async () => {
    const one = await channel.unary(PodResourcesLister.get, { podName: 'one', podNamespace: 'n' }, call);
    assert.equal(one.podResources?.containers.length, 2);
    await assert.rejects(channel.unary(PodResourcesLister.get, { podName: 'ended', podNamespace: 'n' }, call), {
      code: GrpcCode.Unknown,
      message: 'pod ended in namespace n not found',
    });
  });

  it('tells what could be given out', async () => {
    assert.deepEqual(await channel.unary(PodResourcesLister.getAllocatableResources, {}, call), {
      devices: [{ resourceName: 'v/r', deviceIds: ['c'], topology: topology(0) }],
      cpuIds: [1, 2, 3],
      memory: [{ memoryType: 'hugepages-2Mi', size: 2 ** 21, topology: topology(0) }],
    });
  });

  it('v1alpha1 lists the devices of main containers of every pod', async () => {
    const old = { ...PodResourcesLister.list, path: '/v1alpha1.PodResourcesLister/List' };
    const { podResources } = await channel.unary(old, {}, call);
    assert.deepEqual(
      podResources.map((p) => [p.name, p.containers.map((c) => [c.name, c.devices.length, c.memory.length])]),
      [
        ['one', [['main', 2, 0]]],
        ['ended', [['main', 2, 0]]],
      ],
    );
  });

  it('lists every pod where the gate says so', async () => {
    const path = join(dir, 'every.sock');
    const pods = { active: () => [pod('one')], all: () => [pod('one'), pod('ended')] };
    const deps = {
      clock: systemClock,
      log: silentLogger,
      registry: new Registry(),
      ...pods,
      listsActiveOnly: false,
      assigned,
    };
    const life = new AbortController();
    const every = new PodResourcesServer(deps, path).run(life.signal);
    await until('it listens', () => existsSync(path));
    const other = new GrpcChannel(systemClock, { target: { socketPath: path } });
    const { podResources } = await other.unary(PodResourcesLister.list, {}, call);
    assert.deepEqual(
      podResources.map((p) => p.name),
      ['one', 'ended'],
    );
    const ended = other.unary(PodResourcesLister.get, { podName: 'ended', podNamespace: 'n' }, call);
    await assert.rejects(ended, { message: 'pod ended in namespace n not found' });
    other.close();
    life.abort();
    await every;
  });

  it('is served once what stands in its way is gone', async () => {
    const path = join(dir, 'later', 'kubelet.sock');
    mkdirSync(path, { recursive: true });
    const clock = new ManualClock();
    const pods = { active: () => [pod('one')], all: () => [], listsActiveOnly: true };
    const deps = { clock, log: silentLogger, registry: new Registry(), ...pods, assigned };
    const life = new AbortController();
    const later = new PodResourcesServer(deps, path).run(life.signal);
    await until('it waits', () => clock.pending > 0);
    rmdirSync(path);
    await clock.advance(1000);
    await until('it listens', () => existsSync(path));
    const other = new GrpcChannel(systemClock, { target: { socketPath: path } });
    const { podResources } = await other.unary(PodResourcesLister.list, {}, call);
    assert.equal(podResources.length, 1);
    other.close();
    life.abort();
    await later;
  });

  it('counts requests and errors', () => {
    const text = registry.render();
    assert.match(text, /^kubelet_pod_resources_endpoint_requests_list\{server_api_version="v1"\} 1$/m);
    assert.match(text, /^kubelet_pod_resources_endpoint_requests_get\{server_api_version="v1"\} 2$/m);
    assert.match(text, /^kubelet_pod_resources_endpoint_errors_get\{server_api_version="v1"\} 1$/m);
    assert.match(text, /^kubelet_pod_resources_endpoint_requests_total\{server_api_version="v1alpha1"\} 1$/m);
  });
});
