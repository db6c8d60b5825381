// FlexVolumes with a driver that is a shell script over real mounts: what it is called with, in which order, and what becomes of
// volumes when it hangs, talks nonsense, vanishes, or the agent starts again.
// runs: gate
// shows: volumes: FlexVolume
import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, test } from 'node:test';
import type { Pod, Volume } from '../../src/core/pod.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../src/core/storage.ts';
import { systemClock, type Clock, type Timer } from '../../src/lib/clock.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { ManualClock } from '../../src/lib/manual-clock.ts';
import { Registry } from '../../src/lib/metrics.ts';
import { Attachments } from '../../src/volumes/attachments.ts';
import { Expander } from '../../src/volumes/claims/expander.ts';
import type { Volumes } from '../../src/volumes/create.ts';
import { VolumeMetrics, type EndedOperation } from '../../src/volumes/metrics.ts';
import { until, untilSeen } from '../harness/until.ts';
import { Bench, mountsBeneath, podNamed } from './volumes-setup.ts';

const DRIVER = 'example.com/disk';
/** Answers of a driver by its first word; what it leaves to us comes last. */
const PLAIN = `
init) ok ',"capabilities":{"attach":false}';;
mount) mount -t tmpfs tmpfs "$2" && ok;;
unmount) umount "$2" && ok;;`;
/** Like a disk that a controller attached: one mount for all pods. */
const ATTACHING = `
init) ok;;
waitforattach) ok ",\\"device\\":\\"$2-found\\"";;
mountdevice) mount -t tmpfs tmpfs "$2" && ok;;
unmountdevice) umount "$2" && ok;;`;

let bench: Bench;
let open: { volumes: Volumes; stop: () => Promise<void> } | undefined;
const claims = new Map<string, PersistentVolumeClaim>();
const persistent = new Map<string, PersistentVolume>();
const attached = new Set<string>();
let ended: string[];
class Operations extends VolumeMetrics {
  // An agent that was stopped is stopped again.
  override show(): void {}
  override observe({ plugin, operation, succeeded }: EndedOperation): void {
    ended.push(`${operation} ${plugin} ${succeeded ? 'ok' : 'failed'}`);
  }
}
beforeEach(() => {
  bench = new Bench();
  ended = [];
  for (const map of [claims, persistent, attached]) map.clear();
});
afterEach(async () => {
  await open?.stop();
  open = undefined;
  assert.deepEqual(bench.dispose(), [], 'nothing is left mounted');
});

const driversDir = (): string => join(bench.root, 'exec');
const program = (): string => join(driversDir(), 'example.com~disk/disk');
const log = (): string => join(bench.root, 'calls');
function install(cases: string): void {
  mkdirSync(join(program(), '..'), { recursive: true });
  const ok = `ok() { echo "{\\"status\\":\\"Success\\"$1}"; exit 0; }`;
  const rest = `*) echo '{"status":"Not supported"}'; exit 1;;`;
  writeFileSync(
    `${program()}.new`,
    `#!/bin/sh\n${ok}\necho "$@" >>${log()}\ncase $1 in ${cases}\n${rest}\nesac\necho '{"status":"Failure","message":"it did not work"}'; exit 1\n`,
  );
  chmodSync(`${program()}.new`, 0o755);
  rmSync(program(), { force: true });
  // A program that is being written cannot be run.
  writeFileSync(program(), readFileSync(`${program()}.new`));
  chmodSync(program(), 0o755);
}
/** What the driver was asked since the last time, without the options. */
function calls(): string[] {
  if (!existsSync(log())) return [];
  const lines = readFileSync(log(), 'utf8').trimEnd().split('\n');
  rmSync(log());
  return lines.map((line) => line.replace(/ ?\{.*\}/, '').replaceAll(bench.root, ''));
}

/** For as long the watch of drivers waits after it has seen a change. */
const SETTLE_MS = 100;

/** Counts these waits. */
class CountingClock extends ManualClock {
  settles = 0;

  override after(ms: number, fn: () => void): Timer {
    if (ms === SETTLE_MS) this.settles++;
    return super.after(ms, fn);
  }
}

