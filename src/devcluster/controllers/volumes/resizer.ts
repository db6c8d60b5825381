// Grows the volumes of claims that ask for more: the controller's half, as external-resizer does it. The rest is the
// node's, which finds in the claim's status what is left to do.
import { bytesOf, compareQuantities } from '../../../core/quantity.ts';
import { apiTime } from '../../../core/time.ts';
import { fullErrorText, GrpcError } from '../../../lib/grpc/status.ts';
import { at, recordAt, recordsAt, sameJson, textAt, textsAt, type ApiObject, type Json } from '../../api/objects.ts';
import type { Change } from '../../api/store.ts';
import { amountAt } from '../../api/strategies/storage.ts';
import type { Controller, ControllerDeps } from '../controller.ts';
import type { CsiController, CsiDrivers } from './csi-drivers.ts';
import { all, CLAIMS, find, isDeleting, keyOfObject, tell, update, VOLUMES, withSpec, withStatus } from './objects.ts';
import { capabilityOf } from './provisioning.ts';
import { readSecret, secretAt } from './secrets.ts';

const RESIZE_CONDITIONS = ['Resizing', 'FileSystemResizePending', 'ControllerResizeError', 'NodeResizeError'];
/** Asking again for the same size would only get the same answer. */
const INFEASIBLE = [
  'InvalidArgument',
  'OutOfRange',
  'NotFound',
  'Unimplemented',
  'PermissionDenied',
  'FailedPrecondition',
];

/** What a claim's growth needs next. Pure. */
export function nextResizeStep(claim: ApiObject, volume: ApiObject): 'none' | 'controller' | 'node' {
  const wanted = amountAt(claim, 'spec', 'resources', 'requests', 'storage');
  if (compareQuantities(wanted, amountAt(claim, 'status', 'capacity', 'storage')) <= 0) return 'none';
  const state = textAt(claim, 'status', 'allocatedResourceStatuses', 'storage');
  const allocated = amountAt(claim, 'status', 'allocatedResources', 'storage');
  const sameSize = compareQuantities(allocated, wanted) === 0;
  if (sameSize && state === 'ControllerResizeInfeasible') return 'none';
  if (compareQuantities(amountAt(volume, 'spec', 'capacity', 'storage'), wanted) < 0) return 'controller';
  return sameSize && state !== 'ControllerResizeInProgress' && state !== '' ? 'none' : 'node';
}

export class Resizer implements Controller {
  readonly name = 'resizer';
  readonly #deps: ControllerDeps;
  readonly #drivers: CsiDrivers;

  constructor(deps: ControllerDeps, drivers: CsiDrivers) {
    this.#deps = deps;
    this.#drivers = drivers;
  }

  initialKeys(): readonly string[] {
    return all(this.#deps.registry, CLAIMS).map(keyOfObject);
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource !== CLAIMS || change.type !== 'MODIFIED') return [];
    const spec = (object: unknown): unknown => at(object, 'spec', 'resources');
    return sameJson(spec(change.before?.object), spec(change.now.object)) ? [] : [change.now.key];
  }

  async reconcile(key: string): Promise<void> {
    const { registry } = this.#deps;
    const claim = find(registry, CLAIMS, key);
    if (claim === undefined || isDeleting(claim) || textAt(claim, 'status', 'phase') !== 'Bound') return;
    const volume = find(registry, VOLUMES, textAt(claim, 'spec', 'volumeName'));
    const driver = textAt(volume, 'spec', 'csi', 'driver');
    const csi = this.#drivers.get(driver);
    if (volume === undefined || csi === undefined) return;
    const step = nextResizeStep(claim, volume);
    if (step === 'none') return;
    const wanted = at(claim, 'spec', 'resources', 'requests', 'storage');
    if (step === 'controller') await this.#expand(csi, driver, claim, volume, wanted);
    else this.#leaveToNode(driver, claim, wanted);
  }

