// Claims and volumes find each other, and say what they wait for: what the persistent volume controller does. A change
// of a volume wakes the claims that wait, a claim that goes wakes its volume.
import type { Node } from '../../../core/node.ts';
import { at, recordAt, textAt, type ApiObject } from '../../api/objects.ts';
import type { Change } from '../../api/store.ts';
import { defaultClass } from '../../api/strategies/storage.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import { bestVolume, isFree, isReservedFor, mismatch } from './matching.ts';
import {
  all,
  CLAIMS,
  CLASSES,
  find,
  isDeleting,
  keyOfObject,
  OLD_PROVISIONER,
  PROVISIONER,
  SELECTED_NODE,
  tell,
  update,
  VOLUMES,
  withAnnotations,
  withSpec,
  withStatus,
} from './objects.ts';

const COMPONENT = 'persistentvolume-controller';
const BOUND_BY_CONTROLLER = 'pv.kubernetes.io/bound-by-controller';
const BIND_COMPLETED = 'pv.kubernetes.io/bind-completed';
const NO_PROVISIONER = 'kubernetes.io/no-provisioner';

export class VolumeBinder implements Controller {
  readonly name = 'volume-binder';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return [...this.#keysOf(CLAIMS, 'claim'), ...this.#keysOf(VOLUMES, 'volume')];
  }