/** The agent begins; the one before ends. */
async function start(
  timeouts: { callTimeoutMs?: number; initTimeoutMs?: number } = {},
  clock: Clock = systemClock,
): Promise<Volumes> {
  await open?.stop();
  const attachments = new Attachments();
  let version = 0;
  const report = (): void =>
    attachments.reportAnswered({
      metadata: { name: 'n1', resourceVersion: String(++version) },
      status: {
        volumesInUse: volumes.manager.reportVolumesInUse().names,
        volumesAttached: [...attached].map((name) => ({ name, devicePath: '/dev/attached' })),
      },
    });
  const found = <T>(map: Map<string, T>, name: string): Promise<T> => {
    const object = map.get(name);
    return object === undefined ? Promise.reject(new KubeletError('notFound', 'not found')) : Promise.resolve(object);
  };
  const volumes = bench.open(
    {
      clock,
      metrics: new Operations(new Registry()),
      storage: {
        nodeName: 'n1',
        attachments,
        node: () => ({ metadata: { name: 'n1' } }),
        onVolumesInUse: () => queueMicrotask(report),
        claims: { claim: (_ns, name) => found(claims, name), volume: (name) => found(persistent, name) },
        expander: new Expander({
          patchClaim: (claim) => Promise.resolve(claim),
          events: { ...bench.deps().events, claim: () => undefined },
          clock: systemClock,
          log: silentLogger,
        }),
        csi: { drivers: { client: () => assert.fail(), refreshLimits: () => assert.fail() }, objects: noCsi },
      },
    },
    { flex: { dir: driversDir(), ...timeouts }, claimsEveryMs: 0, waitTimeoutMs: 20_000 },
  );
  await volumes.manager.reconstruct(bench.signal);
  const own = new AbortController();
  const ran = Promise.all(volumes.parts.map((part) => part.run(own.signal)));
  open = { volumes, stop: async () => (own.abort(), void (await ran)) };
  return volumes;
}
const noCsi = {
  driversRead: () => Promise.resolve(),
  driver: () => undefined,
  attachment: () => assert.fail(),
  secret: () => assert.fail(),
  token: () => assert.fail(),
};

const podWith = (name: string, volume: Volume, extra: Partial<Pod['spec']> = {}): Pod =>
  podNamed(name, {
    volumes: [volume],
    containers: [{ name: 'c', volumeMounts: [{ name: volume.name, mountPath: '/v' }] }],
    ...extra,
  });
const flex = (more: Record<string, unknown> = {}): Volume => ({
  name: 'data',
  flexVolume: { driver: DRIVER, ...more },
});
const dirOf = (pod: string): string => join(bench.root, `pods/uid-${pod}/volumes/example.com~disk/data`);
const GLOBAL = '/plugins/kubernetes.io/flexvolume/example.com/disk/mounts/data';
async function remove({ manager }: Volumes, name: string): Promise<void> {
  manager.podRemoved(`uid-${name}`);
  await manager.waitUnmounted(`uid-${name}`, bench.signal);
}

test('a driver without attach: told of pod, group and secret, mounted once per pod, unmounted and removed', async () => {
  install(PLAIN);
  bench.secrets.set('golden/s', { metadata: { name: 's' }, type: DRIVER, data: { key: 'dmFsdWU=' } });
  const volumes = await start();
  const pod = podWith('a', flex({ fsType: 'xfs', options: { share: 'x' }, secretRef: { name: 's' } }), {
    securityContext: { fsGroup: 4711 },
    serviceAccountName: 'sa',
  });
  await volumes.manager.waitMounted(pod, bench.signal);
  const said = readFileSync(log(), 'utf8').split('\n')[1] ?? '';
  assert.deepEqual(JSON.parse(said.slice(said.indexOf('{'))), {
    'kubernetes.io/fsType': 'xfs',
    'kubernetes.io/mounterArgs.FsGroup': '4711',
    'kubernetes.io/pod.name': 'a',
    'kubernetes.io/pod.namespace': 'golden',
    'kubernetes.io/pod.uid': 'uid-a',
    'kubernetes.io/pvOrVolumeName': 'data',
    'kubernetes.io/readwrite': 'rw',
    'kubernetes.io/secret/key': 'dmFsdWU=',
    'kubernetes.io/serviceAccount.name': 'sa',
    share: 'x',
  });
  assert.deepEqual(calls(), ['init', `mount ${dirOf('a').slice(bench.root.length)}`]);
  assert.deepEqual(volumes.manager.mountsOf('uid-a').get('data'), {
    hostPath: dirOf('a'),
    readOnly: false,
    selinuxRelabel: true,
  });
  assert.equal(statSync(dirOf('a')).gid, 4711, 'the volume is the group’s');
  assert.deepEqual(volumes.manager.volumesInUse(), []);
  await remove(volumes, 'a');
  assert.deepEqual(calls(), [`unmount ${dirOf('a').slice(bench.root.length)}`]);
  assert.equal(existsSync(dirOf('a')), false);
});

