// Services: an address from the cluster's range, ports with defaults, node ports where they are asked for.
import { childRecord, keyOf, numberAt, recordsAt, sameJson, textAt, type ApiObject, type Json } from '../objects.ts';
import type { RequestContext, Strategy, World } from '../strategy.ts';
import { checkService, NODE_PORTS, SERVICE_ADDRESSES, typeOf, usesNodePorts } from './service-checks.ts';

const { first: FIRST, size: SIZE, reserved: RESERVED } = SERVICE_ADDRESSES;
const addressOf = (index: number): string => `${FIRST[0]}.${FIRST[1]}.${index >> 8}.${index & 255}`;

/** A free address; the first few are for those who ask by name. */
function allocate(world: World): string {
  const used = new Set(world.store.list('services').map((s) => textAt(s.object, 'spec', 'clusterIP')));
  const start = RESERVED + Math.floor(world.clock.random() * (SIZE - RESERVED - 1));
  for (let i = 0; i < SIZE; i++) {
    const index = RESERVED + ((start - RESERVED + i) % (SIZE - RESERVED - 1));
    if (!used.has(addressOf(index))) return addressOf(index);
  }
  return addressOf(start);
}

function defaultPorts(spec: Json): void {
  const ports = recordsAt(spec, 'ports');
  if (ports.length === 0) return;
  spec['ports'] = ports.map((p) => ({
    ...p,
    protocol: textAt(p, 'protocol') || 'TCP',
    targetPort: p['targetPort'] ?? numberAt(p, 'port') ?? 0,
  }));
}

/** Ports that have none get a free one. */
function allocateNodePorts(spec: Json, world: World): void {
  if (!usesNodePorts({ spec }) || spec['allocateLoadBalancerNodePorts'] === false) return;
  const all = world.store.list('services').flatMap((s) => recordsAt(s.object, 'spec', 'ports'));
  const used = new Set(all.map((p) => numberAt(p, 'nodePort')));
  spec['ports'] = recordsAt(spec, 'ports').map((port) => {
    if ((numberAt(port, 'nodePort') ?? 0) > 0) return port;
    const start = Math.floor(world.clock.random() * NODE_PORTS.count);
    for (let i = 0; i < NODE_PORTS.count; i++) {
      const nodePort = NODE_PORTS.first + ((start + i) % NODE_PORTS.count);
      if (used.has(nodePort)) continue;
      used.add(nodePort);
      return { ...port, nodePort };
    }
    return port;
  });
}

/** What a service of this kind cannot do here. */
function warn(spec: Json, context: RequestContext): void {
  const { type } = spec;
  if (type === 'LoadBalancer')
    context.warnings.push('this cluster has no load balancers: the service gets no external IP; use its node port');
  if (type === 'ExternalName')
    context.warnings.push(
      "names of ExternalName services are answered with a CNAME only, which most programs' resolvers do not follow",
    );
  if (spec['sessionAffinity'] === 'ClientIP') context.warnings.push('session affinity has no effect in this cluster');
}

function defaults(draft: ApiObject): Json {
  const spec = childRecord(draft, 'spec');
  spec['type'] = textAt(spec, 'type') || 'ClusterIP';
  spec['sessionAffinity'] = textAt(spec, 'sessionAffinity') || 'None';
  defaultPorts(spec);
  if (spec['type'] !== 'ExternalName') {
    spec['internalTrafficPolicy'] ??= 'Cluster';
    spec['ipFamilyPolicy'] ??= 'SingleStack';
    spec['ipFamilies'] ??= ['IPv4'];
  }
  if (usesNodePorts(draft)) spec['externalTrafficPolicy'] = textAt(spec, 'externalTrafficPolicy') || 'Cluster';
  if (spec['type'] === 'LoadBalancer') spec['allocateLoadBalancerNodePorts'] ??= true;
  return spec;
}

/** Of the type it had before, what it was given and what nobody changed: it means nothing to the new type. */
function dropOfOldType(spec: Json, old: ApiObject): void {
  const before = old['spec'] as Json;
  const drop = (...fields: readonly string[]): void => {
    for (const field of fields) if (sameJson(spec[field], before[field])) delete spec[field];
  };
  if (spec['type'] === 'ExternalName' && typeOf(old) !== 'ExternalName')
    drop('clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy');
  if (!usesNodePorts({ spec }) && usesNodePorts(old)) {
    const given = (ports: Json): unknown => recordsAt(ports, 'ports').map((port) => port['nodePort']);
    if (sameJson(given(spec), given(before)))
      spec['ports'] = recordsAt(spec, 'ports').map(({ nodePort: _nodePort, ...port }) => port);
    drop('externalTrafficPolicy');
  }
  if (spec['type'] !== 'LoadBalancer') drop('allocateLoadBalancerNodePorts');
}

/** A replacement that leaves out node ports keeps those that its ports, by their names, had. */
function keepNodePorts(spec: Json, old: ApiObject): void {
  if (!usesNodePorts({ spec }) || !usesNodePorts(old)) return;
  const before = new Map(recordsAt(old, 'spec', 'ports').map((p) => [textAt(p, 'name'), numberAt(p, 'nodePort')]));
  const used = new Set(recordsAt(spec, 'ports').map((p) => numberAt(p, 'nodePort')));
  spec['ports'] = recordsAt(spec, 'ports').map((port) => {
    const nodePort = before.get(textAt(port, 'name'));
    if ((numberAt(port, 'nodePort') ?? 0) > 0 || nodePort === undefined || used.has(nodePort)) return port;
    return { ...port, nodePort };
  });
}

const othersOf = (service: ApiObject, world: World): readonly Json[] =>
  world.store
    .list('services')
    .filter((stored) => stored.key !== keyOf(service.metadata.namespace, service.metadata.name))
    .map((stored) => stored.object);

export const serviceStrategy: Strategy = {
  returnsDeleted: true,
  prepareCreate(draft, world, context) {
    const spec = defaults(draft);
    draft['status'] = { loadBalancer: {} };
    warn(spec, context);
    allocateNodePorts(spec, world);
    if (spec['type'] === 'ExternalName') return;
    const address = textAt(spec, 'clusterIP') || allocate(world);
    spec['clusterIP'] = address;
    spec['clusterIPs'] = [address];
  },
  prepareUpdate(draft, old, world) {
    const spec = childRecord(draft, 'spec');
    spec['type'] = textAt(spec, 'type') || 'ClusterIP';
    dropOfOldType(spec, old);
    defaults(draft);
    if (spec['type'] === 'ExternalName') return;
    keepNodePorts(spec, old);
    allocateNodePorts(spec, world);
    const before = textAt(old, 'spec', 'clusterIP');
    spec['clusterIP'] = textAt(spec, 'clusterIP') || before || allocate(world);
    spec['clusterIPs'] = [spec['clusterIP']];
  },
  validate(f, object, world) {
    checkService(f, object, undefined, othersOf(object, world));
  },
  validateUpdate(f, object, old, world, subresource) {
    if (subresource !== '') return;
    checkService(f, object, old, othersOf(object, world));
    const before = textAt(old, 'spec', 'clusterIP');
    const now = textAt(object, 'spec', 'clusterIP');
    if (before !== '' && now !== '' && before !== now)
      f.invalid('spec.clusterIPs[0]', [now], 'may not change once set');
  },
};
