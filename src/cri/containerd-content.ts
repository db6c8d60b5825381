// containerd's content store on the CRI socket: which layers are being downloaded, how far they are, and which image they
// belong to. Fails with `unimplemented` where the runtime is not containerd.
import { isFault } from '../lib/errors.ts';
import type { GrpcChannel, CallOptions } from '../lib/grpc/channel.ts';
import { Content, type ContentInfo } from './gen/containerd-content.ts';

export type Ingest = { readonly digest: string; readonly doneBytes: number; readonly totalBytes: number };
export type StoredManifest = {
  readonly digest: string;
  readonly repositories: readonly string[];
  readonly createdAtMs: number;
  readonly layers: readonly string[];
};
export type LayerSize = { readonly digest: string; readonly sizeBytes: number };

/** The CRI keeps all it makes in this containerd namespace. */
const NAMESPACE = { 'containerd-namespace': 'k8s.io' };
const DEADLINE_MS = 5000;
const SOURCE = 'containerd.io/distribution.source.';
const CONFIG = 'containerd.io/gc.ref.content.config';
const LAYER = 'containerd.io/gc.ref.content.l.';
/** Registries allow manifests of 4 MiB. */
const MAX_MANIFEST_BYTES = 4 * 1024 * 1024;

export class ContainerdContent {
  readonly #channel: GrpcChannel;

  constructor(channel: GrpcChannel) {
    this.#channel = channel;
  }

  /** Everything that is being downloaded. */
  async ingests(signal: AbortSignal): Promise<readonly Ingest[]> {
    const { statuses } = await this.#channel.unary(Content.listStatuses, { filters: [] }, options(signal));
    return statuses.flatMap(({ ref, expected, offset, total }) => {
      const digest = expected !== '' ? expected : digestIn(ref);
      return digest === undefined ? [] : [{ digest, doneBytes: offset, totalBytes: total }];
    });
  }

  /** The manifests of single-platform images that came from this registry (`docker.io`, `localhost:5000`). */
  async manifestsFrom(registry: string, signal: AbortSignal): Promise<readonly StoredManifest[]> {
    const found: StoredManifest[] = [];
    const source = SOURCE + hostOf(registry);
    const filters = [`labels.${JSON.stringify(source)},labels.${JSON.stringify(CONFIG)}`];
    await this.#channel.serverStream(Content.list, { filters }, options(signal), ({ info }) => {
      for (const one of info) found.push(manifestOf(one, source));
    });
    return found;
  }

  /** Undefined where the content is not a manifest after all. */
  async layersOf(digest: string, signal: AbortSignal): Promise<readonly LayerSize[] | undefined> {
    const parts: Uint8Array[] = [];
    const request = { digest, offset: 0, size: 0 };
    const limits = { ...options(signal), maxReceiveBytes: MAX_MANIFEST_BYTES };
    await this.#channel.serverStream(Content.read, request, limits, ({ data }) => parts.push(data));
    return readLayers(Buffer.concat(parts).toString());
  }

  async isPresent(digest: string, signal: AbortSignal): Promise<boolean> {
    try {
      return (await this.#channel.unary(Content.info, { digest }, options(signal))).info !== undefined;
    } catch (err) {
      if (isFault(err, 'notFound')) return false;
      throw err;
    }
  }
}

const options = (signal: AbortSignal): CallOptions => ({ signal, deadlineMs: DEADLINE_MS, metadata: NAMESPACE });

/** Labels name a registry without its port, and without the brackets of an IPv6 address. */
const hostOf = (registry: string): string => registry.replace(/:\d+$/, '').replace(/^\[(.*)\]$/, '$1');

const manifestOf = ({ digest, labels, createdAt }: ContentInfo, source: string): StoredManifest => ({
  digest,
  repositories: (labels[source] ?? '').split(','),
  createdAtMs: (createdAt?.seconds ?? 0) * 1000 + Math.floor((createdAt?.nanos ?? 0) / 1e6),
  layers: Object.entries(labels).flatMap(([name, value]) => (name.startsWith(LAYER) ? [value] : [])),
});

const ALGORITHM_CHARACTERS = 32;
const HEX_CHARACTERS = 128;

/** The digest at the end of an ingest's name: `layer-sha256:<hex>`, `manifest-sha256:<hex>`, `repo@sha256:<hex>`. */
export function digestIn(ref: string): string | undefined {
  const colon = ref.lastIndexOf(':');
  const [algorithm] = /[a-z0-9+]{1,32}$/.exec(ref.slice(Math.max(0, colon - ALGORITHM_CHARACTERS), colon)) ?? [];
  const hex = ref.slice(colon + 1, colon + 1 + HEX_CHARACTERS);
  return algorithm !== undefined && /^[0-9a-f]{32,}$/.test(hex) ? `${algorithm}:${hex}` : undefined;
}

/** The layers and the configuration of a manifest. */
export function readLayers(text: string): readonly LayerSize[] | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    // Not JSON: not a manifest.
    return undefined;
  }
  const { layers, config } = (parsed ?? {}) as { layers?: unknown; config?: unknown };
  if (!Array.isArray(layers)) return undefined;
  return [config, ...(layers as unknown[])].flatMap((layer) => {
    const { digest, size } = (layer ?? {}) as { digest?: unknown; size?: unknown };
    return typeof digest === 'string' && typeof size === 'number' && size >= 0 ? [{ digest, sizeBytes: size }] : [];
  });
}
