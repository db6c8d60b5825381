// Kinds of volumes that Kubernetes once mounted itself and that CSI drivers serve since. A volume of such a kind is treated
// as the CSI volume its driver knows. Names, handles and attributes are what the drivers expect. Pure.
import type { NodeSelectorRequirement, NodeSelectorTerm, Volume } from '../core/pod.ts';
import type { CsiVolumeSource, PersistentVolume, PersistentVolumeSpec, SecretReference } from '../core/storage.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import { withoutEnd } from '../lib/text.ts';

type Source = Readonly<Record<string, unknown>>;
/** What a translation may look at beside the source. */
type TranslationContext = {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** Of the secrets that the source names without one. */
  readonly namespace: string;
};
type Topology = { readonly zone: string; readonly region?: string };
type Translated = Omit<CsiVolumeSource, 'driver'>;
type Migration = {
  readonly plugin: string;
  readonly driver: string;
  /** What the driver calls a zone, and perhaps a region, in a node's labels. */
  readonly topology?: Topology;
  readonly translate: (source: Source, context: TranslationContext) => Translated;
  /** Names the volume among all of the driver's, for a pod's own volume. */
  readonly inlineId: (source: Source, translated: Translated) => string;
  readonly inlineModes: (source: Source) => string;
  readonly accessModes?: (modes: readonly string[]) => readonly string[];
};

const text = (source: Source, key: string): string => {
  const value = source[key];
  return typeof value === 'string' ? value : '';
};
const number = (source: Source, key: string): number => {
  const value = source[key];
  return typeof value === 'number' ? value : 0;
};
const isReadOnly = (source: Source): boolean => source['readOnly'] === true;
const once = (): string => 'ReadWriteOnce';
const onceOrReaders = (source: Source): string => (isReadOnly(source) ? 'ReadOnlyMany' : 'ReadWriteOnce');
const byHandle = (_: Source, { volumeHandle }: Translated): string => volumeHandle;
const common = (source: Source): Pick<Translated, 'readOnly' | 'fsType'> => ({
  readOnly: isReadOnly(source),
  fsType: text(source, 'fsType'),
});

