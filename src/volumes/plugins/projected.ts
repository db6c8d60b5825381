// projected: files from several sources in one directory. A later source wins where two name the same path.
import { namespaceOf, type Pod, type ProjectedSource, type Volume } from '../../core/pod.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import type { PayloadFile } from '../atomic-writer.ts';
import type { FileBudget } from '../file-budget.ts';
import {
  configMapFiles,
  credentialFile,
  DEFAULT_MODE,
  downwardFiles,
  DownwardValues,
  secretFiles,
} from '../payload.ts';
import type { ObjectReference } from '../plugin.ts';
import {
  getUnlessOptional,
  type ObjectSource,
  type PodCertificateSource,
  type PodFactSource,
  type TokenSource,
  type TrustBundleSource,
} from './sources.ts';
import type { Content, ContentRequest, ContentSource } from './written-volume.ts';

export type ProjectedDeps = {
  readonly objects: ObjectSource;
  readonly facts: PodFactSource;
  /** Absent on a node without an API server. */
  readonly tokens?: TokenSource;
  /** Absent while the feature gate is off. */
  readonly trustBundles?: TrustBundleSource;
  /** Absent while the feature gate is off. */
  readonly podCertificates?: PodCertificateSource;
};

type PartFiles = ReadonlyMap<string, PayloadFile>;
type Part = { readonly files: PartFiles; readonly refreshAtMs?: number };

/** What all sources of a volume have in common. */
type Making = {
  readonly pod: Pod;
  readonly values: DownwardValues;
  readonly defaultMode: number;
  readonly budget: FileBudget;
};

const credential = ({ pod, defaultMode, budget }: Making, path: string, data: string): PartFiles =>
  new Map([[path, credentialFile(pod, { path, data }, defaultMode, budget)]]);

const DEFAULT_EXPIRATION_SECONDS = 3600;

export class ProjectedContent implements ContentSource {
  readonly name = 'kubernetes.io/projected';
  readonly medium = 'memory';
  readonly #deps: ProjectedDeps;

  constructor(deps: ProjectedDeps) {
    this.#deps = deps;
  }

  async collect({ pod, volume, progress, budget }: ContentRequest, signal: AbortSignal): Promise<Content> {
    const { sources = [], defaultMode = DEFAULT_MODE } = volume.projected ?? {};
    progress('waiting for its sources');
    const { facts } = this.#deps;
    const values = new DownwardValues(pod, facts.factsOf(pod), facts.allocatable());
    const making: Making = { pod, values, defaultMode, budget };
    // Bundles are made for each source: one at a time, so that the budget ends the rest.
    let bundles: Promise<unknown> = Promise.resolve();
    const parts = await Promise.allSettled(
      sources.map(async (source, index) => {
        budget.take(0, 'sources');
        if (source.clusterTrustBundle !== undefined) {
          const part = bundles.then(() => this.#part(making, source, signal));
          bundles = part.catch(() => undefined);
          return part;
        }
        if (source.podCertificate === undefined) return this.#part(making, source, signal);
        const ask = { pod, volume: volume.name, index, source: source.podCertificate };
        return this.#certificate(making, ask, signal);
      }),
    );
    const failed = parts.filter((part) => part.status === 'rejected').map((part): unknown => part.reason);
    if (failed.length > 0) throw combined(failed);
    const files = new Map<string, PayloadFile>();
    let refreshAtMs = Infinity;
    for (const part of parts) {
      if (part.status !== 'fulfilled') continue;
      for (const [path, file] of part.value.files) files.set(path, file);
      refreshAtMs = Math.min(refreshAtMs, part.value.refreshAtMs ?? Infinity);
    }
    return refreshAtMs === Infinity ? { files } : { files, refreshAtMs };
  }

  references(volume: Volume): readonly ObjectReference[] {
    const found: ObjectReference[] = [];
    for (const source of volume.projected?.sources ?? []) {
      if (source.configMap !== undefined) found.push({ kind: 'configMap', name: source.configMap.name ?? '' });
      if (source.secret !== undefined) found.push({ kind: 'secret', name: source.secret.name ?? '' });
      if (source.clusterTrustBundle !== undefined) found.push({ kind: 'trustBundles', name: '' });
      if (source.podCertificate !== undefined) found.push({ kind: 'podCertificates', name: '' });
    }
    return found;
  }

  async #part(making: Making, source: ProjectedSource, signal: AbortSignal): Promise<Part> {
    const { pod, values, defaultMode, budget } = making;
    const { objects } = this.#deps;
    const namespace = namespaceOf(pod);
    if (source.configMap !== undefined) {
      const { name = '', items, optional = false } = source.configMap;
      const object = await getUnlessOptional(objects.configMap(namespace, name, signal), optional);
      return { files: configMapFiles(object, { items, defaultMode, optional }, budget) };
    }
    if (source.secret !== undefined) {
      const { name = '', items, optional = false } = source.secret;
      const object = await getUnlessOptional(objects.secret(namespace, name, signal), optional);
      return { files: secretFiles(object, { items, defaultMode, optional }, budget) };
    }
    if (source.downwardAPI !== undefined) {
      const { items = [] } = source.downwardAPI;
      return { files: downwardFiles(values, items, defaultMode, budget) };
    }
    if (source.serviceAccountToken !== undefined) {
      return this.#token(making, source.serviceAccountToken, signal);
    }
    if (source.clusterTrustBundle !== undefined) {
      return this.#trustBundle(making, source.clusterTrustBundle, signal);
    }
    throw new KubeletError('unimplemented', `no way to project ${Object.keys(source).join(', ') || 'an empty source'}`);
  }

