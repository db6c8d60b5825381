// Makes volumes for claims whose class names one of our drivers, and removes them when their claim is gone and the class
// said so: what external-provisioner does.
import { fullErrorText, GrpcCode, GrpcError } from '../../../lib/grpc/status.ts';
import { deleteObject } from '../../api/deletion.ts';
import { textAt, type ApiObject } from '../../api/objects.ts';
import { resourceNamed } from '../../api/resources.ts';
import type { Change } from '../../api/store.ts';
import { systemContext } from '../../seed.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import type { CsiController, CsiDrivers } from './csi-drivers.ts';
import {
  all,
  ATTACHMENTS,
  CLAIMS,
  CLASSES,
  find,
  isDeleting,
  keyOfObject,
  PROVISIONED_BY,
  PROVISIONER,
  SELECTED_NODE,
  tell,
  update,
  VOLUMES,
  withoutFinalizer,
} from './objects.ts';
import {
  createRequest,
  DELETION_FINALIZER,
  deletionSecret,
  secretFor,
  volumeNameFor,
  volumeObject,
} from './provisioning.ts';
import { readSecret } from './secrets.ts';

export class Provisioner implements Controller {
  readonly name = 'provisioner';
  readonly #deps: ControllerDeps;
  readonly #drivers: CsiDrivers;

  constructor(deps: ControllerDeps, drivers: CsiDrivers) {
    this.#deps = deps;
    this.#drivers = drivers;
  }

  initialKeys(): readonly string[] {
    return [CLAIMS, VOLUMES].flatMap((s) => all(this.#deps.registry, s).map((o) => `${s} ${keyOfObject(o)}`));
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === ATTACHMENTS) {
      const volume = textAt(change.now.object, 'spec', 'source', 'persistentVolumeName');
      return change.type === 'DELETED' && volume !== '' ? [`${VOLUMES} ${volume}`] : [];
    }
    if (change.resource !== CLAIMS && change.resource !== VOLUMES) return [];
    return change.type === 'DELETED' ? [] : [`${change.resource} ${change.now.key}`];
  }

  async reconcile(id: string): Promise<void> {
    const [storage = '', key = ''] = id.split(' ');
    const object = find(this.#deps.registry, storage, key);
    if (object === undefined) return;
    if (storage === CLAIMS) await this.#provision(object);
    else await this.#reclaim(object);
  }

  async #provision(claim: ApiObject): Promise<void> {
    const { registry } = this.#deps;
    const driver = claim.metadata.annotations?.[PROVISIONER] ?? '';
    const csi = this.#drivers.get(driver);
    if (csi === undefined || textAt(claim, 'spec', 'volumeName') !== '' || isDeleting(claim)) return;
    if (find(registry, VOLUMES, volumeNameFor(claim)) !== undefined) return;
    const storageClass = find(registry, CLASSES, textAt(claim, 'spec', 'storageClassName'));
    if (storageClass === undefined) return;
    const waits = textAt(storageClass, 'volumeBindingMode') === 'WaitForFirstConsumer';
    if (waits && claim.metadata.annotations?.[SELECTED_NODE] === undefined) return;
    const say = (type: 'Normal' | 'Warning', reason: string, message: string): void =>
      tell(registry, driver, claim, { type, reason, message });
    say('Normal', 'Provisioning', `External provisioner is provisioning volume for claim "${keyOfObject(claim)}"`);
    try {
      await this.#make(csi, driver, storageClass, claim);
    } catch (err) {
      const why = fullErrorText(err);
      say(
        'Warning',
        'ProvisioningFailed',
        `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${why}`,
      );
      throw err;
    }
    say('Normal', 'ProvisioningSucceeded', `Successfully provisioned volume ${volumeNameFor(claim)}`);
  }

  async #make(csi: CsiController, driver: string, storageClass: ApiObject, claim: ApiObject): Promise<void> {
    const { registry } = this.#deps;
    const secrets = readSecret(registry, secretFor(storageClass, 'provisioner', claim));
    const { volume } = await csi.create(createRequest(storageClass, claim, secrets));
    if (volume === undefined) throw new GrpcError(GrpcCode.Internal, 'the driver made no volume');
    // Even if the claim has gone meanwhile: a volume without an object would never be removed.
    registry.create(resourceNamed(VOLUMES), '', volumeObject(driver, storageClass, claim, volume), systemContext());
  }

  async #reclaim(volume: ApiObject): Promise<void> {
    const { registry } = this.#deps;
    const driver = volume.metadata.annotations?.[PROVISIONED_BY] ?? '';
    const csi = this.#drivers.get(driver);
    if (csi === undefined || !this.#isToGo(volume)) return;
    const { name } = volume.metadata;
    if (all(registry, ATTACHMENTS).some((a) => textAt(a, 'spec', 'source', 'persistentVolumeName') === name)) return;
    try {
      const secrets = readSecret(registry, deletionSecret(volume));
      await csi.remove({ volumeId: textAt(volume, 'spec', 'csi', 'volumeHandle'), secrets });
    } catch (err) {
      tell(registry, driver, volume, { type: 'Warning', reason: 'VolumeFailedDelete', message: fullErrorText(err) });
      throw err;
    }
    if (find(registry, VOLUMES, name) === undefined) return;
    if (!isDeleting(volume)) deleteObject(registry, resourceNamed(VOLUMES), '', name, {}, systemContext());
    const left = find(registry, VOLUMES, name);
    if (left !== undefined) update(registry, VOLUMES, left, (d) => withoutFinalizer(d, DELETION_FINALIZER));
  }

  /** Released by its claim, or deleted by hand while nobody has it. */
  #isToGo(volume: ApiObject): boolean {
    if (textAt(volume, 'spec', 'persistentVolumeReclaimPolicy') !== 'Delete') return false;
    const phase = textAt(volume, 'status', 'phase');
    return phase === 'Released' || (isDeleting(volume) && phase !== 'Bound');
  }
}