test('a secret of another type is refused, nothing is left', async () => {
  install(PLAIN);
  bench.secrets.set('golden/s', { metadata: { name: 's' }, type: 'Opaque', data: {} });
  const { manager } = await start();
  manager.setDesired(podWith('a', flex({ secretRef: { name: 's' } })));
  const { message } = await until('it is told', () => bench.events[0]);
  assert.equal(
    message,
    `MountVolume.SetUp failed for volume "data" : couldn't get secret golden/s err: cannot get secret of type ${DRIVER}`,
  );
  assert.equal(existsSync(dirOf('a')), false);
  manager.podRemoved('uid-a');
  await manager.waitUnmounted('uid-a', bench.signal);
  assert.deepEqual(calls(), ['init']);
});

test('a driver that prints what it was told gives no secret away', async () => {
  install(`init) ok ',"capabilities":{"attach":false}';;\nmount) echo "+ $@"; exit 1;;`);
  bench.secrets.set('golden/s', { metadata: { name: 's' }, type: DRIVER, data: { key: 'dmFsdWU=' } });
  const { manager } = await start();
  manager.setDesired(podWith('a', flex({ secretRef: { name: 's' } })));
  await until('it is told', () => bench.events[0]);
  const said = JSON.stringify([bench.events, manager.complaintsOf('uid-a')]);
  assert.match(said, /the answer is not JSON/);
  assert.doesNotMatch(said, /dmFsdWU/);
  manager.podRemoved('uid-a');
  await manager.waitUnmounted('uid-a', bench.signal);
});

test('a driver that attaches: waits for the controller, one device mount for two pods, in upstream’s places', async () => {
  install(ATTACHING);
  const volumes = await start();
  const { manager } = volumes;
  manager.setDesired(podWith('a', flex()));
  await untilSeen(
    'it is in use',
    () => manager.volumesInUse(),
    (seen) => seen.includes(`${DRIVER}/data`),
  );
  assert.match(manager.blockedOn('uid-a') ?? '', /waiting for a controller to attach it/);
  assert.deepEqual(calls(), ['init'], 'nothing is mounted before it is attached');
  attached.add(`${DRIVER}/data`);
  await Promise.all(
    ['b', 'c'].map((name) => manager.waitMounted(podWith(name, flex({ readOnly: name === 'c' })), bench.signal)),
  );
  await manager.waitMounted(podWith('a', flex()), bench.signal);
  const asked = calls();
  assert.equal(asked.filter((call) => call.startsWith('waitforattach /dev/attached')).length, 3);
  const once = asked
    .filter((call) => !call.startsWith('waitforattach'))
    .map((call) => call.replace(/uid-[abc]/, 'uid'));
  assert.deepEqual(
    once,
    ['getvolumename', `mountdevice ${GLOBAL} /dev/attached-found`, 'mount /pods/uid/volumes/example.com~disk/data'],
    'what it leaves to us it is asked once',
  );
  const [own, readOnly] = ['uid-a', 'uid-c'].map((uid) => manager.mountsOf(uid).get('data'));
  assert.deepEqual([own?.readOnly, own?.selinuxRelabel], [false, true]);
  assert.deepEqual([readOnly?.readOnly, readOnly?.selinuxRelabel], [true, false], 'nothing in it can be labelled');
  writeFileSync(join(dirOf('a'), 'file'), 'x');
  assert.equal(readFileSync(join(dirOf('b'), 'file'), 'utf8'), 'x');
  await remove(volumes, 'a');
  await remove(volumes, 'b');
  assert.deepEqual(calls(), [`unmount ${dirOf('a').slice(bench.root.length)}`], 'one pod still has it');
  assert.ok(mountsBeneath(bench.root).includes(join(bench.root, GLOBAL)));
  await remove(volumes, 'c');
  assert.deepEqual(calls(), [`unmountdevice ${GLOBAL}`]);
  assert.equal(existsSync(join(bench.root, GLOBAL)), false);
  assert.deepEqual(manager.volumesInUse(), []);
  assert.equal(ended.at(-1), `unmount_device ${DRIVER} ok`);
  assert.equal(ended.filter((operation) => operation.startsWith('volume_unmount')).length, 3);
});