  async #token(
    making: Making,
    source: NonNullable<ProjectedSource['serviceAccountToken']>,
    signal: AbortSignal,
  ): Promise<Part> {
    if (this.#deps.tokens === undefined) {
      throw new KubeletError('unavailable', 'service account tokens need an API server');
    }
    const { audience = '', expirationSeconds = DEFAULT_EXPIRATION_SECONDS } = source;
    const { token, refreshAtMs } = await this.#deps.tokens.token(making.pod, { audience, expirationSeconds }, signal);
    return { files: credential(making, source.path, token), refreshAtMs };
  }

  async #trustBundle(
    making: Making,
    source: NonNullable<ProjectedSource['clusterTrustBundle']>,
    signal: AbortSignal,
  ): Promise<Part> {
    if (this.#deps.trustBundles === undefined) {
      throw new KubeletError('unavailable', 'ClusterTrustBundle projection is not supported in static kubelet mode');
    }
    making.budget.take(0, 'sources');
    const { name, signerName = '', labelSelector, optional = false } = source;
    const query =
      name !== undefined
        ? { name, optional }
        : { signerName, optional, ...(labelSelector === undefined ? {} : { labelSelector }) };
    const pem = await this.#deps.trustBundles.certificates(query, signal);
    return { files: credential(making, source.path, pem) };
  }

  async #certificate(
    making: Making,
    ask: Parameters<PodCertificateSource['credentials']>[0],
    signal: AbortSignal,
  ): Promise<Part> {
    if (this.#deps.podCertificates === undefined)
      throw new KubeletError('unimplemented', 'pod certificates need the feature gate PodCertificateRequest');
    const { credentialBundlePath, keyPath, certificateChainPath } = ask.source;
    const { keyPem, chainPem, refreshAtMs } = await this.#deps.podCertificates.credentials(ask, signal);
    const files: PartFiles[] = [];
    for (const [path = '', text] of [
      [credentialBundlePath, keyPem + chainPem],
      [keyPath, keyPem],
      [certificateChainPath, chainPem],
    ] as const)
      if (path !== '') files.push(credential(making, path, text));
    return { files: new Map(files.flatMap((some) => [...some])), refreshAtMs };
  }
}

const MAX_ERRORS = 10;

/** One error as itself, several as `[a, b]`, each text once. */
function combined(errors: readonly unknown[]): KubeletError {
  const all = [...new Set(errors.map(messageOf))];
  const more = all.length > MAX_ERRORS ? [`${all.length - MAX_ERRORS} more`] : [];
  const texts = [...all.slice(0, MAX_ERRORS), ...more];
  const [first] = errors;
  const kind = isFault(first) ? first.kind : 'internal';
  return new KubeletError(kind, texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`, { cause: first });
}
