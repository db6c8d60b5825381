// Claims, volumes, storage classes, CSI drivers and attachments: defaults, protection finalizers, what may be changed.
import { compareQuantities, quantity, tryParseQuantity, type Quantity } from '../../../core/quantity.ts';
import { apiTime } from '../../../core/time.ts';
import type { Findings } from '../../../core/validation/field-error.ts';
import { forbidden } from '../api-error.ts';
import { at, isJson, recordAt, recordsAt, sameJson, textAt, textsAt, type ApiObject, type Json } from '../objects.ts';
import { resourceNamed } from '../resources.ts';
import type { ObjectStore } from '../store.ts';
import type { Strategy, World } from '../strategy.ts';

export const CLAIM_PROTECTION = 'kubernetes.io/pvc-protection';
export const VOLUME_PROTECTION = 'kubernetes.io/pv-protection';
export const DEFAULT_CLASS = 'storageclass.kubernetes.io/is-default-class';
const CLASSES = 'storage.k8s.io/storageclasses';
const ACCESS_MODES = ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod'];
const VOLUME_MODES = ['Block', 'Filesystem'];

const addFinalizer = (draft: ApiObject, name: string): void => {
  draft.metadata.finalizers = [...new Set([...(draft.metadata.finalizers ?? []), name])];
};

/** The amount at a path; what is no quantity counts as none. */
export function amountAt(object: unknown, ...path: readonly string[]): Quantity {
  const value = at(object, ...path);
  const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value : '';
  return tryParseQuantity(text) ?? quantity('0');
}

/** The default class; of several the youngest counts. */
export function defaultClass(store: ObjectStore): ApiObject | undefined {
  const born = (c: ApiObject): string => c.metadata.creationTimestamp ?? '';
  return store
    .list(CLASSES)
    .map((c) => c.object as ApiObject)
    .filter((c) => c.metadata.annotations?.[DEFAULT_CLASS] === 'true')
    .toSorted((a, b) =>
      born(a) === born(b) ? (a.metadata.name < b.metadata.name ? -1 : 1) : born(a) > born(b) ? -1 : 1,
    )[0];
}

function checkAccess(f: Findings, spec: Json): void {
  const modes = textsAt(spec, 'accessModes');
  if (modes.length === 0) f.required('spec.accessModes', 'at least 1 access mode is required');
  for (const mode of modes) if (!ACCESS_MODES.includes(mode)) f.notSupported('spec.accessModes', mode, ACCESS_MODES);
  if (modes.includes('ReadWriteOncePod') && modes.length > 1)
    f.forbidden('spec.accessModes', 'may not use ReadWriteOncePod with other access modes');
  const mode = textAt(spec, 'volumeMode');
  if (mode !== '' && !VOLUME_MODES.includes(mode)) f.notSupported('spec.volumeMode', mode, VOLUME_MODES);
}

function checkAmount(f: Findings, field: string, value: unknown): void {
  const text = typeof value === 'number' ? String(value) : value;
  if (text === undefined) return f.required(field);
  const amount = typeof text === 'string' ? tryParseQuantity(text) : undefined;
  if (amount === undefined || amount.nano <= 0n) f.invalid(field, value, 'must be greater than zero');
}

const withoutSize = (spec: Json): Json => {
  const { resources, volumeAttributesClassName: _class, ...rest } = spec;
  const { requests, ...others } = isJson(resources) ? resources : {};
  const { storage: _size, ...otherRequests } = isJson(requests) ? requests : {};
  return { ...rest, resources: { ...others, requests: otherRequests } };
};

/** What may still be filled in: the volume of a claim without one, the class of a claim without one. */
const filledIn = (old: Json, draft: Json): Json => ({
  ...old,
  ...(textAt(old, 'volumeName') === '' && textAt(draft, 'volumeName') !== ''
    ? { volumeName: draft['volumeName'] }
    : {}),
  ...(old['storageClassName'] === undefined && draft['storageClassName'] !== undefined
    ? { storageClassName: draft['storageClassName'] }
    : {}),
});

const IMMUTABLE =
  'spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims';

function checkClaimChange(f: Findings, object: ApiObject, old: ApiObject): void {
  const [now, before] = [recordAt(object, 'spec'), recordAt(old, 'spec')];
  const bound = textAt(old, 'status', 'phase') === 'Bound';
  const allowed = filledIn(before, now);
  if (!sameJson(bound ? withoutSize(allowed) : allowed, bound ? withoutSize(now) : now)) f.forbidden('spec', IMMUTABLE);
  const [size, was] = [
    amountAt(now, 'resources', 'requests', 'storage'),
    amountAt(before, 'resources', 'requests', 'storage'),
  ];
  const has = amountAt(old, 'status', 'capacity', 'storage');
  if (compareQuantities(size, was) < 0 && compareQuantities(size, has) <= 0)
    f.forbidden('spec.resources.requests.storage', 'field can not be less than status.capacity');
}

