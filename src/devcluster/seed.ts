// What a cluster has from its first moment: system namespaces, the API's own service, priority classes, roles. Runs on
// every start and makes only what is missing.
import { bootstrapClusterRoleBindings, bootstrapClusterRoles } from './api/auth/bootstrap-roles.ts';
import { deleteObject } from './api/deletion.ts';
import { at, keyOf, sameJson, textAt, type Json } from './api/objects.ts';
import type { Registry } from './api/registry.ts';
import { resourceNamed } from './api/resources.ts';
import { DEFAULT_CLASS } from './api/strategies/storage.ts';
import type { RequestContext } from './api/strategy.ts';

export const systemContext = (): RequestContext => ({
  user: { name: 'system:apiserver', groups: ['system:masters'] },
  dryRun: false,
  fieldValidation: 'Ignore',
  warnings: [],
});

export const SYSTEM_NAMESPACES: readonly string[] = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];
export const KUBERNETES_SERVICE = 'default/kubernetes';
const RBAC = 'rbac.authorization.k8s.io';

export type ServiceAddress = { readonly ip: string; readonly port: number };

/** `service` is the address pods know the API by, `targetPort` and `endpoint` are where it listens for them. */
export function seedCluster(
  registry: Registry,
  caPem: string,
  service: ServiceAddress,
  { targetPort, endpoint }: { readonly targetPort: number; readonly endpoint: string | undefined },
): void {
  const ensure = (storage: string, namespace: string, body: Json): void => {
    const name = textAt(body, 'metadata', 'name');
    if (registry.store.get(storage, keyOf(namespace, name)) === undefined)
      registry.create(resourceNamed(storage), namespace, body, systemContext());
  };
  for (const name of SYSTEM_NAMESPACES) {
    ensure('namespaces', '', { metadata: { name } });
    ensureNamespaceContent(registry, name, caPem);
  }
  for (const role of bootstrapClusterRoles()) ensure(`${RBAC}/clusterroles`, '', role);
  for (const binding of bootstrapClusterRoleBindings()) ensure(`${RBAC}/clusterrolebindings`, '', binding);
  for (const [name, value] of [
    ['system-node-critical', 2_000_001_000],
    ['system-cluster-critical', 2_000_000_000],
  ] as const)
    ensure('scheduling.k8s.io/priorityclasses', '', { metadata: { name }, value });
  seedService(registry, service, targetPort);
  if (endpoint !== undefined) seedEndpoints(registry, endpoint, targetPort);
}

function seedService(registry: Registry, service: ServiceAddress, targetPort: number): void {
  const type = resourceNamed('services');
  const spec = { clusterIP: service.ip, ports: [{ name: 'https', port: service.port, protocol: 'TCP', targetPort }] };
  const known = registry.store.get('services', KUBERNETES_SERVICE)?.object;
  if (known !== undefined) {
    const isSame =
      textAt(known, 'spec', 'clusterIP') === service.ip && sameJson(at(known, 'spec', 'ports'), spec.ports);
    if (isSame) return;
    deleteObject(registry, type, 'default', 'kubernetes', {}, systemContext());
  }
  const labels = { component: 'apiserver', provider: 'kubernetes' };
  registry.create(type, 'default', { metadata: { name: 'kubernetes', labels }, spec }, systemContext());
}

/** The service has no selector: the server itself says where it is. */
function seedEndpoints(registry: Registry, ip: string, port: number): void {
  const ports = [{ name: 'https', port, protocol: 'TCP' }];
  const write = (storage: string, metadata: Json, content: Json): void => {
    const type = resourceNamed(storage);
    const found = registry.store.get(storage, KUBERNETES_SERVICE)?.object;
    if (found === undefined) registry.create(type, 'default', { metadata, ...content }, systemContext());
    else if (!Object.entries(content).every(([field, value]) => sameJson(found[field], value)))
      registry.modify(type, 'default', 'kubernetes', (draft) => ({ ...draft, ...content }), systemContext());
  };
  write('endpoints', { name: 'kubernetes' }, { subsets: [{ addresses: [{ ip }], ports }] });
  write(
    'discovery.k8s.io/endpointslices',
    { name: 'kubernetes', labels: { 'kubernetes.io/service-name': 'kubernetes' } },
    { addressType: 'IPv4', endpoints: [{ addresses: [ip], conditions: { ready: true } }], ports },
  );
}

/** The storage class claims get when they name none, and what the kubelet needs to know of its driver. */
export function seedStorage(registry: Registry, driver: string): void {
  const ensure = (storage: string, body: Json): void => {
    if (registry.store.get(storage, textAt(body, 'metadata', 'name')) === undefined)
      registry.create(resourceNamed(storage), '', body, systemContext());
  };
  ensure('storage.k8s.io/csidrivers', {
    metadata: { name: driver },
    spec: {
      attachRequired: true,
      podInfoOnMount: true,
      fsGroupPolicy: 'File',
      volumeLifecycleModes: ['Persistent', 'Ephemeral'],
    },
  });
  ensure('storage.k8s.io/storageclasses', {
    metadata: { name: 'standard', annotations: { [DEFAULT_CLASS]: 'true' } },
    provisioner: driver,
    allowVolumeExpansion: true,
    parameters: { 'csi.storage.k8s.io/fstype': 'ext4' },
  });
}

/** The default service account and the CA every pod gets to see. */
export function ensureNamespaceContent(registry: Registry, namespace: string, caPem: string): void {
  const key = (name: string): string => keyOf(namespace, name);
  if (registry.store.get('serviceaccounts', key('default')) === undefined)
    registry.create(resourceNamed('serviceaccounts'), namespace, { metadata: { name: 'default' } }, systemContext());
  const wanted = { 'ca.crt': caPem };
  const found = registry.store.get('configmaps', key('kube-root-ca.crt'));
  const type = resourceNamed('configmaps');
  if (found === undefined)
    registry.create(type, namespace, { metadata: { name: 'kube-root-ca.crt' }, data: wanted }, systemContext());
  else if (textAt(found.object, 'data', 'ca.crt') !== caPem)
    registry.modify(type, namespace, 'kube-root-ca.crt', (draft) => ({ ...draft, data: wanted }), systemContext());
}
