import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { FakeDraDriver, type FakeDraDriverOptions } from '../../test/fakes/fake-dra-driver.ts';
import { until } from '../../test/harness/until.ts';
import { uidOf, type Container, type Pod } from '../core/pod.ts';
import type { ResourceClaim } from '../kube/resources.ts';
import { systemClock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { Registry } from '../lib/metrics.ts';
import { formatClaims, parseClaims } from './checkpoint.ts';
import { DraManager } from './dra-manager.ts';
import { Drivers } from './drivers.ts';
import { containerRequests, driversOf, podClaims } from './pod-claims.ts';

const { signal } = new AbortController();
const DRIVER = 'gpu.example.com';

const container = (name: string, claims: readonly { name: string; request?: string }[]): Container => ({
  name,
  resources: { claims },
});
const pod = (uid: string, claims: readonly string[], main: readonly Container[] = []): Pod => ({
  metadata: { name: `pod-${uid}`, namespace: 'n', uid },
  spec: { containers: main, resourceClaims: claims.map((c) => ({ name: c, resourceClaimName: c })) },
});
const claim = (name: string, users: readonly string[], more: Partial<ResourceClaim> = {}): ResourceClaim => ({
  metadata: { name, namespace: 'n', uid: `uid-${name}` },
  status: {
    allocation: { devices: { results: [{ driver: DRIVER }] } },
    reservedFor: users.map((uid) => ({ resource: 'pods', uid })),
  },
  ...more,
});

describe('claims of a pod', () => {
  const templated: Pod = {
    metadata: { name: 'p', namespace: 'n', uid: 'u' },
    spec: { containers: [], resourceClaims: [{ name: 'a', resourceClaimTemplateName: 't' }] },
  };

  it('by name, from a template, and of extended resources last', () => {
    const given: Pod = {
      ...templated,
      spec: {
        ...templated.spec,
        resourceClaims: [...(templated.spec.resourceClaims ?? []), { name: 'b', resourceClaimName: 'named' }],
      },
      status: {
        resourceClaimStatuses: [{ name: 'a', resourceClaimName: 'p-a-x' }],
        extendedResourceClaimStatus: { resourceClaimName: 'ext' },
      },
    };
    assert.deepEqual(podClaims(given, true), [
      { entry: 'a', claimName: 'p-a-x', mustOwn: true },
      { entry: 'b', claimName: 'named', mustOwn: false },
      { claimName: 'ext', mustOwn: false },
    ]);
    assert.equal(podClaims(given, false).length, 2);
  });

  it('waits for a claim that is still to be made, skips one that is not needed', () => {
    assert.throws(() => podClaims(templated, true), { message: 'pod "n/p": ResourceClaim not created yet' });
    assert.deepEqual(podClaims({ ...templated, status: { resourceClaimStatuses: [{ name: 'a' }] } }, true), []);
  });

  const own = { entry: 'c', claimName: 'c', mustOwn: false };
  for (const [what, podClaim, given, message] of [
    ['another pod’s', own, claim('c', ['other']), 'pod pod-1 (1) is not allowed to use ResourceClaim c (uid-c)'],
    [
      'not allocated',
      own,
      claim('c', ['1'], { status: { reservedFor: [{ resource: 'pods', uid: '1' }] } }),
      'ResourceClaim c: not allocated',
    ],
    [
      'not its own',
      { ...own, mustOwn: true },
      claim('c', ['1']),
      'ResourceClaim n/c was not created for Pod n/pod-1 (Pod is not owner)',
    ],
  ] as const)
    it(`refuses a claim that is ${what}`, () => {
      assert.throws(() => driversOf(pod('1', ['c']), podClaim, given, false), { message });
    });

  it('takes a claim of the pod’s group where groups count', () => {
    const bare = pod('1', ['c']);
    const member: Pod = { ...bare, spec: { ...bare.spec, schedulingGroup: { podGroupName: 'g' } } };
    const made = { ...own, mustOwn: true };
    const shared = (group: string): ResourceClaim => {
      const given = claim('c', []);
      const owner = { apiVersion: 'scheduling.k8s.io/v1alpha2', kind: 'PodGroup', name: group, uid: 'x' };
      const user = { apiGroup: 'scheduling.k8s.io', resource: 'podgroups', name: group, uid: 'x' };
      return {
        ...given,
        metadata: { ...given.metadata, ownerReferences: [{ ...owner, controller: true }] },
        status: { ...given.status, reservedFor: [user] },
      };
    };
    assert.deepEqual(driversOf(member, made, shared('g'), true), [DRIVER]);
    assert.throws(() => driversOf(member, made, shared('h'), true), {
      message: 'ResourceClaim n/c was not created for Pod n/pod-1 (neither Pod nor PodGroup g is the owner)',
    });
    assert.throws(() => driversOf(member, made, shared('g'), false), /\(Pod is not owner\)/);
    assert.throws(() => driversOf(member, own, shared('g'), false), /is not allowed to use/);
  });

  it('containers use requests of claims and of extended resources', () => {
    const given: Pod = {
      ...pod('1', ['c', 'd']),
      status: {
        extendedResourceClaimStatus: {
          resourceClaimName: 'ext',
          requestMappings: [
            { containerName: 'm', resourceName: 'v/r', requestName: 'r1' },
            { containerName: 'm', resourceName: 'v/none', requestName: 'r2' },
            { containerName: 'other', resourceName: 'v/r', requestName: 'r3' },
          ],
        },
      },
    };
    const main: Container = {
      name: 'm',
      resources: { claims: [{ name: 'd', request: 'x' }, { name: 'c' }], requests: { 'v/r': '1', 'v/none': '0' } },
    };
    assert.deepEqual(containerRequests(given, main, true), [
      { claimName: 'c', request: '', statusName: 'claim:c' },
      { claimName: 'd', request: 'x', statusName: 'claim:d/x' },
      { claimName: 'ext', request: 'r1' },
    ]);
  });
});

describe('checkpoint', () => {
  it('is what upstream writes for nothing', () => {
    const text = formatClaims([]);
    assert.equal((JSON.parse(text) as { Checksum: number }).Checksum, 4010664294);
    assert.deepEqual(parseClaims(text), []);
  });

  it('reads what it wrote, and nothing that was changed', () => {
    const entry = {
      uid: 'u',
      name: 'c',
      namespace: 'n',
      pods: new Set(['p1', 'p2']),
      drivers: new Map([
        ['d', [{ pool: 'p', device: 'x', shareId: 's', requestNames: ['r'], cdiIds: ['v/c=x'] }]],
        ['e', []],
      ]),
      prepared: false,
    };
    const text = formatClaims([entry]);
    assert.deepEqual(parseClaims(text), [entry]);
    assert.ok(
      text.includes(
        String.raw`\"DriverState\":{\"d\":{\"Devices\":[{\"PoolName\":\"p\",\"DeviceName\":\"x\",\"ShareID\":\"s\"`,
      ),
    );
    assert.ok(text.includes(String.raw`\"e\":{\"Devices\":null}`));
    assert.throws(() => parseClaims(text.replace('p1', 'p3')), { message: 'checkpoint is corrupted' });
  });
});

describe('DRA manager', () => {
  let dir: string;
  let drivers: Drivers;
  let manager: DraManager;
  let driver: FakeDraDriver;
  let claims: Record<string, ResourceClaim>;
  let alive: Pod[];
  let clock: ManualClock;
  const running = new Set<string>();
  let present: string[];
  const health = { of: () => ({ health: 'Healthy' as const, message: 'fine' }) };
  const made: FakeDraDriver[] = [];

  const start = async (): Promise<void> => {
    await (drivers as Drivers | undefined)?.close();
    const registry = new Registry();
    drivers = new Drivers({
      clock: systemClock,
      log: silentLogger,
      durations: registry.histogram('g', 'g', ['driver_name', 'method_name', 'grpc_status_code']),
      events: {
        onPresent: (name) => void present.push(`+${name}`),
        onAbsent: (name) => void present.push(`-${name}`),
        onHealth: () => undefined,
        onHealthLost: () => undefined,
      },
    });
    manager = new DraManager(
      {
        clock,
        log: silentLogger,
        drivers,
        claim: async (_, name) => {
          const found = claims[name];
          if (found === undefined)
            throw new KubeletError('notFound', `resourceclaims.resource.k8s.io "${name}" not found`);
          return found;
        },
        pods: { alive: () => alive, sourcesReady: () => true, isRunning: (uid) => running.has(uid) },
        health,
        durations: registry.histogram('d', 'd', ['operation_name', 'is_error']),
      },
      { checkpoint: join(dir, 'dra_manager_state'), extendedResources: true, podGroups: true, healthMessages: true },
    );
    await manager.load();
  };
  const register = async (
    options: Partial<FakeDraDriverOptions> = {},
    versions = ['v1.DRAPlugin'],
  ): Promise<FakeDraDriver> => {
    const fake = await new FakeDraDriver({ directory: dir, driver: DRIVER, ...options }).listen();
    made.push(fake);
    await drivers.handler.register({ name: DRIVER, endpoint: fake.endpoint, versions });
    await until('it is connected', () => drivers.get(DRIVER).connected);
    return fake;
  };

  /** Time goes on until so many claims are prepared. */
  const untilInUse = async (count: number): Promise<void> => {
    while (manager.inUse().get('<any>') !== count) {
      await clock.advance(60_000);
      await systemClock.sleep(5, signal);
    }
  };

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'dra-'));
    claims = { c: claim('c', ['1', '2']), d: claim('d', ['1', '2']) };
    alive = [];
    clock = new ManualClock();
    running.clear();
    present = [];
    await start();
    driver = await register();
  });
  afterEach(async () => {
    await drivers.close();
    await Promise.all(made.splice(0).map((fake) => fake.stop()));
    rmSync(dir, { recursive: true, force: true });
  });

  it('prepares all claims of a pod in one call, once, and hands out their CDI devices', async () => {
    const main = container('m', [{ name: 'c' }]);
    const wanted = pod('1', ['c', 'd'], [main]);
    assert.deepEqual(manager.claimsOf(wanted, main), [], 'not known yet');
    await manager.prepare(wanted, signal);
    await manager.prepare(wanted, signal);
    assert.deepEqual(driver.calls, ['v1 prepare c d']);
    assert.deepEqual(manager.cdiDevicesOf(wanted, main), [`${DRIVER}/dev=c`]);
    assert.deepEqual(manager.claimsOf(wanted, main), [
      {
        name: 'c',
        namespace: 'n',
        devices: [{ driver: DRIVER, pool: 'pool', device: 'c', requestNames: [], cdiIds: [`${DRIVER}/dev=c`] }],
      },
    ]);
    assert.deepEqual(manager.healthOf(wanted, main), [
      { name: 'claim:c', resources: [{ resourceID: `${DRIVER}/dev=c`, health: 'Healthy', message: 'fine' }] },
    ]);
    assert.deepEqual(
      manager.inUse(),
      new Map([
        ['<any>', 2],
        [DRIVER, 2],
      ]),
    );
  });

  it('unprepares a shared claim with its last pod', async () => {
    alive = [pod('1', ['c']), pod('2', ['c'])];
    await manager.prepare(pod('1', ['c']), signal);
    await manager.prepare(pod('2', ['c']), signal);
    await manager.unprepare(pod('1', ['c']), signal);
    assert.deepEqual(driver.calls, ['v1 prepare c']);
    await manager.unprepare(pod('2', ['c']), signal);
    await manager.unprepare(pod('2', ['c']), signal);
    assert.deepEqual(driver.calls, ['v1 prepare c', 'v1 unprepare c']);
    assert.deepEqual(manager.inUse(), new Map([['<any>', 0]]));
  });

  it('unprepares a shared claim when the other pod is gone and nothing of it runs', async () => {
    await manager.prepare(pod('1', ['c']), signal);
    await manager.prepare(pod('2', ['c']), signal);
    alive = [pod('2', ['c'])];
    await manager.unprepare(pod('2', ['c']), signal);
    assert.deepEqual(driver.calls, ['v1 prepare c', 'v1 unprepare c']);
    await manager.unprepare(pod('1', ['c']), signal);
    assert.equal(driver.calls.length, 2);
  });

  it('keeps a shared claim prepared while a pod that is gone still runs', async () => {
    await manager.prepare(pod('1', ['c']), signal);
    await manager.prepare(pod('2', ['c']), signal);
    running.add('1');
    await manager.unprepare(pod('2', ['c']), signal);
    assert.deepEqual(driver.calls, ['v1 prepare c']);
  });

  it('prepares a claim again whose driver failed to unprepare it, or said so', async () => {
    await manager.prepare(pod('1', ['c']), signal);
    driver.fault = 'refuse';
    await assert.rejects(manager.unprepare(pod('1', ['c']), signal), /no power/);
    driver.fault = undefined;
    alive = [pod('1', ['c']), pod('2', ['c'])];
    await manager.prepare(pod('2', ['c']), signal);
    await manager.unprepare(pod('1', ['c']), signal);
    assert.deepEqual(driver.calls, ['v1 prepare c', 'v1 unprepare c', 'v1 prepare c']);
  });

  for (const [fault, text] of [
    ['refuse', 'prepare dynamic resources: NodePrepareResources: rpc error: code = Unknown desc = no power'],
    ['claim', 'prepare dynamic resources: NodePrepareResources failed for ResourceClaim c: device is broken'],
    ['skip', 'prepare dynamic resources: NodePrepareResources skipped 1 ResourceClaims'],
    ['stranger', 'prepare dynamic resources: NodePrepareResources returned result for unknown claim UID stranger'],
  ] as const)
    it(`a driver that does ${fault}: told, tried again, unprepared`, async () => {
      driver.fault = fault;
      await assert.rejects(manager.prepare(pod('1', ['c']), signal), { message: text });
      driver.fault = undefined;
      await manager.prepare(pod('1', ['c']), signal);
      driver.fault = fault;
      await assert.rejects(manager.unprepare(pod('1', ['c']), signal), {
        message: text.replaceAll('NodePrepare', 'NodeUnprepare').replace('prepare dynamic', 'unprepare dynamic'),
      });
      driver.fault = undefined;
      await manager.unprepare(pod('1', ['c']), signal);
    });

  it('a driver that hangs holds up only those who need its claim', async () => {
    driver.fault = 'hang';
    const stop = new AbortController();
    const hanging = manager.prepare(pod('1', ['c']), stop.signal);
    await until('it was asked', () => driver.calls.length === 1);
    driver.fault = undefined;
    await manager.prepare(pod('2', ['d']), signal);
    const waiting = manager.prepare(pod('2', ['c']), signal);
    stop.abort(new Error('stopped'));
    await assert.rejects(hanging, /stopped/);
    await waiting;
  });

  it('a driver that registers and never answers is missed from the start', async () => {
    const endpoint = join(dir, 'nobody.sock');
    await drivers.handler.register({ name: 'silent', endpoint, versions: ['v1.DRAPlugin'] });
    assert.deepEqual(
      present.filter((event) => event.endsWith('silent')),
      ['-silent'],
    );
  });

  it('a driver that dies comes back by itself; nobody prepares without it', async () => {
    present = [];
    driver.fault = 'die';
    await assert.rejects(
      manager.prepare(pod('1', ['c']), signal),
      /NodePrepareResources: rpc error: code = Unavailable/,
    );
    driver.fault = undefined;
    await until('it is missed', () => present.includes(`-${DRIVER}`));
    await driver.listen();
    await until('it is back', () => drivers.get(DRIVER).connected);
    await manager.prepare(pod('1', ['c']), signal);
    drivers.handler.deregister({ name: DRIVER, endpoint: driver.endpoint, versions: [] });
    await assert.rejects(manager.prepare(pod('2', ['d']), signal), {
      message: `prepare dynamic resources: DRA driver ${DRIVER} is not registered`,
    });
    // Nothing was recorded for it: the pod can go.
    await manager.unprepare(pod('2', ['d']), signal);
  });

  it('what the API server does not have', async () => {
    await assert.rejects(manager.prepare(pod('1', ['gone']), signal), {
      message: 'prepare dynamic resources: fetch ResourceClaim gone: resourceclaims.resource.k8s.io "gone" not found',
    });
  });

  it('a claim of the same name made anew', async () => {
    await manager.prepare(pod('1', ['c']), signal);
    claims['c'] = { ...claim('c', ['2']), metadata: { name: 'c', namespace: 'n', uid: 'new' } };
    await assert.rejects(manager.prepare(pod('2', ['c']), signal), {
      message:
        'prepare dynamic resources: old ResourceClaim with same name c and different UID uid-c still exists (previous pod force-deleted?!)',
    });
  });

  it('the agent starts again: containers keep their devices, drivers are asked once more', async () => {
    const main = container('m', [{ name: 'c' }]);
    const wanted = pod('1', ['c'], [main]);
    await manager.prepare(wanted, signal);
    await drivers.close();
    await start();
    assert.deepEqual(manager.cdiDevicesOf(wanted, main), [`${DRIVER}/dev=c`]);
    await assert.rejects(manager.prepare(wanted, signal), /is not registered/);
    await drivers.handler.register({ name: DRIVER, endpoint: driver.endpoint, versions: ['v1beta1.DRAPlugin'] });
    await manager.prepare(wanted, signal);
    assert.deepEqual(driver.calls, ['v1 prepare c', 'v1beta1 prepare c']);
    assert.deepEqual(manager.cdiDevicesOf(wanted, main), [`${DRIVER}/dev=c`]);
  });

  it('a claim is unprepared once its pod is gone and nothing of it runs', async () => {
    await manager.prepare(pod('1', ['c']), signal);
    await manager.prepare(pod('2', ['d']), signal);
    running.add('1');
    const stop = new AbortController();
    const reconciling = manager.run(stop.signal);
    await untilInUse(1);
    running.clear();
    await untilInUse(0);
    assert.deepEqual(driver.calls.slice(2), ['v1 unprepare d', 'v1 unprepare c']);
    stop.abort();
    await reconciling;
  });

  it('a pod that comes while a claim of another is being unprepared keeps its own', async () => {
    const [gone, first, second] = [pod('1', ['c']), pod('2', ['d']), pod('3', ['d'])];
    claims['d'] = claim('d', ['2', '3']);
    await manager.prepare(gone, signal);
    await manager.prepare(first, signal);
    alive = [first];
    driver.fault = 'hang';
    const stop = new AbortController();
    const reconciling = manager.run(stop.signal);
    await clock.advance(60_000);
    await until('the driver is asked', () => driver.calls.at(-1) === 'v1 unprepare c');
    alive = [first, second];
    await manager.prepare(second, signal);
    driver.fault = undefined;
    await driver.listen();
    await until('it is back', () => drivers.get(DRIVER).connected);
    await untilInUse(1);
    assert.deepEqual([...manager.podsOf(DRIVER)], ['2', '3']);
    stop.abort();
    await reconciling;
  });

  const damages: readonly (readonly [text: (good: string) => string, problem: string])[] = [
    [(good) => good.replace('"Checksum":', '"Checksum":1'), 'checkpoint is corrupted'],
    [() => '', 'unexpected end of JSON input'],
    [() => 'null', 'the content is not a JSON object'],
    [() => '\0\x01', 'the content is not JSON'],
  ];
  for (const [damage, problem] of damages)
    it(`refuses to start with a damaged checkpoint, and says what to do: ${problem}`, async () => {
      const path = join(dir, 'dra_manager_state');
      writeFileSync(path, damage(readFileSync(path, 'utf8')));
      const refused = await start().catch((err: unknown) => err as Error);
      assert.equal(
        refused?.message,
        `create ResourceClaim cache: GetOrCreate() on checkpoint state: failed to get checkpoint dra_manager_state: ${problem}, please drain this node and delete the file "${path}" before restarting Kubelet`,
      );
      assert.equal(refused.cause, undefined, 'the log names a cause once more');
    });

  it('the newest connected instance of a driver is used', async () => {
    present = [];
    const fresh = await register({ socketName: 'fresh.sock' });
    await until('the new one is connected', () => drivers.get(DRIVER).instance.endpoint === fresh.endpoint);
    await manager.prepare(pod('1', ['c']), signal);
    assert.deepEqual([driver.calls, fresh.calls], [[], ['v1 prepare c']]);
    drivers.handler.deregister({ name: DRIVER, endpoint: fresh.endpoint, versions: [] });
    await manager.unprepare(pod('1', ['c']), signal);
    assert.deepEqual(driver.calls, ['v1 unprepare c']);
    assert.ok(!present.includes(`-${DRIVER}`));
  });

  for (const [versions, text] of [
    [[], 'empty list of supported gRPC services (aka supported versions)'],
    [
      ['x'],
      'none of services supported by the plugin (["x"]) are supported by the kubelet (["v1.DRAPlugin" "v1beta1.DRAPlugin"])',
    ],
  ] as const)
    it(`refuses versions ${JSON.stringify(versions)}`, () => {
      assert.throws(() => drivers.handler.validate({ name: 'd', endpoint: '/e', versions }), {
        message: `invalid supported gRPC versions of DRA driver plugin d at endpoint /e: ${text}`,
      });
    });

  it('refuses the same endpoint twice', () => {
    assert.throws(
      () => void drivers.handler.register({ name: DRIVER, endpoint: driver.endpoint, versions: ['v1.DRAPlugin'] }),
      { message: `endpoint ${driver.endpoint} already registered for DRA driver plugin ${DRIVER}` },
    );
  });

  it('knows whom to tell', async () => {
    await manager.prepare(pod('1', ['c']), signal);
    assert.deepEqual(manager.podsOf(DRIVER), [uidOf(pod('1', []))]);
    assert.deepEqual(manager.podsOf('other'), []);
  });
});