/** Growing needs a bound claim and a class that allows it. */
function refuseGrowth(draft: ApiObject, old: ApiObject, { store }: World): void {
  const size = (o: ApiObject): Quantity => amountAt(o, 'spec', 'resources', 'requests', 'storage');
  if (compareQuantities(size(draft), size(old)) <= 0) return;
  const refuse = (why: string): Error => forbidden(resourceNamed('persistentvolumeclaims'), old.metadata.name, why);
  if (textAt(old, 'status', 'phase') !== 'Bound') throw refuse('Only bound persistent volume claims can be expanded');
  const name = textAt(old, 'spec', 'storageClassName');
  if (at(store.get(CLASSES, name)?.object, 'allowVolumeExpansion') !== true)
    throw refuse(
      'only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize',
    );
}

export const claimStrategy: Strategy = {
  returnsDeleted: true,
  prepareCreate(draft, { store }) {
    draft['status'] = { phase: 'Pending' };
    const spec = recordAt(draft, 'spec');
    const chosen = spec['storageClassName'] === undefined ? defaultClass(store)?.metadata.name : undefined;
    draft['spec'] = {
      ...spec,
      ...(chosen === undefined ? {} : { storageClassName: chosen }),
      volumeMode: textAt(spec, 'volumeMode') || 'Filesystem',
    };
    addFinalizer(draft, CLAIM_PROTECTION);
  },
  validate(f, object) {
    const spec = recordAt(object, 'spec');
    checkAccess(f, spec);
    checkAmount(f, 'spec.resources[storage]', at(spec, 'resources', 'requests', 'storage'));
  },
  prepareUpdate(draft, old, world, subresource) {
    if (subresource === '') refuseGrowth(draft, old, world);
  },
  validateUpdate(f, object, old, _world, subresource) {
    if (subresource === '') checkClaimChange(f, object, old);
  },
};

/** Everything in the spec of a volume that is not its source. */
const NOT_SOURCES = new Set([
  'capacity',
  'accessModes',
  'claimRef',
  'persistentVolumeReclaimPolicy',
  'storageClassName',
  'mountOptions',
  'volumeMode',
  'nodeAffinity',
  'volumeAttributesClassName',
]);
const sourceOf = (spec: Json): Json => Object.fromEntries(Object.entries(spec).filter(([k]) => !NOT_SOURCES.has(k)));
/** References to secrets of a CSI source may be changed later. */
const fixedPart = (spec: Json): Json => {
  const source = sourceOf(spec);
  const csi = recordAt(source, 'csi');
  const kept = Object.fromEntries(Object.entries(csi).filter(([k]) => !k.endsWith('SecretRef')));
  return source['csi'] === undefined ? source : { ...source, csi: kept };
};

function checkVolume(f: Findings, object: ApiObject): void {
  const spec = recordAt(object, 'spec');
  checkAccess(f, spec);
  if (Object.keys(recordAt(spec, 'capacity')).length === 0) f.required('spec.capacity');
  else checkAmount(f, 'spec.capacity[storage]', at(spec, 'capacity', 'storage'));
  const sources = Object.keys(sourceOf(spec));
  if (sources.length === 0) f.required('spec', 'must specify a volume type');
  for (const extra of sources.slice(1)) f.forbidden(`spec.${extra}`, 'may not specify more than 1 volume type');
  if (spec['csi'] !== undefined)
    for (const field of ['driver', 'volumeHandle'])
      if (textAt(spec, 'csi', field) === '') f.required(`spec.csi.${field}`);
  if (spec['local'] !== undefined && at(spec, 'nodeAffinity', 'required') === undefined)
    f.required('metadata.annotations', 'Local volume requires node affinity');
}

