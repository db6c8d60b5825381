// Attaches what the pods of a node need and detaches what the node no longer uses: what the attach/detach controller
// does. Works by VolumeAttachments; whoever looks after a driver makes them true.
import { deleteObject } from '../../api/deletion.ts';
import { at, keyOf, recordsAt, sameJson, textAt, textsAt, type ApiObject } from '../../api/objects.ts';
import { resourceNamed } from '../../api/resources.ts';
import type { Change } from '../../api/store.ts';
import { systemContext } from '../../seed.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import { attachmentName, newlyAttached, planAttachments, uniqueName, type WantedVolume } from './attaching.ts';
import {
  all,
  ATTACHMENTS,
  claimNamesOf,
  CLAIMS,
  CSI_DRIVERS,
  find,
  isDeleting,
  isFinished,
  tell,
  update,
  VOLUMES,
  withStatus,
} from './objects.ts';

const COMPONENT = 'attachdetach-controller';

export class AttachDetach implements Controller {
  readonly name = 'attach-detach';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return all(this.#deps.registry, 'nodes').map((n) => n.metadata.name);
  }

  keysOf(change: Change): readonly string[] {
    const { object } = change.now;
    switch (change.resource) {
      case 'pods':
        return claimNamesOf(object as ApiObject).length > 0 ? [textAt(object, 'spec', 'nodeName')].filter(Boolean) : [];
      case 'nodes':
        return change.type !== 'DELETED' && sameVolumes(change) ? [] : [change.now.key];
      case ATTACHMENTS:
        return [textAt(object, 'spec', 'nodeName')];
      case CLAIMS:
        return this.initialKeys();
      default:
        return [];
    }
  }

  reconcile(name: string): void {
    const { registry } = this.#deps;
    const node = find(registry, 'nodes', name);
    const attachments = all(registry, ATTACHMENTS).filter((a) => textAt(a, 'spec', 'nodeName') === name);
    if (node === undefined) return this.#detach(attachments.filter((a) => !isDeleting(a)));
    const wanted = this.#wantedBy(name);
    const volumes = new Map(all(registry, VOLUMES).map((v) => [v.metadata.name, v]));
    const plan = planAttachments({ node, wanted, attachments, volumes });
    for (const { volume } of plan.attach) this.#attach(volume, name);
    this.#report(node, plan.volumesAttached, wanted);
    this.#detach(plan.detach);
    for (const attachment of attachments) this.#sayFailure(attachment, wanted);
  }

  #detach(attachments: readonly ApiObject[]): void {
    for (const { metadata } of attachments)
      deleteObject(this.#deps.registry, resourceNamed(ATTACHMENTS), '', metadata.name, {}, systemContext());
  }

  /** The volumes of the node's pods, by name, that have to be attached. */
  #wantedBy(node: string): Map<string, WantedVolume> {
    const { registry } = this.#deps;
    const wanted = new Map<string, WantedVolume>();
    for (const pod of all(registry, 'pods')) {
      if (textAt(pod, 'spec', 'nodeName') !== node || isFinished(pod)) continue;
      for (const name of claimNamesOf(pod)) {
        const claim = find(registry, CLAIMS, keyOf(pod.metadata.namespace, name));
        const volume = find(registry, VOLUMES, textAt(claim, 'spec', 'volumeName'));
        if (volume === undefined || textAt(claim, 'status', 'phase') !== 'Bound' || !this.#needsAttach(volume))
          continue;
        const known = wanted.get(volume.metadata.name);
        wanted.set(volume.metadata.name, { volume, pods: [...(known?.pods ?? []), pod] });
      }
    }
    return wanted;
  }

  #needsAttach(volume: ApiObject): boolean {
    const driver = textAt(volume, 'spec', 'csi', 'driver');
    if (driver === '') return false;
    return at(find(this.#deps.registry, CSI_DRIVERS, driver), 'spec', 'attachRequired') !== false;
  }

  #attach(volume: ApiObject, node: string): void {
    const { registry } = this.#deps;
    const attacher = textAt(volume, 'spec', 'csi', 'driver');
    const name = attachmentName(textAt(volume, 'spec', 'csi', 'volumeHandle'), attacher, node);
    if (find(registry, ATTACHMENTS, name) !== undefined) return;
    const spec = { attacher, nodeName: node, source: { persistentVolumeName: volume.metadata.name } };
    registry.create(resourceNamed(ATTACHMENTS), '', { metadata: { name }, spec }, systemContext());
  }

  #report(
    node: ApiObject,
    attached: ReturnType<typeof planAttachments>['volumesAttached'],
    wanted: Map<string, WantedVolume>,
  ): void {
    const { registry } = this.#deps;
    if (sameJson(recordsAt(node, 'status', 'volumesAttached'), attached)) return;
    update(registry, 'nodes', node, (d) => withStatus(d, { volumesAttached: attached }), 'status');
    const news = new Set(newlyAttached(node, attached));
    for (const { volume, pods } of wanted.values()) {
      if (!news.has(uniqueName(volume))) continue;
      const message = `AttachVolume.Attach succeeded for volume "${volume.metadata.name}" `;
      for (const pod of pods)
        tell(registry, COMPONENT, pod, { type: 'Normal', reason: 'SuccessfulAttachVolume', message });
    }
  }

  #sayFailure(attachment: ApiObject, wanted: Map<string, WantedVolume>): void {
    const why = textAt(attachment, 'status', 'attachError', 'message');
    const name = textAt(attachment, 'spec', 'source', 'persistentVolumeName');
    if (why === '' || at(attachment, 'status', 'attached') === true) return;
    const message = `AttachVolume.Attach failed for volume "${name}" : ${why}`;
    for (const pod of wanted.get(name)?.pods ?? [])
      tell(this.#deps.registry, COMPONENT, pod, { type: 'Warning', reason: 'FailedAttachVolume', message });
  }
}

/** Heartbeats say nothing about volumes. */
const sameVolumes = ({ before, now }: Change): boolean =>
  before !== undefined &&
  sameJson(textsAt(before.object, 'status', 'volumesInUse'), textsAt(now.object, 'status', 'volumesInUse')) &&
  sameJson(recordsAt(before.object, 'status', 'volumesAttached'), recordsAt(now.object, 'status', 'volumesAttached'));
