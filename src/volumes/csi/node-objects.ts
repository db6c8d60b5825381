// What the Node and CSINode objects say about registered drivers. Pure: from an object and a change to what is written.
import type { KubeObject } from '../../core/meta.ts';
import type { Node } from '../../core/node.ts';
import type { CsiNode } from '../../kube/resources.ts';
import type { NodeGetInfoResponse } from '../../lib/csi-api/gen/csi.ts';
import { KubeletError } from '../../lib/errors.ts';

const NODE_ID = 'csi.volume.kubernetes.io/nodeid';
const MAX_COUNT = 2 ** 31 - 1;

export type DriverOnNode = Pick<NodeGetInfoResponse, 'nodeId' | 'maxVolumesPerNode'> & {
  readonly topology: Readonly<Record<string, string>>;
};

type Meta = {
  annotations?: Record<string, string | null>;
  labels?: Record<string, string>;
};
export type NodePatch = { readonly metadata: Meta };

/** The patch that makes a node say that the driver is there; undefined when it does already. */
export function nodeWithDriver(node: Node, driver: string, on: DriverOnNode): NodePatch | undefined {
  const metadata: Meta = {};
  const text = idsText({ ...idsOf(node), [driver]: on.nodeId });
  if (node.metadata.annotations?.[NODE_ID] !== text) metadata.annotations = { [NODE_ID]: text };
  const labels: Record<string, string> = {};
  for (const [key, value] of Object.entries(on.topology)) {
    const existing = node.metadata.labels?.[key];
    if (existing === value) continue;
    if (existing !== undefined)
      throw new KubeletError(
        'conflict',
        `detected topology value collision: driver reported "${key}":"${value}" but existing label is "${key}":"${existing}"`,
      );
    labels[key] = value;
  }
  if (Object.keys(labels).length > 0) metadata.labels = labels;
  return Object.keys(metadata).length === 0 ? undefined : { metadata };
}

/** The patch that makes a node forget the driver. Labels stay: somebody may have been scheduled by them. */
export function nodeWithoutDriver(node: Node, driver: string): NodePatch | undefined {
  const ids = idsOf(node);
  if (!Object.hasOwn(ids, driver)) return undefined;
  const { [driver]: _gone, ...rest } = ids;
  return { metadata: { annotations: { [NODE_ID]: Object.keys(rest).length === 0 ? null : idsText(rest) } } };
}

function idsOf({ metadata }: KubeObject): Record<string, string> {
  try {
    const ids: unknown = JSON.parse(metadata.annotations?.[NODE_ID] ?? '{}');
    return typeof ids === 'object' && ids !== null ? (ids as Record<string, string>) : {};
  } catch {
    // Nobody but kubelets writes it; what cannot be read is written anew.
    return {};
  }
}

const idsText = (ids: Readonly<Record<string, string>>): string =>
  JSON.stringify(Object.fromEntries(Object.entries(ids).sort(([a], [b]) => (a < b ? -1 : 1))));

type DriverEntry = NonNullable<CsiNode['spec']['drivers']>[number];

function entryOf(driver: string, on: DriverOnNode): DriverEntry {
  const keys = Object.keys(on.topology).sort();
  return {
    name: driver,
    nodeID: on.nodeId,
    topologyKeys: keys.length === 0 ? null : keys,
    ...(on.maxVolumesPerNode > 0 ? { allocatable: { count: Math.min(on.maxVolumesPerNode, MAX_COUNT) } } : {}),
  };
}

/** The object with the driver last in its list; undefined when it says the same already. */
export function csiNodeWithDriver(object: CsiNode, driver: string, on: DriverOnNode): CsiNode | undefined {
  const entry = entryOf(driver, on);
  const drivers = object.spec.drivers ?? [];
  const known = drivers.find(({ name }) => name === driver);
  if (known !== undefined && isSameEntry(known, entry)) return undefined;
  return { ...object, spec: { ...object.spec, drivers: [...drivers.filter(({ name }) => name !== driver), entry] } };
}

const isSameEntry = (a: DriverEntry, b: DriverEntry): boolean =>
  a.nodeID === b.nodeID &&
  (a.allocatable?.count ?? 0) === (b.allocatable?.count ?? 0) &&
  (a.topologyKeys ?? []).join() === (b.topologyKeys ?? []).join();

export function csiNodeWithoutDriver(object: CsiNode, driver: string): CsiNode | undefined {
  const drivers = object.spec.drivers ?? [];
  if (!drivers.some(({ name }) => name === driver)) return undefined;
  const others = drivers.filter(({ name }) => name !== driver);
  return { ...object, spec: { ...object.spec, drivers: others.length === 0 ? null : others } };
}

/** An object of a node that had our name before us says nothing about us. */
export const isOwnedBy = (object: CsiNode, node: Node): boolean =>
  object.metadata.ownerReferences?.some(
    ({ kind, name, uid }) => kind === 'Node' && name === node.metadata.name && uid === node.metadata.uid,
  ) === true;

/** Goes with its node. */
export const newCsiNode = ({ metadata: { name, uid = '' } }: Node): CsiNode => ({
  kind: 'CSINode',
  apiVersion: 'storage.k8s.io/v1',
  metadata: { name, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid }] },
  spec: { drivers: null },
});
