// What the server offers: versions, groups, resources. In the classic form and, for newer clients, aggregated.
import type { IncomingMessage } from 'node:http';
import type { Json } from './objects.ts';
import { groupVersions, RESOURCES, apiVersionOf, type ResourceType } from './resources.ts';

/** Served by no store: metrics of nodes and pods come from the kubelet. */
export const METRICS_GROUP = { group: 'metrics.k8s.io', version: 'v1beta1' };
const METRICS_RESOURCES: readonly Json[] = [
  { name: 'nodes', singularName: '', namespaced: false, kind: 'NodeMetrics', verbs: ['get', 'list'] },
  { name: 'pods', singularName: '', namespaced: true, kind: 'PodMetrics', verbs: ['get', 'list'] },
];

export const VERSION = {
  major: '1',
  minor: '36',
  gitVersion: 'v1.36.4',
  gitCommit: '',
  gitTreeState: 'clean',
  buildDate: '1970-01-01T00:00:00Z',
  goVersion: '',
  compiler: 'node',
  platform: `linux/${process.arch === 'arm64' ? 'arm64' : 'amd64'}`,
};

export const apiVersions = (address: string): Json => ({
  kind: 'APIVersions',
  versions: ['v1'],
  serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: address }],
});

type Group = { readonly group: string; readonly versions: readonly string[] };

/** Versions of a group in the order of the table, the preferred one first. */
const groups = (): Group[] => {
  const found = new Map<string, string[]>();
  for (const { group, version } of [...groupVersions(), METRICS_GROUP])
    if (group !== '') found.set(group, [...(found.get(group) ?? []), version]);
  return [...found].map(([group, versions]) => ({ group, versions }));
};

const groupDocument = ({ group, versions }: Group): Json => {
  const documents = versions.map((version) => ({ groupVersion: `${group}/${version}`, version }));
  return { name: group, versions: documents, preferredVersion: documents[0] };
};

export const apiGroupList = (): Json => ({
  kind: 'APIGroupList',
  apiVersion: 'v1',
  groups: groups().map(groupDocument),
});

export function apiGroup(name: string): Json | undefined {
  const found = groups().find((g) => g.group === name);
  return found === undefined ? undefined : { kind: 'APIGroup', apiVersion: 'v1', ...groupDocument(found) };
}

export function apiResourceList(group: string, version: string): Json | undefined {
  const rows = RESOURCES.filter((r) => r.group === group && r.version === version);
  const isMetrics = group === METRICS_GROUP.group && version === METRICS_GROUP.version;
  if (rows.length === 0 && !isMetrics) return undefined;
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: apiVersionOf({ group, version }),
    resources: isMetrics ? METRICS_RESOURCES : rows.flatMap(resourceDocuments),
  };
}

function resourceDocuments(type: ResourceType): Json[] {
  const main: Json = {
    name: type.resource,
    singularName: type.singular,
    namespaced: type.namespaced,
    kind: type.kind,
    verbs: type.verbs,
    ...(type.shortNames.length > 0 ? { shortNames: type.shortNames } : {}),
    ...(type.categories.length > 0 ? { categories: type.categories } : {}),
    storageVersionHash: '',
  };
  const subs = type.subresources.map((sub) => ({
    name: `${type.resource}/${sub.name}`,
    singularName: '',
    namespaced: type.namespaced,
    ...(sub.group === undefined ? {} : { group: sub.group, version: sub.version }),
    kind: sub.kind,
    verbs: sub.verbs,
  }));
  return [main, ...subs];
}

const AGGREGATED = /application\/json;g=apidiscovery\.k8s\.io;v=(v2(?:beta1)?);as=APIGroupDiscoveryList/;

/** The version of the aggregated form the client prefers, if it wants it. */
export function aggregatedVersion(request: IncomingMessage): string | undefined {
  return AGGREGATED.exec((request.headers.accept ?? '').replaceAll(' ', ''))?.[1];
}

export function aggregatedDiscovery(version: string, root: 'api' | 'apis'): Json {
  const chosen = root === 'api' ? [{ group: '', versions: ['v1'] }] : groups();
  return {
    kind: 'APIGroupDiscoveryList',
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: chosen.map(({ group, versions }) => ({
      metadata: { name: group, creationTimestamp: null },
      versions: versions.map((v) => ({
        version: v,
        freshness: 'Current',
        resources: aggregatedResources(group, v),
      })),
    })),
  };
}

function aggregatedResources(group: string, version: string): Json[] {
  if (group === METRICS_GROUP.group)
    return METRICS_RESOURCES.map((r) => ({
      resource: r['name'],
      responseKind: { group, version, kind: r['kind'] },
      scope: r['namespaced'] === true ? 'Namespaced' : 'Cluster',
      singularResource: '',
      verbs: r['verbs'],
    }));
  return RESOURCES.filter((r) => r.group === group && r.version === version).map((type) => ({
    resource: type.resource,
    responseKind: { group, version, kind: type.kind },
    scope: type.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: type.singular,
    verbs: type.verbs,
    ...(type.shortNames.length > 0 ? { shortNames: type.shortNames } : {}),
    ...(type.categories.length > 0 ? { categories: type.categories } : {}),
    ...(type.subresources.length === 0
      ? {}
      : {
          subresources: type.subresources.map((sub) => ({
            subresource: sub.name,
            responseKind: { group: sub.group ?? group, version: sub.version ?? version, kind: sub.kind },
            verbs: sub.verbs,
          })),
        }),
  }));
}
