// projected: files from several sources in one directory. A later source wins where two name the same path.
import { namespaceOf, type Pod, type ProjectedSource, type Volume } from '../../core/pod.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import type { PayloadFile } from '../atomic-writer.ts';
import { configMapFiles, credentialFile, DEFAULT_MODE, downwardFiles, secretFiles } from '../payload.ts';
import type { ObjectReference } from '../plugin.ts';
import {
  getUnlessOptional,
  type ObjectSource,
  type PodCertificateSource,
  type PodFactSource,
  type TokenSource,
  type TrustBundleSource,
} from './sources.ts';
import type { Content, ContentSource } from './written-volume.ts';

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

type Part = { readonly files: ReadonlyMap<string, PayloadFile>; readonly refreshAtMs?: number };

const DEFAULT_EXPIRATION_SECONDS = 3600;

export class ProjectedContent implements ContentSource {
  readonly name = 'kubernetes.io/projected';
  readonly medium = 'memory';
  readonly #deps: ProjectedDeps;

  constructor(deps: ProjectedDeps) {
    this.#deps = deps;
  }

  async collect(pod: Pod, volume: Volume, progress: (doing: string) => void, signal: AbortSignal): Promise<Content> {
    const { sources = [], defaultMode = DEFAULT_MODE } = volume.projected ?? {};
    progress('waiting for its sources');
    const parts = await Promise.allSettled(
      sources.map((source, index) => {
        if (source.podCertificate === undefined) return this.#part(pod, source, defaultMode, signal);
        const ask = { pod, volume: volume.name, index, source: source.podCertificate };
        return this.#certificate(ask, defaultMode, signal);
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

  async #part(pod: Pod, source: ProjectedSource, defaultMode: number, signal: AbortSignal): Promise<Part> {
    const { objects, facts } = this.#deps;
    const namespace = namespaceOf(pod);
    if (source.configMap !== undefined) {
      const { name = '', items, optional = false } = source.configMap;
      const object = await getUnlessOptional(objects.configMap(namespace, name, signal), optional);
      return { files: configMapFiles(object, { items, defaultMode, optional }) };
    }
    if (source.secret !== undefined) {
      const { name = '', items, optional = false } = source.secret;
      const object = await getUnlessOptional(objects.secret(namespace, name, signal), optional);
      return { files: secretFiles(object, { items, defaultMode, optional }) };
    }
    if (source.downwardAPI !== undefined) {
      const { items = [] } = source.downwardAPI;
      return { files: downwardFiles(pod, items, defaultMode, facts.factsOf(pod), facts.allocatable()) };
    }
    if (source.serviceAccountToken !== undefined) {
      return this.#token(pod, source.serviceAccountToken, defaultMode, signal);
    }
    if (source.clusterTrustBundle !== undefined) {
      return this.#trustBundle(pod, source.clusterTrustBundle, defaultMode, signal);
    }
    throw new KubeletError('unimplemented', `no way to project ${Object.keys(source).join(', ') || 'an empty source'}`);
  }

  async #token(
    pod: Pod,
    source: NonNullable<ProjectedSource['serviceAccountToken']>,
    defaultMode: number,
    signal: AbortSignal,
  ): Promise<Part> {
    if (this.#deps.tokens === undefined) {
      throw new KubeletError('unavailable', 'service account tokens need an API server');
    }
    const { audience = '', expirationSeconds = DEFAULT_EXPIRATION_SECONDS } = source;
    const { token, refreshAtMs } = await this.#deps.tokens.token(pod, { audience, expirationSeconds }, signal);
    return { files: new Map([[source.path, credentialFile(pod, token, defaultMode)]]), refreshAtMs };
  }

  async #trustBundle(
    pod: Pod,
    source: NonNullable<ProjectedSource['clusterTrustBundle']>,
    defaultMode: number,
    signal: AbortSignal,
  ): Promise<Part> {
    if (this.#deps.trustBundles === undefined) {
      throw new KubeletError('unavailable', 'ClusterTrustBundle projection is not supported in static kubelet mode');
    }
    const { name, signerName = '', labelSelector, optional = false } = source;
    const query =
      name !== undefined
        ? { name, optional }
        : { signerName, optional, ...(labelSelector === undefined ? {} : { labelSelector }) };
    const pem = await this.#deps.trustBundles.certificates(query, signal);
    return { files: new Map([[source.path, credentialFile(pod, pem, defaultMode)]]) };
  }

  async #certificate(
    ask: Parameters<PodCertificateSource['credentials']>[0],
    defaultMode: number,
    signal: AbortSignal,
  ): Promise<Part> {
    if (this.#deps.podCertificates === undefined)
      throw new KubeletError('unimplemented', 'pod certificates need the feature gate PodCertificateRequest');
    const { credentialBundlePath, keyPath, certificateChainPath } = ask.source;
    const { keyPem, chainPem, refreshAtMs } = await this.#deps.podCertificates.credentials(ask, signal);
    const files = new Map<string, PayloadFile>();
    for (const [path = '', text] of [
      [credentialBundlePath, keyPem + chainPem],
      [keyPath, keyPem],
      [certificateChainPath, chainPem],
    ] as const)
      if (path !== '') files.set(path, credentialFile(ask.pod, text, defaultMode));
    return { files, refreshAtMs };
  }
}

/** One error as itself, several as `[a, b]`, each text once. */
function combined(errors: readonly unknown[]): KubeletError {
  const texts = [...new Set(errors.map(messageOf))];
  const [first] = errors;
  const kind = isFault(first) ? first.kind : 'internal';
  return new KubeletError(kind, texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`, { cause: first });
}