export const volumeStrategy: Strategy = {
  returnsDeleted: true,
  prepareCreate(draft, { clock }) {
    draft['status'] = { phase: 'Pending', lastPhaseTransitionTime: apiTime(clock.now()) };
    const spec = recordAt(draft, 'spec');
    const reclaim = textAt(spec, 'persistentVolumeReclaimPolicy') || 'Retain';
    draft['spec'] = {
      ...spec,
      persistentVolumeReclaimPolicy: reclaim,
      volumeMode: textAt(spec, 'volumeMode') || 'Filesystem',
    };
    addFinalizer(draft, VOLUME_PROTECTION);
  },
  validate: checkVolume,
  prepareUpdate(draft, old, { clock }, subresource) {
    if (subresource !== 'status' || textAt(draft, 'status', 'phase') === textAt(old, 'status', 'phase')) return;
    draft['status'] = { ...recordAt(draft, 'status'), lastPhaseTransitionTime: apiTime(clock.now()) };
  },
  validateUpdate(f, object, old, _world, subresource) {
    if (subresource !== '') return;
    checkVolume(f, object);
    const [now, before] = [recordAt(object, 'spec'), recordAt(old, 'spec')];
    if (!sameJson(fixedPart(now), fixedPart(before)))
      f.forbidden('spec.persistentvolumesource', 'spec.persistentvolumesource is immutable after creation');
    if (!sameJson(now['volumeMode'], before['volumeMode']))
      f.invalid('spec.volumeMode', now['volumeMode'], 'field is immutable');
  },
};

export const storageClassStrategy: Strategy = {
  prepareCreate(draft) {
    draft['reclaimPolicy'] = textAt(draft, 'reclaimPolicy') || 'Delete';
    draft['volumeBindingMode'] = textAt(draft, 'volumeBindingMode') || 'Immediate';
  },
  validate(f, object) {
    if (textAt(object, 'provisioner') === '') f.required('provisioner');
    if (!['Delete', 'Retain'].includes(textAt(object, 'reclaimPolicy')))
      f.notSupported('reclaimPolicy', object['reclaimPolicy'], ['Delete', 'Retain']);
    if (!['Immediate', 'WaitForFirstConsumer'].includes(textAt(object, 'volumeBindingMode')))
      f.notSupported('volumeBindingMode', object['volumeBindingMode'], ['Immediate', 'WaitForFirstConsumer']);
  },
  validateUpdate(f, object, old) {
    for (const field of ['parameters', 'provisioner', 'reclaimPolicy'])
      if (!sameJson(object[field] ?? {}, old[field] ?? {})) f.forbidden(field, `updates to ${field} are forbidden.`);
    if (!sameJson(object['volumeBindingMode'], old['volumeBindingMode']))
      f.invalid('volumeBindingMode', object['volumeBindingMode'], 'field is immutable');
  },
};

const DRIVER_DEFAULTS: Json = {
  attachRequired: true,
  podInfoOnMount: false,
  volumeLifecycleModes: ['Persistent'],
  storageCapacity: false,
  fsGroupPolicy: 'ReadWriteOnceWithFSType',
  requiresRepublish: false,
  seLinuxMount: false,
};

export const csiDriverStrategy: Strategy = {
  prepareCreate(draft) {
    draft['spec'] = { ...DRIVER_DEFAULTS, ...recordAt(draft, 'spec') };
  },
  validateUpdate(f, object, old) {
    if (!sameJson(at(object, 'spec', 'attachRequired'), at(old, 'spec', 'attachRequired')))
      f.invalid('spec.attachRequired', at(object, 'spec', 'attachRequired'), 'field is immutable');
  },
};

function checkDrivers(f: Findings, object: ApiObject): void {
  const seen = new Set<string>();
  recordsAt(object, 'spec', 'drivers').forEach((driver, i) => {
    const name = textAt(driver, 'name');
    if (name === '') f.required(`spec.drivers[${i}].name`);
    if (textAt(driver, 'nodeID') === '') f.required(`spec.drivers[${i}].nodeID`);
    if (seen.has(name)) f.duplicate(`spec.drivers[${i}].name`, name);
    seen.add(name);
  });
}

export const csiNodeStrategy: Strategy = { validate: checkDrivers, validateUpdate: checkDrivers };

export const attachmentStrategy: Strategy = {
  returnsDeleted: true,
  prepareCreate(draft) {
    draft['status'] = { attached: false };
  },
  validate(f, object) {
    for (const field of ['attacher', 'nodeName']) if (textAt(object, 'spec', field) === '') f.required(`spec.${field}`);
    const { persistentVolumeName, inlineVolumeSpec } = recordAt(object, 'spec', 'source');
    if ((persistentVolumeName === undefined) === (inlineVolumeSpec === undefined))
      f.required('spec.source', 'must specify exactly one of inlineVolumeSpec and persistentVolumeName');
  },
  validateUpdate(f, object, old) {
    if (!sameJson(object['spec'], old['spec'])) f.invalid('spec', object['spec'], 'field is immutable');
  },
};
