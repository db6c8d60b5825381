// Makes VolumeAttachments of our drivers true and takes them back: what external-attacher does.
import { apiTime } from '../../../core/time.ts';
import { fullErrorText } from '../../../lib/grpc/status.ts';
import { at, recordAt, recordsAt, textAt, textsAt, type ApiObject } from '../../api/objects.ts';
import type { Change } from '../../api/store.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import type { CsiController, CsiDrivers } from './csi-drivers.ts';
import {
  all,
  ATTACHMENTS,
  CSI_NODES,
  find,
  isDeleting,
  update,
  VOLUMES,
  withAnnotations,
  withoutFinalizer,
  withStatus,
} from './objects.ts';
import { capabilityOf } from './provisioning.ts';
import { readSecret, secretAt } from './secrets.ts';

/** Kept on the attachment: by the time of the detach the node may no longer say so. */
const NODE_ID = 'csi.alpha.kubernetes.io/node-id';
const finalizerOf = (driver: string): string => `external-attacher/${driver.replaceAll('.', '-')}`;

export class CsiAttacher implements Controller {
  readonly name = 'csi-attacher';
  readonly #deps: ControllerDeps;
  readonly #drivers: CsiDrivers;

  constructor(deps: ControllerDeps, drivers: CsiDrivers) {
    this.#deps = deps;
    this.#drivers = drivers;
  }

  initialKeys(): readonly string[] {
    return all(this.#deps.registry, ATTACHMENTS).map((a) => a.metadata.name);
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === CSI_NODES) return this.initialKeys();
    return change.resource === ATTACHMENTS && change.type !== 'DELETED' ? [change.now.key] : [];
  }

  async reconcile(name: string): Promise<void> {
    const attachment = find(this.#deps.registry, ATTACHMENTS, name);
    const csi = this.#drivers.get(textAt(attachment, 'spec', 'attacher'));
    if (attachment === undefined || csi === undefined) return;
    const attached = at(attachment, 'status', 'attached') === true;
    try {
      if (isDeleting(attachment)) await this.#detach(csi, attachment);
      else if (!attached) await this.#attach(csi, attachment);
    } catch (err) {
      this.#fail(name, isDeleting(attachment) ? 'detachError' : 'attachError', fullErrorText(err));
      throw err;
    }
  }

  async #attach(csi: CsiController, attachment: ApiObject): Promise<void> {
    const { registry } = this.#deps;
    const { name } = attachment.metadata;
    const driver = textAt(attachment, 'spec', 'attacher');
    const nodeId = this.#nodeId(attachment, driver);
    const finalizers = [...new Set([...(attachment.metadata.finalizers ?? []), finalizerOf(driver)])];
    update(registry, ATTACHMENTS, attachment, (d) =>
      withAnnotations({ ...d, metadata: { ...d.metadata, finalizers } }, { [NODE_ID]: nodeId }),
    );
    const volume = this.#volumeOf(attachment);
    if (volume === undefined)
      throw new Error(`persistentvolume "${textAt(attachment, 'spec', 'source', 'persistentVolumeName')}" not found`);
    const source = recordAt(volume, 'spec', 'csi');
    const { publishContext } = await csi.publish({
      volumeId: textAt(source, 'volumeHandle'),
      nodeId,
      volumeCapability: capabilityOf(volume, textAt(source, 'fsType'), textsAt(volume, 'spec', 'mountOptions')),
      readonly: source['readOnly'] === true,
      secrets: readSecret(registry, secretAt(source, 'controllerPublishSecretRef')),
      volumeContext: recordAt(source, 'volumeAttributes') as Record<string, string>,
    });
    const known = find(registry, ATTACHMENTS, name);
    if (known === undefined) return;
    const metadata = Object.keys(publishContext).length === 0 ? {} : { attachmentMetadata: publishContext };
    update(registry, ATTACHMENTS, known, (d) => ({ ...d, status: { attached: true, ...metadata } }), 'status');
  }

  async #detach(csi: CsiController, attachment: ApiObject): Promise<void> {
    const { registry } = this.#deps;
    const driver = textAt(attachment, 'spec', 'attacher');
    const finalizer = finalizerOf(driver);
    if (!(attachment.metadata.finalizers ?? []).includes(finalizer)) return;
    const source = recordAt(this.#volumeOf(attachment), 'spec', 'csi');
    const volumeId = textAt(source, 'volumeHandle');
    // Without its volume nobody knows what to detach any more.
    if (volumeId !== '')
      await csi.unpublish({
        volumeId,
        nodeId: attachment.metadata.annotations?.[NODE_ID] ?? '',
        secrets: readSecret(registry, secretAt(source, 'controllerPublishSecretRef')),
      });
    const known = find(registry, ATTACHMENTS, attachment.metadata.name);
    if (known !== undefined) update(registry, ATTACHMENTS, known, (d) => withoutFinalizer(d, finalizer));
  }

  #volumeOf(attachment: ApiObject): ApiObject | undefined {
    return find(this.#deps.registry, VOLUMES, textAt(attachment, 'spec', 'source', 'persistentVolumeName'));
  }

  #nodeId(attachment: ApiObject, driver: string): string {
    const node = textAt(attachment, 'spec', 'nodeName');
    const drivers = recordsAt(find(this.#deps.registry, CSI_NODES, node), 'spec', 'drivers');
    const nodeId = textAt(
      drivers.find((d) => d['name'] === driver),
      'nodeID',
    );
    if (nodeId === '') throw new Error(`CSINode ${node} does not contain driver ${driver}`);
    return nodeId;
  }

  #fail(name: string, field: 'attachError' | 'detachError', message: string): void {
    const { registry, clock } = this.#deps;
    const attachment = find(registry, ATTACHMENTS, name);
    if (attachment === undefined || textAt(attachment, 'status', field, 'message') === message) return;
    const error = { time: apiTime(clock.now()), message };
    update(
      registry,
      ATTACHMENTS,
      attachment,
      (d) => withStatus(d, { attached: at(d, 'status', 'attached') === true, [field]: error }),
      'status',
    );
  }
}