  keysOf(change: Change): readonly string[] {
    const object = change.now.object as ApiObject;
    if (change.resource === CLAIMS) {
      const volume = textAt(object, 'spec', 'volumeName');
      const its = volume === '' ? [] : [`volume ${volume}`];
      return change.type === 'DELETED' ? its : [`claim ${change.now.key}`, ...its];
    }
    if (change.resource === CLASSES) return this.#waiting();
    if (change.resource !== VOLUMES) return [];
    const ref = recordAt(object, 'spec', 'claimRef');
    const owner = textAt(ref, 'name') === '' ? [] : [`claim ${textAt(ref, 'namespace')}/${textAt(ref, 'name')}`];
    const keys = [...owner, ...(isFree(object) || change.type === 'DELETED' ? this.#waiting() : [])];
    return change.type === 'DELETED' ? keys : [`volume ${change.now.key}`, ...keys];
  }

  #waiting(): string[] {
    return all(this.#deps.registry, CLAIMS)
      .filter((c) => textAt(c, 'status', 'phase') !== 'Bound')
      .map((c) => `claim ${keyOfObject(c)}`);
  }

  #keysOf(storage: string, kind: string): string[] {
    return all(this.#deps.registry, storage).map((o) => `${kind} ${keyOfObject(o)}`);
  }

  reconcile(id: string): void {
    const [kind, key = ''] = id.split(' ');
    const object = find(this.#deps.registry, kind === 'claim' ? CLAIMS : VOLUMES, key);
    if (object === undefined) return;
    if (kind === 'claim') this.#claim(object);
    else this.#volume(object);
  }

  #claim(claim: ApiObject): void {
    const { registry } = this.#deps;
    const named = textAt(claim, 'spec', 'volumeName');
    const phase = textAt(claim, 'status', 'phase');
    if (phase === 'Bound' || phase === 'Lost') return this.#checkBound(claim, named, phase);
    if (isDeleting(claim)) return;
    if (named !== '') return this.#bindNamed(claim, find(registry, VOLUMES, named));
    const chosen = this.#withClass(claim);
    const waits = this.#waitsForConsumer(chosen);
    const nodeName = chosen.metadata.annotations?.[SELECTED_NODE] ?? '';
    const node = find(registry, 'nodes', nodeName) as unknown as Node | undefined;
    const volumes = all(registry, VOLUMES);
    const volume =
      waits && node === undefined ? volumes.find((v) => isReservedFor(v, chosen)) : bestVolume(volumes, chosen, node);
    if (volume !== undefined) return this.#bind(chosen, volume, true);
    if (waits && node === undefined)
      return this.#say(
        chosen,
        'Normal',
        'WaitForFirstConsumer',
        'waiting for first consumer to be created before binding',
      );
    this.#askProvisioner(chosen);
  }

  /** A claim that came before there was a default class gets it now. */
  #withClass(claim: ApiObject): ApiObject {
    if (at(claim, 'spec', 'storageClassName') !== undefined) return claim;
    const chosen = defaultClass(this.#deps.registry.store)?.metadata.name;
    if (chosen === undefined) return claim;
    return update(this.#deps.registry, CLAIMS, claim, (d) => withSpec(d, { storageClassName: chosen }));
  }

  #waitsForConsumer(claim: ApiObject): boolean {
    const name = textAt(claim, 'spec', 'storageClassName');
    return textAt(find(this.#deps.registry, CLASSES, name), 'volumeBindingMode') === 'WaitForFirstConsumer';
  }

  #checkBound(claim: ApiObject, named: string, phase: string): void {
    const { registry } = this.#deps;
    const volume = find(registry, VOLUMES, named);
    const lost = volume === undefined || !isReservedFor(volume, claim);
    if (lost === (phase === 'Lost')) return;
    update(registry, CLAIMS, claim, (d) => withStatus(d, { phase: lost ? 'Lost' : 'Bound' }), 'status');
    if (lost)
      this.#say(
        claim,
        'Warning',
        'ClaimLost',
        'Bound claim has lost its PersistentVolume. Data on the volume is lost!',
      );
  }

  #bindNamed(claim: ApiObject, volume: ApiObject | undefined): void {
    if (volume === undefined) return;
    if (!isFree(volume) && !isReservedFor(volume, claim))
      return this.#say(
        claim,
        'Warning',
        'FailedBinding',
        `volume "${volume.metadata.name}" already bound to a different claim.`,
      );
    const problem =
      isReservedFor(volume, claim) && textAt(volume, 'spec', 'claimRef', 'uid') !== ''
        ? undefined
        : mismatch(volume, claim);
    if (problem !== undefined)
      return this.#say(
        claim,
        'Warning',
        'VolumeMismatch',
        `Cannot bind to requested volume "${volume.metadata.name}": ${problem}`,
      );
    this.#bind(claim, volume, false);
  }

  #bind(claim: ApiObject, volume: ApiObject, chosenHere: boolean): void {
    const { registry } = this.#deps;
    const { uid, name, namespace = '', resourceVersion } = claim.metadata;
    const marks = isFree(volume) ? { [BOUND_BY_CONTROLLER]: 'yes' } : {};
    if (textAt(volume, 'spec', 'claimRef', 'uid') === '') {
      const claimRef = { kind: 'PersistentVolumeClaim', apiVersion: 'v1', namespace, name, uid, resourceVersion };
      update(registry, VOLUMES, volume, (d) => withAnnotations(withSpec(d, { claimRef }), marks));
    }
    update(registry, VOLUMES, volume, (d) => withStatus(d, { phase: 'Bound' }), 'status');
    update(registry, CLAIMS, claim, (d) =>
      withAnnotations(withSpec(d, { volumeName: volume.metadata.name }), {
        [BIND_COMPLETED]: 'yes',
        ...(chosenHere ? { [BOUND_BY_CONTROLLER]: 'yes' } : {}),
      }),
    );
    const [accessModes, capacity] = [at(volume, 'spec', 'accessModes'), at(volume, 'spec', 'capacity')];
    update(registry, CLAIMS, claim, (d) => withStatus(d, { phase: 'Bound', accessModes, capacity }), 'status');
  }

  #askProvisioner(claim: ApiObject): void {
    const { registry } = this.#deps;
    const name = textAt(claim, 'spec', 'storageClassName');
    if (name === '')
      return this.#say(
        claim,
        'Normal',
        'FailedBinding',
        'no persistent volumes available for this claim and no storage class is set',
      );
    const provisioner = textAt(find(registry, CLASSES, name), 'provisioner');
    if (provisioner === '')
      return this.#say(claim, 'Warning', 'ProvisioningFailed', `storageclass.storage.k8s.io "${name}" not found`);
    if (provisioner === NO_PROVISIONER || claim.metadata.annotations?.[PROVISIONER] === provisioner) return;
    const marks = { [PROVISIONER]: provisioner, [OLD_PROVISIONER]: provisioner };
    update(registry, CLAIMS, claim, (d) => withAnnotations(d, marks));
    this.#say(
      claim,
      'Normal',
      'ExternalProvisioning',
      `Waiting for a volume to be created either by the external provisioner '${provisioner}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.`,
    );
  }

  #volume(volume: ApiObject): void {
    const phase = this.#phaseOf(volume);
    if (phase === undefined || textAt(volume, 'status', 'phase') === phase) return;
    update(this.#deps.registry, VOLUMES, volume, (d) => withStatus(d, { phase }), 'status');
  }

  /** What its claim makes of a volume; undefined while its claim has yet to take it. */
  #phaseOf(volume: ApiObject): string | undefined {
    const ref = recordAt(volume, 'spec', 'claimRef');
    const uid = textAt(ref, 'uid');
    if (uid === '') return 'Available';
    const claim = find(this.#deps.registry, CLAIMS, `${textAt(ref, 'namespace')}/${textAt(ref, 'name')}`);
    if (claim?.metadata.uid !== uid) return 'Released';
    const named = textAt(claim, 'spec', 'volumeName');
    return named === '' ? undefined : named === volume.metadata.name ? 'Bound' : 'Released';
  }

  #say(claim: ApiObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    tell(this.#deps.registry, COMPONENT, claim, { type, reason, message });
  }
}
