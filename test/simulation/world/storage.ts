// The storage of the simulated cluster: volumes with claims, the controllers that attach them, and the driver's own side.
import { AttachDetach } from '../../../src/devcluster/controllers/volumes/attacher.ts';
import { CsiAttacher } from '../../../src/devcluster/controllers/volumes/attachments.ts';
import type { CsiController, CsiDrivers } from '../../../src/devcluster/controllers/volumes/csi-drivers.ts';
import { runControllers } from '../../../src/devcluster/controllers/controller.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { Resizer } from '../../../src/devcluster/controllers/volumes/resizer.ts';
import { BLOCK_CLAIMS, GROWING_CLAIMS } from '../workload/block-pods.ts';
import { CLAIMS } from '../workload/storage-pods.ts';
import { BLOCK_DRIVER, CsiDriver, DRIVER, type Report } from './csi-driver.ts';
import type { World } from './world.ts';

const CORE = '/api/v1';
const NEVER = new AbortController().signal;
const ATTACH_MS = 10_000;

export async function furnishStorage(world: World, also: readonly string[], report: Report): Promise<void> {
  const { api } = world;
  if (also.includes('csi')) {
    world.csi = await furnishDriver(world, DRIVER, report);
    for (const claim of CLAIMS) await furnishClaim(world, DRIVER, claim);
  }
  if (also.includes('block')) {
    world.block = await furnishDriver(world, BLOCK_DRIVER, report);
    const storageClass = {
      metadata: { name: classOf(BLOCK_DRIVER) },
      provisioner: BLOCK_DRIVER,
      allowVolumeExpansion: true,
    };
    await must(api.admin('POST', '/apis/storage.k8s.io/v1/storageclasses', storageClass));
    for (const claim of BLOCK_CLAIMS) await furnishClaim(world, BLOCK_DRIVER, claim, { volumeMode: 'Block' });
    for (const claim of GROWING_CLAIMS) await furnishClaim(world, BLOCK_DRIVER, claim);
  }
  if (world.drivers.length === 0) return;
  const deps = { registry: api.registry, clock: systemClock, log: silentLogger };
  const controllers = new Map(world.drivers.map((driver) => [driver.name, controllerOf(world, driver)]));
  const drivers = { get: (name: string) => controllers.get(name) } as unknown as CsiDrivers;
  const resizer = world.block === undefined ? [] : [new Resizer(deps, drivers)];
  void runControllers(deps, [new AttachDetach(deps), new CsiAttacher(deps, drivers), ...resizer], new Map(), NEVER);
  for (const driver of world.drivers) void driver.processes.start();
}

const classOf = (driver: string): string => driver.split('.')[0] ?? driver;

async function furnishDriver(world: World, name: string, report: Report): Promise<CsiDriver> {
  const driver = new CsiDriver(world, name);
  driver.report = report;
  const spec = { attachRequired: true, podInfoOnMount: true, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
  await must(world.api.admin('POST', '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name }, spec }));
  return driver;
}

async function furnishClaim({ api }: World, driver: string, name: string, mode: object = {}): Promise<void> {
  const size = { storage: '1Gi' };
  const accessModes = ['ReadWriteMany'];
  const storageClassName = classOf(driver);
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name };
  const csi = { driver, volumeHandle: `handle-${name}` };
  const claims = `${CORE}/namespaces/default/persistentvolumeclaims`;
  await must(
    api.admin('POST', `${CORE}/persistentvolumes`, {
      metadata: { name: `volume-${name}` },
      spec: { capacity: size, accessModes, claimRef, csi, storageClassName, ...mode },
    }),
  );
  const spec = { accessModes, resources: { requests: size }, volumeName: `volume-${name}`, storageClassName, ...mode };
  await must(api.admin('POST', claims, { metadata: { name }, spec }));
  const claim = api.store.get('persistentvolumeclaims', `default/${name}`)?.object as { metadata: { uid: string } };
  const status = { phase: 'Bound', capacity: size, accessModes };
  await must(api.admin('PATCH', `${claims}/${name}/status`, { status }));
  const ref = { spec: { claimRef: { ...claimRef, uid: claim.metadata.uid } } };
  await must(api.admin('PATCH', `${CORE}/persistentvolumes/volume-${name}`, ref));
}

async function must(answer: Promise<{ status: number; body: string }>): Promise<void> {
  const { status, body } = await answer;
  if (status >= 300) throw new Error(`the storage cannot be made: ${body}`);
}

/** What the controller of the driver does, wherever in the cluster it runs. */
function controllerOf({ scheduler }: World, driver: CsiDriver): CsiController {
  const later = <T>(work: () => T): Promise<T> =>
    new Promise((resolve) => {
      scheduler.after(ATTACH_MS * scheduler.latency.next() ** 4, () => resolve(work()), scheduler.world);
    });
  return {
    publish: ({ volumeId }: { volumeId: string }) =>
      later(() => {
        driver.attached.add(volumeId);
        return { publishContext: {} };
      }),
    unpublish: ({ volumeId }: { volumeId: string }) =>
      later(() => {
        driver.attached.delete(volumeId);
        if (driver.staged.has(volumeId))
          driver.report('in use is told', `${volumeId} was detached while it is staged: nobody said that it is in use`);
        return {};
      }),
    expand: ({ capacityRange }: { capacityRange?: { requiredBytes: number } }) =>
      later(() => ({ capacityBytes: capacityRange?.requiredBytes ?? 0, nodeExpansionRequired: true })),
  } as unknown as CsiController;
}
