// Our CSI driver as a process, called over its sockets: the life of file system, block and ephemeral volumes, calls that
// come twice, a driver that is killed in between, failures on demand. Needs root and loop devices.
import { strict as assert } from 'node:assert';
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { VolumeDevices } from '../../src/devcluster/csi-hostpath/devices.ts';
import type { RecordedCall } from '../../src/devcluster/csi-hostpath/call-log.ts';
import { readMountTable } from '../../src/host/mounts/mount-table.ts';
import { systemClock } from '../../src/lib/clock.ts';
import {
  Controller,
  Identity,
  Node,
  AccessModeType,
  type Volume,
  type VolumeCapability,
} from '../../src/lib/csi-api/gen/csi.ts';
import { Registration } from '../../src/lib/csi-api/gen/pluginregistration.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import type { Rpc } from '../../src/lib/grpc/rpc.ts';
import { GrpcError, type GrpcCodeName } from '../../src/lib/grpc/status.ts';
import { until, untilSeen } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'src', 'devcluster', 'csi-hostpath', 'main.ts');
const root = temporaryFolder('csi-driver-');
const at = (...parts: string[]): string => join(root, ...parts);
const never = new AbortController().signal;
const devices = new VolumeDevices(systemClock, never);
let driver: ChildProcess;
let channel: GrpcChannel;

const ACCESS = { accessMode: { mode: AccessModeType.SINGLE_NODE_MULTI_WRITER } };
const mounted = (fsType = '', mountFlags: string[] = []): VolumeCapability => ({
  mount: { fsType, mountFlags, volumeMountGroup: '' },
  ...ACCESS,
});
const BLOCK: VolumeCapability = { block: {}, ...ACCESS };

function call<Req extends object, Res>(rpc: Rpc<Req, Res>, request: Partial<Req>): Promise<Res> {
  return channel.unary(rpc, request as Req, { signal: never, deadlineMs: 30_000 });
}

async function refused(promise: Promise<unknown>, code: GrpcCodeName): Promise<void> {
  await assert.rejects(promise, (err: unknown) => err instanceof GrpcError && err.codeName === code);
}

let backing: 'image' | 'directory' = 'image';

async function startDriver(): Promise<void> {
  const args = [
    '--node-id=n1',
    `--directory=${at('data')}`,
    `--endpoint=${at('csi.sock')}`,
    `--registry=${at('registry')}`,
    `--faults=${at('faults.json')}`,
    `--record=${at('calls.jsonl')}`,
    `--backing=${backing}`,
  ];
  driver = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  channel = new GrpcChannel(systemClock, { target: { socketPath: at('csi.sock') } });
  await until('the driver answers', () => call(Identity.probe, {}).then((r) => r.ready?.value === true));
}

async function stopDriver(signal: NodeJS.Signals): Promise<void> {
  const ended = new Promise((resolve) => driver.once('exit', resolve));
  channel.close();
  driver.kill(signal);
  await ended;
}

async function make(name: string, bytes: number, capability: VolumeCapability): Promise<Volume> {
  const { volume } = await call(Controller.createVolume, {
    name,
    capacityRange: { requiredBytes: bytes, limitBytes: 0 },
    volumeCapabilities: [capability],
  });
  assert.ok(volume);
  await call(Controller.controllerPublishVolume, {
    volumeId: volume.volumeId,
    nodeId: 'n1',
    volumeCapability: capability,
  });
  return volume;
}

const mountsBelow = async (): Promise<string[]> => (await readMountTable()).beneath(root).map((m) => m.target);
const recorded = (): RecordedCall[] =>
  readFileSync(at('calls.jsonl'), 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as RecordedCall);

