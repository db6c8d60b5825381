// Claims, their checkpoint and the health of devices where fields are absent or of the wrong kind.
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { crc32 } from 'node:zlib';
import type { Container, Pod } from '../core/pod.ts';
import type { ResourceClaim } from '../kube/resources.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { formatClaims, parseClaims } from './checkpoint.ts';
import { DraManager, type DraManagerDeps } from './dra-manager.ts';
import { HealthCache, shortened } from './health.ts';
import { containerRequests, driversOf, podClaims } from './pod-claims.ts';

const file = (list: unknown, head: object = {}): string => {
  const data = { kind: 'DRACheckpoint', apiVersion: 'checkpoint.dra.kubelet.k8s.io/v1', ClaimInfoStateList: list };
  const Data = JSON.stringify({ ...data, ...head });
  return JSON.stringify({ Data, Checksum: crc32(Data) });
};
const claim = (more: object): object => ({ ClaimUID: 'u', ClaimName: 'c', Namespace: 'n', ...more });

describe('the checkpoint of claims', () => {
  it('keeps shared devices and drivers in order', () => {
    const device = { pool: 'p', device: 'd', shareId: 's', requestNames: ['r'], cdiIds: ['v/c=d'] };
    const entry = { uid: 'u', name: 'c', namespace: 'n', pods: new Set(['x']), prepared: false };
    const drivers = new Map([
      ['b', []],
      ['a', [device]],
    ]);
    const text = formatClaims([{ ...entry, drivers }]);
    assert.ok(text.indexOf('\\"a\\"') < text.indexOf('\\"b\\"'));
    assert.deepEqual(parseClaims(text), [{ ...entry, drivers: new Map([...drivers].reverse()) }]);
  });

  it('may have null for what is empty', () => {
    assert.deepEqual(parseClaims(file(null)), []);
    const [read] = parseClaims(file([claim({ PodUIDs: null, DriverState: { d: { Devices: null } } })]));
    assert.deepEqual([read?.pods.size, [...(read?.drivers ?? [])]], [0, [['d', []]]]);
  });

  for (const [name, text, problem] of [
    ['another kind', file([], { kind: 'X' }), /unknown checkpoint checkpoint.dra.kubelet.k8s.io\/v1 X/],
    ['data that is no text', JSON.stringify({ Data: {}, Checksum: 0 }), /checkpoint is corrupted/],
    ['claims that are no list', file({}), /not a list/],
    ['a claim that is no object', file([1]), /not an object/],
    ['a claim without a name', file([claim({ ClaimName: 1 })]), /not a text/],
    ['devices that are no list', file([claim({ DriverState: { d: { Devices: {} } } })]), /not a list/],
  ] as const)
    it(`with ${name} is refused`, () => assert.throws(() => parseClaims(text), problem));
});