  async #expand(
    csi: CsiController,
    driver: string,
    claim: ApiObject,
    volume: ApiObject,
    wanted: unknown,
  ): Promise<void> {
    const { registry } = this.#deps;
    const message = 'waiting for an external controller to expand this PVC';
    tell(registry, 'volume_expand', claim, { type: 'Normal', reason: 'ExternalExpanding', message });
    this.#setStatus(claim, wanted, 'ControllerResizeInProgress', [{ type: 'Resizing', status: 'True' }]);
    this.#say(driver, claim, 'Normal', 'Resizing', `External resizer is resizing volume ${volume.metadata.name}`);
    const source = recordAt(volume, 'spec', 'csi');
    let needsNode: boolean;
    try {
      const answer = await csi.expand({
        volumeId: textAt(source, 'volumeHandle'),
        capacityRange: { requiredBytes: bytesOf(String(wanted)), limitBytes: 0 },
        secrets: readSecret(registry, secretAt(source, 'controllerExpandSecretRef')),
        volumeCapability: capabilityOf(volume, textAt(source, 'fsType'), textsAt(volume, 'spec', 'mountOptions')),
      });
      needsNode = answer.nodeExpansionRequired;
    } catch (err) {
      this.#fail(driver, claim, volume, wanted, err);
      if (err instanceof GrpcError && INFEASIBLE.includes(err.codeName)) return;
      throw err;
    }
    const known = find(registry, CLAIMS, keyOfObject(claim));
    const capacity = { ...recordAt(volume, 'spec', 'capacity'), storage: wanted };
    update(registry, VOLUMES, volume, (d) => withSpec(d, { capacity }));
    if (known === undefined) return;
    if (needsNode) this.#leaveToNode(driver, known, wanted);
    else this.#finish(driver, known, wanted);
  }

  #leaveToNode(driver: string, claim: ApiObject, wanted: unknown): void {
    const message = 'Waiting for user to (re-)start a pod to finish file system resize of volume on node.';
    this.#setStatus(claim, wanted, 'NodeResizePending', [
      { type: 'Resizing', status: 'True' },
      { type: 'FileSystemResizePending', status: 'True', message },
    ]);
    const text = 'Require file system resize of volume on node';
    this.#say(driver, claim, 'Normal', 'FileSystemResizeRequired', text);
  }

  #finish(driver: string, claim: ApiObject, wanted: unknown): void {
    const capacity = { ...recordAt(claim, 'status', 'capacity'), storage: wanted };
    this.#setStatus(claim, wanted, '', [], { capacity });
    this.#say(driver, claim, 'Normal', 'VolumeResizeSuccessful', 'Resize volume succeeded');
  }

  #fail(driver: string, claim: ApiObject, volume: ApiObject, wanted: unknown, err: unknown): void {
    const why = fullErrorText(err);
    const known = find(this.#deps.registry, CLAIMS, keyOfObject(claim));
    if (known === undefined) return;
    const infeasible = err instanceof GrpcError && INFEASIBLE.includes(err.codeName);
    const message = `failed to expand pvc with ${why}`;
    const state = infeasible ? 'ControllerResizeInfeasible' : 'ControllerResizeInProgress';
    this.#setStatus(known, wanted, state, [
      { type: 'Resizing', status: 'True' },
      { type: 'ControllerResizeError', status: 'True', message },
    ]);
    const text = `resize volume "${volume.metadata.name}" by resizer "${driver}" failed: ${why}`;
    this.#say(driver, claim, 'Warning', 'VolumeResizeFailed', text);
  }

  #setStatus(claim: ApiObject, wanted: unknown, state: string, conditions: readonly Json[], more: Json = {}): void {
    const now = apiTime(this.#deps.clock.now());
    const before = recordsAt(claim, 'status', 'conditions');
    const others = before.filter((c) => !RESIZE_CONDITIONS.includes(textAt(c, 'type')));
    const stamped = conditions.map((c) => ({
      lastProbeTime: null,
      lastTransitionTime:
        textAt(
          before.find((b) => b['type'] === c['type']),
          'lastTransitionTime',
        ) || now,
      ...c,
    }));
    const { storage: _old, ...rest } = recordAt(claim, 'status', 'allocatedResourceStatuses');
    const states = state === '' ? rest : { ...rest, storage: state };
    update(
      this.#deps.registry,
      CLAIMS,
      claim,
      (d) =>
        withStatus(d, {
          ...more,
          allocatedResources: { ...recordAt(d, 'status', 'allocatedResources'), storage: wanted },
          allocatedResourceStatuses: states,
          conditions: [...others, ...stamped],
        }),
      'status',
    );
  }

  #say(driver: string, claim: ApiObject, type: 'Normal' | 'Warning', reason: string, message: string): void {
    tell(this.#deps.registry, `external-resizer ${driver}`, claim, { type, reason, message });
  }
}
