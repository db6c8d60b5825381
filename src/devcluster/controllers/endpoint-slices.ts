// Writes down which pods are behind a service: as endpoint slices, and as endpoints for older clients.
import { deleteObject } from '../api/deletion.ts';
import { at, keyOf, sameJson, textAt, type ApiObject, type Json } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import { isReady, selectorOf, selects, subsetsOf, type EndpointPort, type Subset } from '../services/endpoints.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { ownerReference } from './workload.ts';
import { templateHash } from './workload-pods.ts';

const SLICES = 'discovery.k8s.io/endpointslices';
const SERVICE_NAME = 'kubernetes.io/service-name';
const MANAGED_BY = 'endpointslice.kubernetes.io/managed-by';
const US = 'endpointslice-controller.k8s.io';

export class EndpointSliceController implements Controller {
  readonly name = 'endpoint-slices';
  readonly #deps: ControllerDeps;

  constructor(deps: ControllerDeps) {
    this.#deps = deps;
  }

  initialKeys(): readonly string[] {
    return this.#deps.registry.store.list('services').map((stored) => stored.key);
  }

  keysOf(change: Change): readonly string[] {
    if (change.resource === 'services') return [change.now.key];
    if (change.resource !== 'pods') return [];
    const { namespace, labels } = change.now.object.metadata;
    const before = change.before?.object.metadata.labels;
    return this.#deps.registry.store
      .list('services', namespace)
      .filter(({ object }) => {
        const selector = selectorOf(object);
        return selector !== undefined && (selects(selector, labels) || selects(selector, before ?? {}));
      })
      .map((stored) => stored.key);
  }

  reconcile(key: string): void {
    const { registry } = this.#deps;
    const service = registry.store.get('services', key)?.object as ApiObject | undefined;
    if (service === undefined) {
      const [namespace = '', name = ''] = key.split('/');
      if (registry.store.get('endpoints', key) !== undefined)
        deleteObject(registry, resourceNamed('endpoints'), namespace, name, {}, systemContext());
      return;
    }
    if (selectorOf(service) === undefined || service.metadata.deletionTimestamp !== undefined) return;
    const pods = registry.store.list('pods', service.metadata.namespace).map((p) => p.object as ApiObject);
    const found = subsetsOf(service, pods);
    const subsets = found.length > 0 ? found : [{ ports: [], pods: [] }];
    const names = new Set(subsets.map((subset) => this.#writeSlice(service, subset)));
    for (const { object } of registry.store.list(SLICES, service.metadata.namespace)) {
      const { name, namespace = '', labels = {} } = object.metadata;
      if (labels[SERVICE_NAME] !== service.metadata.name || labels[MANAGED_BY] !== US || names.has(name)) continue;
      deleteObject(registry, resourceNamed(SLICES), namespace, name, {}, systemContext());
    }
    this.#write('endpoints', service, service.metadata.name, {
      metadata: { name: service.metadata.name, labels: { ...service.metadata.labels } },
      subsets: found.map((subset) => subsetBody(service, subset)),
    });
  }

  #writeSlice(service: ApiObject, subset: Subset): string {
    const name = `${service.metadata.name}-${templateHash({ ports: subset.ports }).slice(0, 5)}`;
    this.#write(SLICES, service, name, {
      metadata: {
        name,
        labels: { ...service.metadata.labels, [SERVICE_NAME]: service.metadata.name, [MANAGED_BY]: US },
        ownerReferences: [ownerReference(service)],
      },
      addressType: 'IPv4',
      endpoints: subset.pods.map((pod) => endpointBody(service, pod)),
      ports: subset.ports,
    });
    return name;
  }

  /** Makes it, or gives it these contents. */
  #write(storage: string, service: ApiObject, name: string, body: Json): void {
    const { registry } = this.#deps;
    const { namespace = '' } = service.metadata;
    const type = resourceNamed(storage);
    const found = registry.store.get(storage, keyOf(namespace, name))?.object;
    if (found === undefined) {
      registry.create(type, namespace, body, systemContext());
      return;
    }
    const { metadata: _metadata, ...rest } = body;
    if (Object.entries(rest).every(([field, value]) => sameJson(found[field] ?? [], value))) return;
    registry.modify(type, namespace, name, (draft) => ({ ...draft, ...rest }), systemContext());
  }
}

const unreadyToo = (service: Json): boolean => at(service, 'spec', 'publishNotReadyAddresses') === true;
const isOut = (pod: ApiObject): boolean => pod.metadata.deletionTimestamp !== undefined;

const referenceTo = ({ metadata }: ApiObject): Json => ({
  kind: 'Pod',
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
});

/** Known by its host name where it has one in this service's domain. */
function hostnameOf(service: ApiObject, pod: ApiObject): Json {
  const hostname = textAt(pod, 'spec', 'hostname');
  return hostname !== '' && textAt(pod, 'spec', 'subdomain') === service.metadata.name ? { hostname } : {};
}

function endpointBody(service: ApiObject, pod: ApiObject): Json {
  const ready = unreadyToo(service) || (isReady(pod) && !isOut(pod));
  return {
    addresses: [textAt(pod, 'status', 'podIP')],
    conditions: { ready, serving: unreadyToo(service) || isReady(pod), terminating: isOut(pod) },
    ...hostnameOf(service, pod),
    targetRef: referenceTo(pod),
    nodeName: textAt(pod, 'spec', 'nodeName'),
  };
}

function subsetBody(service: ApiObject, { ports, pods }: Subset): Json {
  const staying = pods.filter((pod) => !isOut(pod));
  const isIn = (pod: ApiObject): boolean => unreadyToo(service) || isReady(pod);
  const address = (pod: ApiObject): Json => ({
    ip: textAt(pod, 'status', 'podIP'),
    ...hostnameOf(service, pod),
    nodeName: textAt(pod, 'spec', 'nodeName'),
    targetRef: referenceTo(pod),
  });
  const [ready, rest] = [staying.filter(isIn), staying.filter((pod) => !isIn(pod))];
  return {
    ...(ready.length === 0 ? {} : { addresses: ready.map(address) }),
    ...(rest.length === 0 ? {} : { notReadyAddresses: rest.map(address) }),
    ports: ports.map(portBody),
  };
}

const portBody = ({ name, ...rest }: EndpointPort): Json => ({ ...(name === '' ? {} : { name }), ...rest });