describe('claims of a pod', () => {
  const pod = (spec: Partial<Pod['spec']>, status?: Pod['status']): Pod => ({
    metadata: { name: 'p', namespace: 'n', uid: 'u' },
    spec: { containers: [], ...spec },
    ...(status === undefined ? {} : { status }),
  });
  const claimOf = (more: Partial<ResourceClaim>): ResourceClaim => ({ metadata: { name: 'c' }, ...more });
  const used = { claimName: 'c', mustOwn: false };

  it('an entry without a claim is refused, a pod without entries has none', () => {
    assert.deepEqual(podClaims(pod({}), true), []);
    assert.throws(() => podClaims(pod({ resourceClaims: [{ name: 'e' }] }), false), /none of the supported fields/);
  });

  it('a claim must be reserved for the pod and allocated', () => {
    const reserved = { reservedFor: [{ resource: 'pods', name: 'p', uid: 'u' }] };
    assert.throws(() => driversOf(pod({}), used, claimOf({}), false), /is not allowed to use ResourceClaim c \(\)/);
    assert.throws(() => driversOf(pod({}), used, claimOf({ status: reserved }), false), /not allocated/);
    assert.deepEqual(driversOf(pod({}), used, claimOf({ status: { ...reserved, allocation: {} } }), false), []);
    assert.throws(
      () => driversOf(pod({}), { ...used, mustOwn: true }, claimOf({ status: reserved }), false),
      /ResourceClaim \/c was not created for Pod n\/p \(Pod is not owner\)/,
    );
    const grouped = pod({ schedulingGroup: { podGroupName: 'g' } });
    assert.throws(
      () => driversOf(grouped, { ...used, mustOwn: true }, claimOf({ status: reserved }), true),
      /neither Pod nor PodGroup g is the owner/,
    );
  });

  it('a container uses what it asks for, and extended resources only where it requests them', () => {
    const status = {
      extendedResourceClaimStatus: {
        resourceClaimName: 'x',
        requestMappings: [
          { containerName: 'a', resourceName: 'v.com/r', requestName: 'r' },
          { containerName: 'a', resourceName: 'deviceclass.resource.kubernetes.io/k', requestName: 's' },
        ],
      },
    };
    const its = pod({ resourceClaims: [{ name: 'e', resourceClaimName: 'c' }] }, status);
    const ask = (resources: NonNullable<Pod['spec']['containers'][0]['resources']>, extended = true) =>
      containerRequests(its, { name: 'a', resources }, extended);
    assert.deepEqual(containerRequests(its, { name: 'a' }, true), []);
    assert.deepEqual(ask({ claims: [{ name: 'other' }] }, false), []);
    assert.deepEqual(ask({ claims: [{ name: 'e' }] }), [{ claimName: 'c', request: '', statusName: 'claim:e' }]);
    assert.deepEqual(ask({ requests: { 'v.com/r': '1', 'deviceclass.resource.kubernetes.io/k': '1' } }), [
      { claimName: 'x', request: 'r' },
      { claimName: 'x', request: 's' },
    ]);
    const noMappings = { extendedResourceClaimStatus: { resourceClaimName: 'x' } } as never;
    assert.deepEqual(containerRequests(pod({}, noMappings), { name: 'a' }, true), []);
  });
});

describe('the health of devices', () => {
  const clock = new ManualClock();
  const told = (health: number, timeout = 0) => ({
    device: { poolName: 'p', deviceName: 'd' },
    health,
    healthCheckTimeoutSeconds: timeout,
    lastUpdatedTime: 0,
    message: '',
  });
  const of = (cache: HealthCache): string => cache.of('drv', 'p', 'd').health;

  it('is read from its file, without what is damaged', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-health-'));
    const path = join(dir, 'health');
    const good = {
      PoolName: 'p',
      DeviceName: 'd',
      Health: 'Healthy',
      LastUpdated: new Date(clock.now()).toISOString(),
    };
    const Devices = {
      'p/d': good,
      'p/null': null,
      'p/number': { ...good, PoolName: 1 },
      'p/unnamed': { ...good, DeviceName: null },
      'p/word': { ...good, Health: 'Fine' },
      'p/time': { ...good, LastUpdated: 'yesterday' },
      'p/full': { ...good, Message: 'm', HealthCheckTimeout: 5e9 },
    };
    await writeFile(path, JSON.stringify({ drv: { Devices }, empty: null }));
    const cache = new HealthCache({ clock, log: silentLogger }, { file: path });
    await cache.load();
    assert.equal(of(cache), 'Healthy');
    for (const name of ['null', 'number', 'unnamed', 'word', 'time'])
      assert.equal(cache.of('drv', 'p', name).health, 'Unknown', name);
    assert.equal(cache.of('drv', 'p', 'full').message, 'm');
    await clock.advance(6000);
    assert.equal(cache.of('drv', 'p', 'full').health, 'Unknown');
    assert.ok(cache.update('drv', [told(2, 60)]));
    assert.ok(cache.clear('drv') && !cache.clear('drv'));
    await cache.close();
    assert.doesNotMatch(await readFile(path, 'utf8'), /drv/);
    await rm(dir, { recursive: true });
  });

  it('that a driver does not know the word of, or no device, is unknown', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-health-'));
    const cache = new HealthCache({ clock, log: silentLogger }, { file: join(dir, 'health') });
    cache.update('drv', [told(9)]);
    assert.equal(of(cache), 'Unknown');
    cache.update('drv', [{ ...told(1), device: undefined }]);
    assert.equal(cache.of('drv', '', '').health, 'Healthy');
    await cache.close();
    await rm(dir, { recursive: true });
  });

  it('a long message is cut between characters', () => {
    assert.equal(shortened('a'.repeat(1024)).length, 1024);
    assert.equal(shortened('a'.repeat(1025)), `${'a'.repeat(1021)}...`);
    assert.equal(shortened(`a${'ä'.repeat(512)}`), `a${'ä'.repeat(510)}...`);
    assert.equal(shortened('ä'.repeat(513)), `${'ä'.repeat(510)}...`);
  });
});