test('a persistent volume is mounted, and grows', async () => {
  install(`${ATTACHING}\nexpandfs) ok;;`);
  attached.add(`${DRIVER}/data`);
  const claim = (capacity: string): PersistentVolumeClaim => ({
    metadata: { name: 'c', uid: 'claim' },
    spec: { volumeName: 'data' },
    status: { phase: 'Bound', capacity: { storage: capacity } },
  });
  claims.set('c', claim('1Ki'));
  const pv = (storage: string): PersistentVolume => ({
    metadata: { name: 'data' },
    spec: {
      capacity: { storage },
      volumeMode: 'Filesystem',
      claimRef: { uid: 'claim' },
      flexVolume: { driver: DRIVER, fsType: 'ext4' },
    },
  });
  persistent.set('data', pv('1Ki'));
  const volumes = await start();
  const pod = podWith('a', { name: 'mine', persistentVolumeClaim: { claimName: 'c' } });
  await volumes.manager.waitMounted(pod, bench.signal);
  assert.equal(volumes.manager.mountsOf('uid-a').get('mine')?.hostPath, dirOf('a'));
  assert.equal(
    calls().some((call) => call.startsWith('expandfs')),
    false,
  );
  persistent.set('data', pv('2Ki'));
  await volumes.manager.waitMounted(pod, bench.signal);
  const grown = await until('it grows', () => calls().find((call) => call.startsWith('expandfs')));
  assert.equal(grown, `expandfs /dev/attached-found ${dirOf('a').slice(bench.root.length)} 2048 1024`);
  await untilSeen(
    'it is told',
    () => bench.events,
    (seen) => seen.some(({ reason }) => reason === 'FileSystemResizeSuccessful'),
  );
  await remove(volumes, 'a');
});

test('a pod waits for a driver that is not there and starts when it comes', async () => {
  // It stands still: the driver is tried again because the watch has seen it, not because the time for that has come.
  const clock = new CountingClock();
  const volumes = await start({}, clock);
  const pod = podWith('a', flex());
  const mounted = volumes.manager.waitMounted(pod, bench.signal);
  const { message } = await until('it is told', () => bench.events[0]);
  assert.equal(
    message,
    'Unable to attach or mount volumes: unmounted volumes=[data], unattached volumes=[], failed to process volumes=[data]: ' +
      `failed to get Plugin from volumeSpec for volume "data" err=no volume plugin matched: there is no driver "${DRIVER}" in ${driversDir()}`,
  );
  const before = clock.settles;
  install(PLAIN);
  await untilSeen(
    'the watch has seen it',
    () => clock.settles,
    (count) => count > before,
  );
  await clock.advance(SETTLE_MS);
  await mounted;
  await remove(volumes, 'a');
});

test('a driver that hangs holds up its own pods only, is ended, and tried again', async () => {
  install(`init) ok ',"capabilities":{"attach":false}';;\nmount) sleep 600;;`);
  const volumes = await start({ callTimeoutMs: 500 });
  volumes.manager.setDesired(podWith('a', flex()));
  await volumes.manager.waitMounted(podWith('fine', { name: 'e', emptyDir: { medium: 'Memory' } }), bench.signal);
  const { message } = await until('it is told', () => bench.events[0]);
  assert.equal(
    message,
    `MountVolume.SetUp failed for volume "data" : mount command failed: ${program()} did not end within 500ms`,
  );
  assert.equal(existsSync(dirOf('a')), false, 'nothing is left of the attempt');
  install(PLAIN);
  await volumes.manager.waitMounted(podWith('a', flex()), bench.signal);
  for (const name of ['a', 'fine']) await remove(volumes, name);
});