/** Whether the kernel lets this process grow a mounted ext4: CAP_SYS_RESOURCE. */
const mayGrowMounted = (): boolean => {
  const effective = /^CapEff:\t([0-9a-f]+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '0';
  return ((BigInt(`0x${effective}`) >> 24n) & 1n) === 1n;
};

async function lifeOfVolume(kind: 'image' | 'directory'): Promise<void> {
  const { volumeId } = await make(kind, 8 << 20, mounted());
  assert.equal((await make(kind, 8 << 20, mounted())).volumeId, volumeId, 'the same name is the same volume');
  const stage = { volumeId, stagingTargetPath: at('staging'), volumeCapability: mounted('ext4', ['noatime']) };
  const publish = { ...stage, targetPath: at('pod', 'mount') };
  const stats = (): Promise<{ total: number; used: number } | undefined> =>
    call(Node.nodeGetVolumeStats, { volumeId, volumePath: publish.targetPath }).then((s) => s.usage[0]);
  await refused(call(Node.nodePublishVolume, publish), 'FailedPrecondition');
  for (let twice = 0; twice < 2; twice++) await call(Node.nodeStageVolume, stage);
  for (let twice = 0; twice < 2; twice++) await call(Node.nodePublishVolume, publish);
  assert.match((await readMountTable()).at(at('pod', 'mount'))?.options ?? '', /noatime/);
  writeFileSync(at('pod', 'mount', 'file'), 'kept'.repeat(100_000));
  const before = (await stats())?.total ?? 0;
  assert.ok(before > 4 << 20 && before <= 8 << 20, `${before} bytes`);
  assert.ok(((await stats())?.used ?? 0) >= 400_000);

  await stopDriver('SIGKILL');
  await startDriver();
  await call(Node.nodeStageVolume, stage);
  await call(Node.nodePublishVolume, publish);
  assert.equal((await mountsBelow()).length, 2, 'nothing is mounted twice');
  await growUnderPod(kind, volumeId, publish.targetPath);
  if (kind === 'directory' || mayGrowMounted()) assert.ok(((await stats())?.total ?? 0) > before + (6 << 20));

  await refused(call(Controller.deleteVolume, { volumeId }), 'FailedPrecondition');
  for (let twice = 0; twice < 2; twice++) await call(Node.nodeUnpublishVolume, publish);
  assert.equal(existsSync(publish.targetPath), false);
  for (let twice = 0; twice < 2; twice++) await call(Node.nodeUnstageVolume, stage);
  await call(Node.nodeStageVolume, stage);
  await call(Node.nodePublishVolume, { ...publish, readonly: true });
  assert.match(readFileSync(at('pod', 'mount', 'file'), 'utf8'), /^kept/);
  assert.throws(() => writeFileSync(at('pod', 'mount', 'file'), 'x'), /EROFS/);
  await call(Node.nodeUnpublishVolume, publish);
  await call(Node.nodeUnstageVolume, stage);
  for (let twice = 0; twice < 2; twice++) await call(Controller.controllerUnpublishVolume, { volumeId, nodeId: 'n1' });
  await refused(call(Node.nodeStageVolume, stage), 'FailedPrecondition');
  for (let twice = 0; twice < 2; twice++) await call(Controller.deleteVolume, { volumeId });
  assert.equal(existsSync(at('data', volumeId)), false);
  await refused(call(Node.nodeStageVolume, stage), 'NotFound');
}

async function growUnderPod(kind: 'image' | 'directory', volumeId: string, volumePath: string): Promise<void> {
  const grow = { volumeId, volumePath, capacityRange: { requiredBytes: 16 << 20, limitBytes: 0 } };
  await refused(call(Node.nodeExpandVolume, grow), 'OutOfRange');
  const expanded = await call(Controller.controllerExpandVolume, grow);
  assert.deepEqual(expanded, { capacityBytes: 16 << 20, nodeExpansionRequired: true });
  for (let twice = 0; twice < 2; twice++)
    if (kind === 'directory' || mayGrowMounted()) await call(Node.nodeExpandVolume, grow);
    else await refused(call(Node.nodeExpandVolume, grow), 'FailedPrecondition');
}

describe('the CSI driver of the development cluster', () => {
  before(startDriver);
  after(async () => {
    await stopDriver('SIGTERM');
    const left = await mountsBelow();
    for (const target of left) await devices.unmount(target);
    assert.deepEqual(left, []);
  });

  it('offers itself for registration', async () => {
    const registration = new GrpcChannel(systemClock, {
      target: { socketPath: at('registry', 'hostpath.csi.kubelet-dev-reg.sock') },
    });
    // The driver serves first and offers itself then.
    let info: object = {};
    await until('the driver offers itself', async () => {
      info = await registration.unary(Registration.getInfo, {}, { signal: never });
      return true;
    });
    registration.close();
    assert.deepEqual(info, {
      type: 'CSIPlugin',
      name: 'hostpath.csi.kubelet-dev',
      endpoint: at('csi.sock'),
      supportedVersions: ['1.0.0'],
    });
    const node = await call(Node.nodeGetInfo, {});
    assert.deepEqual([node.nodeId, node.maxVolumesPerNode, node.accessibleTopology], ['n1', 100, undefined]);
  });

  for (const kind of ['image', 'directory'] as const)
    it(`keeps the data of a volume (${kind}) through unpublish, unstage, a kill and growth`, async () => {
      await stopDriver('SIGTERM');
      backing = kind;
      await startDriver();
      await lifeOfVolume(kind);
    });

  it('gives a block volume as a device and takes it back', async () => {
    const { volumeId } = await make('raw', 4 << 20, BLOCK);
    const image = at('data', volumeId, 'image');
    const stage = { volumeId, stagingTargetPath: at('block-staging'), volumeCapability: BLOCK };
    const publish = { ...stage, targetPath: at('publish', 'uid') };
    await refused(call(Node.nodeStageVolume, { ...stage, volumeCapability: mounted() }), 'InvalidArgument');
    await call(Node.nodeStageVolume, stage);
    for (let twice = 0; twice < 2; twice++) await call(Node.nodePublishVolume, publish);
    assert.equal(statSync(publish.targetPath).isBlockDevice(), true);
    const [device] = await devices.loopsOf(image);
    const sectors = (): number =>
      Number(readFileSync(`/sys/block/${(device ?? '').replace('/dev/', '')}/size`, 'utf8'));
    assert.equal(sectors(), (4 << 20) / 512);
    const grow = { volumeId, volumePath: publish.targetPath, capacityRange: { requiredBytes: 8 << 20, limitBytes: 0 } };
    await call(Controller.controllerExpandVolume, grow);
    await call(Node.nodeExpandVolume, grow);
    assert.equal(sectors(), (8 << 20) / 512);
    const { usage } = await call(Node.nodeGetVolumeStats, { volumeId, volumePath: publish.targetPath });
    assert.equal(usage[0]?.total, 8 << 20);
    await call(Node.nodeUnpublishVolume, publish);
    await call(Node.nodeUnstageVolume, stage);
    await untilSeen(
      'the loop device is gone',
      () => devices.loopsOf(image),
      (seen) => seen.length === 0,
    );
    await call(Controller.deleteVolume, { volumeId });
  });

  it('makes an ephemeral volume with the publish call and removes it with the unpublish call', async () => {
    const publish = {
      volumeId: 'csi-ephemeral',
      targetPath: at('inline'),
      volumeCapability: mounted(),
      volumeContext: { 'csi.storage.k8s.io/ephemeral': 'true', size: '4Mi' },
    };
    for (let twice = 0; twice < 2; twice++) await call(Node.nodePublishVolume, publish);
    writeFileSync(at('inline', 'file'), 'x');
    assert.equal((await call(Controller.listVolumes, {})).entries.length, 0, 'no provisioner sees it');
    for (let twice = 0; twice < 2; twice++) await call(Node.nodeUnpublishVolume, publish);
    assert.deepEqual([existsSync(at('inline')), existsSync(at('data', 'csi-ephemeral'))], [false, false]);
  });

  it('fails on demand: with a code, after the work, by hanging, by dying', async () => {
    const demand = (fault: object): void => writeFileSync(at('faults.json'), JSON.stringify({ faults: [fault] }));
    demand({ call: 'CreateVolume', do: 'error', code: 'Aborted', after: true, times: 1 });
    const wanted = { name: 'late', volumeCapabilities: [mounted()], secrets: { key: 'value' } };
    await refused(call(Controller.createVolume, wanted), 'Aborted');
    assert.equal((await call(Controller.listVolumes, {})).entries.length, 1, 'the work was done');
    demand({ call: 'NodeGetInfo', do: 'hang', times: 1 });
    await refused(channel.unary(Node.nodeGetInfo, {}, { signal: never, deadlineMs: 300 }), 'DeadlineExceeded');
    demand({ call: 'NodeGetInfo', do: 'die', times: 1 });
    const died = new Promise((resolve) => driver.once('exit', (_code, by) => resolve(by)));
    await refused(call(Node.nodeGetInfo, {}), 'Unavailable');
    assert.equal(await died, 'SIGKILL');
    channel.close();
    await startDriver();
    const { volume } = await call(Controller.createVolume, wanted);
    await call(Controller.deleteVolume, { volumeId: volume?.volumeId ?? '' });
    const create = recorded().find((c) => c.error?.code === 'Aborted');
    assert.deepEqual((create?.request as { secrets?: unknown } | undefined)?.secrets, { key: '***' });
  });
});
