// Service account tokens on behalf of pods: for their volumes, and for credential providers that pull their images.
import type { KubeObject } from '../core/meta.ts';
import { CONFIG_SEEN, isStaticPod, namespaceOf, type Pod } from '../core/pod.ts';
import { parseTimeMs } from '../core/time.ts';
import type { FreshToken, TokenAsk } from './tokens.ts';

export type PodTokensDeps = {
  readonly tokens: { get(ask: TokenAsk, signal: AbortSignal): Promise<FreshToken> };
  readonly accounts: { get(namespace: string, name: string, signal: AbortSignal): Promise<KubeObject> };
};

/** Whom a credential provider may ask for on behalf of a pod. */
export type PodIdentity = {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  /** Asks for a token bound to the pod, for this audience. */
  token(audience: string, signal: AbortSignal): Promise<string>;
};

export class PodTokens {
  readonly #deps: PodTokensDeps;

  constructor(deps: PodTokensDeps) {
    this.#deps = deps;
  }

  /** An empty audience is the API server's own. */
  token(
    pod: Pod,
    { audience, expirationSeconds }: { readonly audience: string; readonly expirationSeconds?: number },
    signal: AbortSignal,
  ): Promise<FreshToken> {
    return this.#deps.tokens.get(
      {
        namespace: namespaceOf(pod),
        serviceAccount: pod.spec.serviceAccountName ?? 'default',
        audiences: audience === '' ? [] : [audience],
        ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
        pod: boundTo(pod),
        ...seenOf(pod),
      },
      signal,
    );
  }

  /** Undefined for pods without a service account, as static pods are. */
  async identityOf(pod: Pod, signal: AbortSignal): Promise<PodIdentity | undefined> {
    const { tokens, accounts } = this.#deps;
    const name = pod.spec.serviceAccountName ?? '';
    if (name === '' || isStaticPod(pod)) return undefined;
    const namespace = namespaceOf(pod);
    const { metadata } = await accounts.get(namespace, name, signal);
    const uid = metadata.uid ?? '';
    const ask = { namespace, serviceAccount: name, serviceAccountUid: uid, pod: boundTo(pod), ...seenOf(pod) };
    return {
      uid,
      namespace,
      name,
      annotations: metadata.annotations ?? {},
      token: async (audience, own) => (await tokens.get({ ...ask, audiences: [audience] }, own)).token,
    };
  }
}

const seenOf = ({ metadata }: Pod): { readonly seenMs?: number } => {
  const seen = metadata.annotations?.[CONFIG_SEEN];
  return seen === undefined ? {} : { seenMs: parseTimeMs(seen) };
};

const boundTo = ({ metadata }: Pod): { name: string; uid: string } => ({
  name: metadata.name,
  uid: metadata.uid ?? '',
});