/** By the field of a persistent volume's spec or of a pod's volume. */
const MIGRATIONS: Readonly<Record<string, Migration>> = {
  awsElasticBlockStore: {
    plugin: 'kubernetes.io/aws-ebs',
    driver: 'ebs.csi.aws.com',
    topology: { zone: 'topology.ebs.csi.aws.com/zone' },
    translate: (source) => ({
      ...common(source),
      volumeHandle: ebsVolumeId(text(source, 'volumeID')),
      volumeAttributes: { partition: String(number(source, 'partition')) },
    }),
    inlineId: byHandle,
    inlineModes: once,
  },
  gcePersistentDisk: {
    plugin: 'kubernetes.io/gce-pd',
    driver: 'pd.csi.storage.gke.io',
    topology: { zone: 'topology.gke.io/zone' },
    translate: (source, { labels }) => ({
      ...common(source),
      volumeHandle: gceVolumeId(text(source, 'pdName'), labels),
      volumeAttributes: { partition: number(source, 'partition') === 0 ? '' : String(number(source, 'partition')) },
    }),
    inlineId: (source) => text(source, 'pdName'),
    inlineModes: onceOrReaders,
    // The old plugin attached whatever was asked for as ReadWriteOnce; the driver refuses combinations.
    accessModes: (modes) => [modes.length === 1 && modes[0] === 'ReadOnlyMany' ? 'ReadOnlyMany' : 'ReadWriteOnce'],
  },
  cinder: {
    plugin: 'kubernetes.io/cinder',
    driver: 'cinder.csi.openstack.org',
    topology: { zone: 'topology.cinder.csi.openstack.org/zone' },
    translate: (source) => ({ ...common(source), volumeHandle: text(source, 'volumeID'), volumeAttributes: {} }),
    inlineId: byHandle,
    inlineModes: once,
  },
  azureDisk: {
    plugin: 'kubernetes.io/azure-disk',
    driver: 'disk.csi.azure.com',
    translate: (source) => ({
      ...common(source),
      volumeHandle: text(source, 'diskURI'),
      volumeAttributes: {
        kind: managed(text(source, 'kind')),
        ...(text(source, 'cachingMode') === '' ? {} : { cachingmode: text(source, 'cachingMode') }),
        ...(text(source, 'fsType') === '' ? {} : { fstype: text(source, 'fsType') }),
      },
    }),
    inlineId: byHandle,
    inlineModes: once,
  },
  azureFile: {
    plugin: 'kubernetes.io/azure-file',
    driver: 'file.csi.azure.com',
    translate: azureFile,
    inlineId: byHandle,
    inlineModes: () => 'ReadWriteMany',
  },
  vsphereVolume: {
    plugin: 'kubernetes.io/vsphere-volume',
    driver: 'csi.vsphere.vmware.com',
    topology: { zone: 'topology.csi.vmware.com/zone', region: 'topology.csi.vmware.com/region' },
    translate: (source) => ({
      fsType: text(source, 'fsType'),
      volumeHandle: text(source, 'volumePath'),
      volumeAttributes:
        text(source, 'storagePolicyName') === '' ? {} : { storagepolicyname: text(source, 'storagePolicyName') },
    }),
    inlineId: byHandle,
    inlineModes: once,
  },
  portworxVolume: {
    plugin: 'kubernetes.io/portworx-volume',
    driver: 'pxd.portworx.com',
    translate: (source, { annotations }) => ({
      fsType: text(source, 'fsType'),
      volumeHandle: text(source, 'volumeID'),
      volumeAttributes: {},
      ...portworxSecrets(annotations),
    }),
    inlineId: byHandle,
    inlineModes: onceOrReaders,
  },
};

/** The fields of a pod's volume that have such a kind. */
export const MIGRATED_KINDS: ReadonlySet<string> = new Set(Object.keys(MIGRATIONS));

/** The kinds by the names that the annotation of a CSINode has them under. */
export const MIGRATED_PLUGINS: readonly string[] = Object.values(MIGRATIONS)
  .map(({ plugin }) => plugin)
  .sort();

/** The persistent volume as its CSI driver knows it; undefined if it is of no such kind. */
export function migratedPersistentVolume(volume: PersistentVolume): PersistentVolume | undefined {
  const found = migrationOf(volume.spec);
  if (found === undefined) return undefined;
  const { field, source, migration } = found;
  const { labels = {}, annotations = {}, name } = volume.metadata;
  const namespace = text(source, 'secretNamespace') || (volume.spec.claimRef?.namespace ?? '');
  const translated = translate(migration, source, { name, labels, annotations, namespace });
  const { [field]: _, accessModes, nodeAffinity, ...spec } = volume.spec;
  const affinity =
    migration.topology === undefined ? nodeAffinity : migratedAffinity(nodeAffinity, labels, migration.topology);
  return {
    ...volume,
    spec: {
      ...spec,
      ...(accessModes === undefined ? {} : { accessModes: migration.accessModes?.(accessModes) ?? accessModes }),
      ...(affinity === undefined ? {} : { nodeAffinity: affinity }),
      csi: { driver: migration.driver, ...translated },
    },
  };
}

/** A pod's own volume of such a kind, as a persistent volume that nobody claims; undefined if it is of no such kind. */
export function migratedPodVolume(volume: Volume, podNamespace: string): PersistentVolume | undefined {
  const found = migrationOf(volume);
  if (found === undefined) return undefined;
  const { source, migration } = found;
  const namespace = podNamespace === '' ? 'default' : podNamespace;
  const translated = translate(migration, source, { name: volume.name, labels: {}, annotations: {}, namespace });
  const id = migration.inlineId(source, translated);
  const name = NAMED_BY_ID.has(migration.driver) ? id : `${migration.driver}-${id}`;
  return {
    // The name of a directory, where some handles have slashes.
    metadata: { name: name.replaceAll('/', '~') },
    spec: {
      accessModes: [migration.inlineModes(source)],
      volumeMode: 'Filesystem',
      csi: { driver: migration.driver, ...translated },
    },
  };
}

