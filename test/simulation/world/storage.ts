// The storage of the simulated cluster: volumes with claims, the controllers that attach them, and the driver's own side.
import { AttachDetach } from '../../../src/devcluster/controllers/volumes/attacher.ts';
import { CsiAttacher } from '../../../src/devcluster/controllers/volumes/attachments.ts';
import type { CsiController, CsiDrivers } from '../../../src/devcluster/controllers/volumes/csi-drivers.ts';
import { runControllers } from '../../../src/devcluster/controllers/controller.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { silentLogger } from '../../../src/lib/logger.ts';
import { CLAIMS } from '../workload/storage-pods.ts';
import { CsiDriver, DRIVER, type Report } from './csi-driver.ts';
import type { World } from './world.ts';

const CORE = '/api/v1';
const NEVER = new AbortController().signal;
const ATTACH_MS = 10_000;

export async function furnishStorage(world: World, report: Report): Promise<void> {
  const { api } = world;
  const driver = new CsiDriver(world);
  driver.report = report;
  world.csi = driver;
  const spec = { attachRequired: true, podInfoOnMount: true, volumeLifecycleModes: ['Persistent', 'Ephemeral'] };
  await must(api.admin('POST', '/apis/storage.k8s.io/v1/csidrivers', { metadata: { name: DRIVER }, spec }));
  for (const claim of CLAIMS) await furnishClaim(world, claim);
  const deps = { registry: api.registry, clock: systemClock, log: silentLogger };
  const drivers = { get: () => attacherOf(world, driver) } as unknown as CsiDrivers;
  void runControllers(deps, [new AttachDetach(deps), new CsiAttacher(deps, drivers)], new Map(), NEVER);
  void driver.start();
}

async function furnishClaim({ api }: World, name: string): Promise<void> {
  const size = { storage: '1Gi' };
  const accessModes = ['ReadWriteMany'];
  const claimRef = { kind: 'PersistentVolumeClaim', namespace: 'default', name };
  const csi = { driver: DRIVER, volumeHandle: `handle-${name}` };
  const claims = `${CORE}/namespaces/default/persistentvolumeclaims`;
  await must(
    api.admin('POST', `${CORE}/persistentvolumes`, {
      metadata: { name: `volume-${name}` },
      spec: { capacity: size, accessModes, claimRef, csi, storageClassName: 'sim' },
    }),
  );
  const spec = { accessModes, resources: { requests: size }, volumeName: `volume-${name}`, storageClassName: 'sim' };
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
function attacherOf({ scheduler }: World, driver: CsiDriver): CsiController {
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
  } as unknown as CsiController;
}