test('nonsense is told as it is, and no reason to forget a volume', async () => {
  install(PLAIN);
  const volumes = await start();
  await volumes.manager.waitMounted(podWith('a', flex()), bench.signal);
  install(`init) ok ',"capabilities":{"attach":false}';;\n*) echo Segmentation fault; exit 139;;`);
  volumes.manager.podRemoved('uid-a');
  const why = 'unmount command failed: the answer is not JSON: "Segmentation fault"';
  await until('it is known', () =>
    volumes.manager.blockedOn('uid-a')?.includes(`UnmountVolume.TearDown failed for volume "data" : ${why}`),
  );
  install(PLAIN);
  await volumes.manager.waitUnmounted('uid-a', bench.signal);
});

test('a driver that vanishes keeps the volume mounted until it is back', async () => {
  install(PLAIN);
  const volumes = await start();
  await volumes.manager.waitMounted(podWith('a', flex()), bench.signal);
  rmSync(join(program(), '..'), { recursive: true });
  volumes.manager.podRemoved('uid-a');
  await until('it is known', () => volumes.manager.blockedOn('uid-a')?.includes('there is no driver'));
  assert.ok(mountsBeneath(bench.root).includes(dirOf('a')));
  install(PLAIN);
  await volumes.manager.waitUnmounted('uid-a', bench.signal);
  assert.equal(existsSync(dirOf('a')), false);
});

test('a directory on which nothing is mounted goes without its driver', async () => {
  install(`init) ok ',"capabilities":{"attach":false}';;\nmount) ok;;`);
  const volumes = await start();
  await volumes.manager.waitMounted(podWith('a', flex()), bench.signal);
  rmSync(join(program(), '..'), { recursive: true });
  const { manager } = await start();
  manager.removeUnknown(() => false);
  await until('it goes', () => !existsSync(dirOf('a')));
});

test('a restart: volumes of a driver with one of Kubernetes’ names, and what only looks like them', async () => {
  install(PLAIN);
  const own = join(driversDir(), 'kubernetes.io~lvm');
  mkdirSync(own);
  copyFileSync(program(), join(own, 'lvm'));
  const { manager: before } = await start();
  const pod = podWith('a', { name: 'data', flexVolume: { driver: 'kubernetes.io/lvm' } });
  await before.waitMounted(pod, bench.signal);
  const volumes = join(bench.root, 'pods/uid-a/volumes');
  mkdirSync(join(volumes, 'kubernetes.io~git-repo/data'), { recursive: true });
  const { manager } = await start();
  manager.removeUnknown(() => false);
  await until('it goes', () => !existsSync(join(volumes, 'kubernetes.io~lvm/data')));
  assert.ok(existsSync(join(volumes, 'kubernetes.io~git-repo/data')), 'there is no driver of that name');
});

test('a restart: what is mounted stays, what nobody wants goes, without a pod or its volume’s spec', async () => {
  install(ATTACHING);
  attached.add(`${DRIVER}/data`);
  const before = await start();
  for (const name of ['kept', 'gone']) await before.manager.waitMounted(podWith(name, flex()), bench.signal);
  writeFileSync(join(dirOf('kept'), 'file'), 'x');
  calls();
  const { manager } = await start();
  assert.deepEqual(manager.volumesInUse(), [`${DRIVER}/data`], 'in use before anything is known of pods');
  manager.removeUnknown((uid) => uid === 'uid-kept');
  await until('it goes', () => !existsSync(dirOf('gone')));
  await manager.waitMounted(podWith('kept', flex()), bench.signal);
  assert.equal(readFileSync(join(dirOf('kept'), 'file'), 'utf8'), 'x');
  assert.deepEqual(
    calls().filter((call) => /^(mount|unmountd)/.test(call)),
    [],
    'nothing is mounted twice, the device stays for the other pod',
  );
  await remove({ ...before, manager }, 'kept');
  assert.deepEqual(mountsBeneath(bench.root), []);
});