function translate(migration: Migration, source: Source, context: TranslationContext): Translated {
  try {
    return migration.translate(source, context);
  } catch (err) {
    throw new KubeletError('invalid', `failed to translate in-tree pv to CSI: ${messageOf(err)}`, { cause: err });
  }
}

/** Their ids are not only numbers that others may have, too. */
const NAMED_BY_ID: ReadonlySet<string> = new Set(['file.csi.azure.com', 'disk.csi.azure.com']);

type Found = { readonly field: string; readonly source: Source; readonly migration: Migration };

function migrationOf(holder: Readonly<Record<string, unknown>>): Found | undefined {
  for (const [field, migration] of Object.entries(MIGRATIONS)) {
    const source = holder[field];
    if (typeof source === 'object' && source !== null) return { field, source: source as Source, migration };
  }
  return undefined;
}

/** `aws://zone/vol-1`, `aws:///vol-1` or the id itself. */
function ebsVolumeId(given: string): string {
  if (!given.startsWith('aws://')) return given;
  const id = withoutEnd(given.slice('aws://'.length).replace(/^[^/]*\/+/, ''), '/');
  if (!/^vol-[^/]*$/.test(id))
    throw new KubeletError(
      'invalid',
      `failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (${given})`,
    );
  return id;
}

const BETA_ZONE = 'failure-domain.beta.kubernetes.io/zone';
const BETA_REGION = 'failure-domain.beta.kubernetes.io/region';
const ZONE = 'topology.kubernetes.io/zone';
const REGION = 'topology.kubernetes.io/region';
/** Between the zones of a volume in several. */
const ZONE_SEPARATOR = '__';
const UNSPECIFIED = 'UNSPECIFIED';

function gceVolumeId(disk: string, labels: TranslationContext['labels']): string {
  const zones = (labels[BETA_ZONE] || labels[ZONE] || '').split(ZONE_SEPARATOR);
  const [zone = ''] = zones;
  if (zones.length === 1) return `projects/${UNSPECIFIED}/zones/${zone || UNSPECIFIED}/disks/${disk}`;
  const regions = new Set(zones.map(regionOfGceZone));
  if (regions.size !== 1)
    throw new KubeletError(
      'invalid',
      `failed to get region from zones: multiple or no regions gotten from zones, got: ${[...regions].join(' ')}`,
    );
  return `projects/${UNSPECIFIED}/regions/${[...regions].join('')}/disks/${disk}`;
}

function regionOfGceZone(zone: string): string {
  const parts = zone.split('-');
  if (parts.length !== 3)
    throw new KubeletError(
      'invalid',
      `failed to get region from zones: zone in unexpected format, expected: {locale}-{region}-{zone}, got: ${zone}`,
    );
  return `${parts[0]}-${parts[1]}`;
}

/** The only kind of Azure disk there is a driver for. */
function managed(kind: string): string {
  if (kind === '' || kind.toLowerCase() === 'managed') return 'Managed';
  throw new KubeletError('invalid', `kind(${kind}) is not supported in csi migration`);
}

function azureFile(source: Source, { name, annotations, namespace }: TranslationContext): Translated {
  if (namespace === '')
    throw new KubeletError('invalid', 'could not find a secret namespace in PersistentVolumeSource or ClaimRef');
  const secret = text(source, 'secretName');
  const share = text(source, 'shareName');
  const account = between(secret, 'azure-storage-account-', '-secret') ?? secret;
  const group = annotations['kubernetes.io/azure-file-resource-group'] ?? '';
  return {
    readOnly: isReadOnly(source),
    volumeHandle: [group, account, share, name, namespace].join('#'),
    volumeAttributes: { sharename: share },
    nodeStageSecretRef: { name: secret, namespace },
  };
}

