// What content plugins need from the rest of the agent.
import type { DownwardFacts } from '../../core/downward.ts';
import type { LabelSelector } from '../../core/meta.ts';
import type { ConfigMap, Secret } from '../../core/node.ts';
import type { Pod, PodCertificateProjection, ResourceList } from '../../core/pod.ts';
import { isFault } from '../../lib/errors.ts';

/** A missing object is a `notFound` fault with the API server's text (`configmap "n" not found`). */
export interface ObjectSource {
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap>;
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
}

export type TokenRequest = {
  /** Empty means the API server's own audience. */
  readonly audience: string;
  readonly expirationSeconds: number;
};
export type ServiceAccountToken = {
  readonly token: string;
  /** Wall time at which to ask for a newer one. */
  readonly refreshAtMs: number;
};
/** Gives tokens bound to a pod, from its cache while they are fresh. */
export interface TokenSource {
  token(pod: Pod, request: TokenRequest, signal: AbortSignal): Promise<ServiceAccountToken>;
}

export type TrustBundleQuery =
  | { readonly name: string; readonly optional: boolean }
  | { readonly signerName: string; readonly labelSelector?: LabelSelector; readonly optional: boolean };
/** PEM certificates of one bundle, or of all that match. */
export interface TrustBundleSource {
  certificates(query: TrustBundleQuery, signal: AbortSignal): Promise<string>;
}

/** Gives the key and the certificates of one source of a pod's volume, new ones once they are issued. */
export interface PodCertificateSource {
  credentials(
    ask: {
      readonly pod: Pod;
      readonly volume: string;
      readonly index: number;
      readonly source: PodCertificateProjection;
    },
    signal: AbortSignal,
  ): Promise<{ readonly keyPem: string; readonly chainPem: string; readonly refreshAtMs: number }>;
}

export interface PodFactSource {
  factsOf(pod: Pod): DownwardFacts;
  allocatable(): ResourceList;
}

/** The object, or undefined if it is missing and that is allowed. */
export async function getUnlessOptional<T>(get: Promise<T>, optional: boolean): Promise<T | undefined> {
  try {
    return await get;
  } catch (err) {
    if (optional && isFault(err, 'notFound')) return undefined;
    throw err;
  }
}