describe('the first state of claims', () => {
  it('is written later where the disk takes nothing at the start', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-claims-'));
    const checkpoint = join(dir, 'folder', 'dra_manager_state');
    const clock = new ManualClock();
    const manager = new DraManager(
      { clock, log: silentLogger, pods: { sourcesReady: () => false } } as unknown as DraManagerDeps,
      { checkpoint, extendedResources: true, podGroups: true, healthMessages: true },
    );
    await manager.load();
    const stop = new AbortController();
    const running = manager.run(stop.signal);
    await mkdir(join(dir, 'folder'));
    await clock.advance(60_000);
    const written = async (): Promise<string> => readFile(checkpoint, 'utf8').catch(() => '');
    while ((await written()) === '') await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(parseClaims(await written()), []);
    stop.abort();
    await running;
    await rm(dir, { recursive: true });
  });
});

describe('what a container is told of its claims', () => {
  const DRIVER = 'gpu.example.com';
  const device = (name: string, requestNames: readonly string[], cdiIds: readonly string[]) => ({
    pool: 'pool',
    device: name,
    requestNames,
    cdiIds,
  });
  const pod = (claimName: string, container: Container): Pod => ({
    metadata: { name: 'p', namespace: 'n', uid: '1' },
    spec: { containers: [container], resourceClaims: [{ name: claimName, resourceClaimName: claimName }] },
  });

  it('the health of each resource once, and of an alternative what was prepared for its request', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kts-claims-'));
    const checkpoint = join(dir, 'dra_manager_state');
    const devices = [
      device('a', ['r'], ['x/y=one']),
      device('b', ['r'], ['x/y=one', 'x/y=two']),
      device('e', ['s'], []),
    ];
    const entry = { uid: 'uid-c', name: 'c', namespace: 'n', pods: new Set(['1']), prepared: true };
    await writeFile(checkpoint, formatClaims([{ ...entry, drivers: new Map([[DRIVER, devices]]) }]));
    const manager = new DraManager(
      {
        clock: new ManualClock(),
        log: silentLogger,
        health: { of: () => ({ health: 'Healthy', message: 'fine' }) },
      } as unknown as DraManagerDeps,
      { checkpoint, extendedResources: true, podGroups: true, healthMessages: true },
    );
    await manager.load();
    await rm(dir, { recursive: true });
    const claims = [
      { name: 'c', request: 'r/large' },
      { name: 'c', request: 's' },
    ];
    const main: Container = { name: 'm', resources: { claims } };
    const healthy = { health: 'Healthy', message: 'fine' };
    assert.deepEqual(manager.healthOf(pod('c', main), main), [
      { name: 'claim:c/r/large', resources: [{ resourceID: 'x/y=one', ...healthy }] },
      { name: 'claim:c/s', resources: [{ resourceID: `${DRIVER}/pool/e`, ...healthy }] },
    ]);
    const unknown: Container = { name: 'm', resources: { claims: [{ name: 'd' }] } };
    assert.throws(() => manager.cdiDevicesOf(pod('d', unknown), unknown), {
      message: 'internal error: unable to get claim info for ResourceClaim d in namespace n',
    });
  });
});
