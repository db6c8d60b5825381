// Reads everything a status report says about the node, from the parts that know it.
import { isIP } from 'node:net';
import type { NodeAddress, RuntimeHandlerStatus } from '../core/node.ts';
import type { ResourceList } from '../core/pod.ts';
import type { HostFacts } from '../host/host-facts.ts';
import type { Logger } from '../lib/logger.ts';
import { addressesOrNone, type AddressOptions, type HostNetwork } from './addresses.ts';
import type { Pressure } from './conditions.ts';
import { CSI_NOT_READY } from './csi-node.ts';
import type { RuntimeFeatures } from './declared-features.ts';
import type { Software } from './installed-software.ts';
import type { KnownNode } from './known-node.ts';
import type { NodeFacts, RuntimeFacts } from './node-object.ts';

/** How the runtime is. */
export type RuntimeState = {
  readonly runtimeErrors: readonly string[];
  readonly networkErrors: readonly string[];
  readonly handlers: readonly ({ readonly name: string } & NonNullable<RuntimeHandlerStatus['features']>)[];
  readonly features: RuntimeFeatures & { readonly supplementalGroupsPolicy: boolean };
};

export type NodeFactsDeps = {
  readonly known: Pick<KnownNode, 'get'>;
  readonly network: (signal: AbortSignal) => Promise<HostNetwork>;
  readonly resources: { capacityList(): ResourceList; allocatableList(): ResourceList };
  readonly health: { state(): RuntimeState };
  readonly images: { read(signal: AbortSignal): Promise<NonNullable<NodeFacts['images']>> };
  readonly software: { latest(signal: AbortSignal): Software };
  readonly csi: { readonly ready: boolean };
  /** What the node is short of, as conditions. */
  readonly pressures: () => readonly string[];
  readonly shuttingDown: () => boolean;
  /** `isAwaited`: something waits for the answer to the report of these names. */
  readonly volumesInUse: () => { readonly names: readonly string[]; readonly isAwaited: boolean };
  readonly log: Logger;
};

export type NodeFactsOptions = {
  readonly host: HostFacts;
  readonly addresses: AddressOptions;
  readonly runtime: Pick<RuntimeFacts, 'name'>;
  readonly declaredFeatures: (runtime: RuntimeFeatures) => readonly string[] | undefined;
};

export class NodeFactsReader {
  readonly #deps: NodeFactsDeps;
  readonly #o: NodeFactsOptions;
  #latest: NodeFacts | undefined;

  constructor(deps: NodeFactsDeps, options: NodeFactsOptions) {
    this.#deps = deps;
    this.#o = options;
  }

  /** As last read. */
  get latest(): NodeFacts | undefined {
    return this.#latest;
  }

  async read(signal: AbortSignal): Promise<NodeFacts> {
    const { resources, health, images, pressures, volumesInUse } = this.#deps;
    const { host, runtime, declaredFeatures } = this.#o;
    const network = await this.#deps.network(signal);
    const { runtimeVersion, osImage } = this.#deps.software.latest(signal);
    const state = health.state();
    const declared = declaredFeatures(state.features);
    const inUse = volumesInUse();
    this.#latest = {
      host: { ...host, osImage },
      capacity: resources.capacityList(),
      allocatable: resources.allocatableList(),
      ...this.#addresses(network),
      runtime: {
        name: runtime.name,
        version: runtimeVersion,
        handlers: state.handlers.map(({ name, ...features }) => ({ name, features })),
        supplementalGroupsPolicy: state.features.supplementalGroupsPolicy,
      },
      images: await images.read(signal),
      pressure: pressureOf(pressures()),
      notReady: notReadyReasons(state, this.#deps.csi.ready, this.#deps.shuttingDown()),
      volumesInUse: inUse.names,
      isAnswerAwaited: inUse.isAwaited,
      ...(declared === undefined ? {} : { declaredFeatures: declared }),
    };
    return this.#latest;
  }

  nodeIps(): readonly string[] {
    return hostIps(this.#latest?.addresses);
  }

  #addresses(network: HostNetwork): Pick<NodeFacts, 'addresses'> {
    const { known, log } = this.#deps;
    return addressesOrNone(
      (err) => log.error('the addresses of this node are not known', { err }),
      this.#o.addresses,
      network,
      known.get()?.status?.addresses ?? [],
    );
  }
}

/**
 * The addresses by which pods know their node: internal ones before external ones, and of several of one family the first.
 * The API server takes no status with more.
 */
export function hostIps(addresses: readonly NodeAddress[] = []): readonly string[] {
  const of = (type: string): readonly string[] =>
    addresses.filter((a) => a.type === type && isIP(a.address) !== 0).map((a) => a.address);
  const [first, ...rest] = [...of('InternalIP'), ...of('ExternalIP')];
  if (first === undefined) return [];
  const other = rest.find((ip) => isIP(ip) !== isIP(first));
  return other === undefined ? [first] : [first, other];
}

export const pressureOf = (shown: readonly string[]): Pressure => ({
  memory: shown.includes('MemoryPressure'),
  disk: shown.includes('DiskPressure'),
  pid: shown.includes('PIDPressure'),
});

/** Every reason against readiness, in upstream's order and words. */
export const notReadyReasons = (
  { runtimeErrors, networkErrors }: Pick<RuntimeState, 'runtimeErrors' | 'networkErrors'>,
  csiReady: boolean,
  shuttingDown: boolean,
): readonly string[] => [
  ...runtimeErrors,
  ...networkErrors,
  ...(csiReady ? [] : [CSI_NOT_READY]),
  ...(shuttingDown ? ['node is shutting down'] : []),
];