/** What stands between the first `begin` and the last `end`, if that is anything. */
function between(whole: string, begin: string, end: string): string | undefined {
  const at = whole.indexOf(begin);
  const from = at + begin.length;
  const to = whole.lastIndexOf(end);
  return at < 0 || to <= from ? undefined : whole.slice(from, to);
}

function portworxSecrets(annotations: TranslationContext['annotations']): Partial<Translated> {
  const name = annotations['openstorage.io/auth-secret-name'];
  const namespace = annotations['openstorage.io/auth-secret-namespace'];
  if (name === undefined || namespace === undefined) return {};
  const secret: SecretReference = { name, namespace };
  return { nodeStageSecretRef: secret, nodePublishSecretRef: secret, nodeExpandSecretRef: secret };
}

type NodeAffinity = PersistentVolumeSpec['nodeAffinity'];

/** Zones by the driver's name for them: nodes have that label and may lack the old one. */
function migratedAffinity(
  affinity: NodeAffinity,
  labels: TranslationContext['labels'],
  { zone, region }: Topology,
): NodeAffinity {
  const keys = keysOf(affinity);
  const isBeta = !keys.includes(ZONE) && (keys.includes(BETA_ZONE) || isOnlyBeta(labels));
  const [zoneLabel, regionLabel] = isBeta ? [BETA_ZONE, BETA_REGION] : [ZONE, REGION];
  const zones = labels[zoneLabel] ?? '';
  if (region === undefined) {
    const zoned = renamedOrAdded(affinity, zoneLabel, zone, zones.split(ZONE_SEPARATOR));
    return isBeta ? renamed(zoned, BETA_REGION, REGION) : zoned;
  }
  const zoned = renamedOrAdded(affinity, zoneLabel, zone, [zones]);
  return renamedOrAdded(zoned, regionLabel, region, [labels[regionLabel] ?? '']);
}

const isOnlyBeta = (labels: TranslationContext['labels']): boolean => !(ZONE in labels) && BETA_ZONE in labels;

const keysOf = (affinity: NodeAffinity): string[] =>
  termsOf(affinity).flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key));

const termsOf = (affinity: NodeAffinity): readonly NodeSelectorTerm[] => affinity?.required?.nodeSelectorTerms ?? [];

/** What the affinity says under the old key it says under the new one; where it says nothing, the labels count. */
function renamedOrAdded(affinity: NodeAffinity, from: string, to: string, given: readonly string[]): NodeAffinity {
  if (keysOf(affinity).includes(from)) return renamed(affinity, from, to);
  const values = [...new Set(given.map((value) => value.trim()))].filter((value) => value !== '').sort();
  if (values.length === 0) return affinity;
  const terms = termsOf(affinity).length === 0 ? [{}] : termsOf(affinity);
  const more = { key: to, operator: 'In', values };
  return required(terms.map((term) => withExpressions(term, (list) => [...list, more])));
}

function renamed(affinity: NodeAffinity, from: string, to: string): NodeAffinity {
  if (!keysOf(affinity).includes(from)) return affinity;
  const rename = (requirement: NodeSelectorRequirement): NodeSelectorRequirement =>
    requirement.key === from ? { ...requirement, key: to } : requirement;
  return required(termsOf(affinity).map((term) => withExpressions(term, (list) => list.map(rename))));
}

const required = (nodeSelectorTerms: readonly NodeSelectorTerm[]): NodeAffinity => ({
  required: { nodeSelectorTerms },
});

const withExpressions = (
  term: NodeSelectorTerm,
  change: (list: readonly NodeSelectorRequirement[]) => NodeSelectorRequirement[],
): NodeSelectorTerm => ({ ...term, matchExpressions: change(term.matchExpressions ?? []) });
