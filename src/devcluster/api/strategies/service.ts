// Services: an address from the cluster's range, ports with defaults. Nothing here proxies traffic; the kubelet puts
// the addresses into environment variables.
import { childRecord, numberAt, recordsAt, textAt, type ApiObject, type Json } from '../objects.ts';
import type { Strategy, World } from '../strategy.ts';

const FIRST = [10, 96, 0, 0] as const;
const SIZE = 65_536;
const RESERVED = 16;

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
  return spec;
}

export const serviceStrategy: Strategy = {
  returnsDeleted: true,
  prepareCreate(draft, world) {
    const spec = defaults(draft);
    draft['status'] = { loadBalancer: {} };
    if (spec['type'] === 'ExternalName') return;
    const address = textAt(spec, 'clusterIP') || allocate(world);
    spec['clusterIP'] = address;
    spec['clusterIPs'] = [address];
  },
  prepareUpdate(draft, old, world) {
    const spec = defaults(draft);
    if (spec['type'] === 'ExternalName') return;
    const before = textAt(old, 'spec', 'clusterIP');
    spec['clusterIP'] = textAt(spec, 'clusterIP') || before || allocate(world);
    spec['clusterIPs'] = [spec['clusterIP']];
  },
  validate(f, object) {
    if (
      recordsAt(object, 'spec', 'ports').length === 0 &&
      textAt(object, 'spec', 'clusterIP') !== 'None' &&
      textAt(object, 'spec', 'type') !== 'ExternalName'
    )
      f.required('spec.ports');
  },
  validateUpdate(f, object, old) {
    const before = textAt(old, 'spec', 'clusterIP');
    const now = textAt(object, 'spec', 'clusterIP');
    if (before !== '' && now !== '' && before !== now)
      f.invalid('spec.clusterIPs[0]', [now], 'may not change once set');
  },
};
