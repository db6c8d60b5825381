// Certificates for pods: a key is made here and never leaves the node's memory but into the pod's volume; a signer in the
// cluster answers the request for its certificate. Renewed when the signer said so; the old one stays until the new one is
// there. Nothing survives a restart: every pod gets a new certificate then.
import type { EventRecorder } from '../core/events.ts';
import type { KubeObject } from '../core/meta.ts';
import { namespaceOf, uidOf, type Pod, type PodCertificateProjection } from '../core/pod.ts';
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Labels } from '../lib/metrics.ts';
import type { Runnable } from '../lib/supervise.ts';
import { stubRequest } from './certificate-stub.ts';
import {
  answer,
  needsAsking,
  shownState,
  withoutRequest,
  type Asked,
  type CertificateState,
} from './certificate-state.ts';
import { Reflector, type ListWatchClient } from './reflector.ts';
import { POD_CERTIFICATE_REQUESTS, type PodCertificateRequest, type Resource, type Where } from './resources.ts';

export type PodCertificatesDeps = {
  readonly client: ListWatchClient & {
    create<T>(resource: Resource<T>, where: Where, body: object, signal: AbortSignal): Promise<T>;
  };
  readonly accounts: { get(namespace: string, name: string, signal: AbortSignal): Promise<KubeObject> };
  /** Of this node's object, once that is known. */
  readonly nodeUid: () => string | undefined;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  /** The credentials of this pod are others now, or it is known that there will be none. */
  readonly onChange: (uid: string) => void;
};

/** One source of one projected volume. */
export type CertificateAsk = {
  readonly pod: Pod;
  readonly volume: string;
  readonly index: number;
  readonly source: PodCertificateProjection;
};
export type PodCredentials = { readonly keyPem: string; readonly chainPem: string; readonly refreshAtMs: number };

type Entry = {
  readonly ask: CertificateAsk;
  state: CertificateState;
  readonly reported: Set<string>;
  waiter?: PromiseWithResolvers<void>;
};

/** Signers are quick as a rule: a pod that starts waits this long before people hear of it. */
const WAIT_MS = 10_000;
const LOOK_AGAIN_MS = 60_000;

export class PodCertificates implements Runnable {
  readonly name = 'pod-certificates';
  readonly #deps: PodCertificatesDeps;
  readonly #nodeName: string;
  readonly #requests: Reflector<PodCertificateRequest>;
  readonly #entries = new Map<string, Entry>();
  readonly #wanted = Promise.withResolvers<void>();

  constructor(deps: PodCertificatesDeps, options: { nodeName: string }) {
    this.#deps = deps;
    this.#nodeName = options.nodeName;
    this.#requests = new Reflector<PodCertificateRequest>(deps, {
      name: 'pod-certificate-watch',
      resource: POD_CERTIFICATE_REQUESTS,
      fieldSelector: `spec.nodeName=${options.nodeName}`,
    });
  }

  /** Watches from the first pod on that asks. */
  async run(signal: AbortSignal): Promise<void> {
    const end = this.#requests.subscribe((changes) => {
      for (const { before, after } of changes) this.#heard(after ?? before, after === undefined);
    });
    await abortable(signal, this.#wanted.promise).catch(() => undefined);
    await this.#requests.run(signal);
    end();
  }

  /** Key and chain as they are now. Rejects while there are none, and for good when the signer says no. */
  async credentials(ask: CertificateAsk, signal: AbortSignal): Promise<PodCredentials> {
    this.#wanted.resolve();
    const key = `${uidOf(ask.pod)}/${ask.volume}/${ask.index}`;
    const entry = this.#entries.get(key) ?? { ask, state: { is: 'none' }, reported: new Set<string>() };
    this.#entries.set(key, entry);
    this.#settle(entry);
    if (needsAsking(entry.state, this.#deps.clock.now())) await this.#ask(entry, signal);
    if (entry.state.is === 'waiting') await this.#waitFor(entry, signal);
    return this.#credentialsIn(entry);
  }

  forgetPod(uid: string): void {
    for (const [key, entry] of this.#entries) if (uidOf(entry.ask.pod) === uid) this.#entries.delete(key);
  }

  /** How many sources are in which state, by signer. */
  *counts(): Iterable<readonly [Labels, number]> {
    const counts = new Map<string, number>();
    for (const { ask, state } of this.#entries.values()) {
      const key = JSON.stringify([ask.source.signerName, shownState(state, this.#deps.clock.now())]);
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    for (const [key, count] of counts) {
      const [signer_name, state] = JSON.parse(key) as [string, string];
      yield [{ signer_name, state }, count];
    }
  }

  #heard(request: PodCertificateRequest | undefined, isGone: boolean): void {
    for (const entry of this.#entries.values()) {
      if (request === undefined || uidOf(entry.ask.pod) !== request.spec.podUID) continue;
      const before = entry.state;
      if (isGone) entry.state = withoutRequest(entry.state, request.metadata.name);
      else this.#settle(entry);
      if (entry.state === before) continue;
      if (entry.waiter === undefined) this.#deps.onChange(request.spec.podUID);
      else entry.waiter.resolve();
    }
  }

  /** Takes over what the signer answered since. */
  #settle(entry: Entry): void {
    const { clock, events } = this.#deps;
    const { state, ask } = entry;
    const asked = state.is === 'waiting' ? state.asked : state.is === 'issued' ? state.next : undefined;
    if (asked === undefined) return;
    const request = this.#requests.store.byName(namespaceOf(ask.pod), asked.name);
    entry.state = answer(state, asked, request, clock.now(), clock.random());
    if (entry.state.is === 'issued' && entry.state !== state) entry.reported.clear();
    if (entry.state.is !== 'refused') return;
    const { how, reason, message } = entry.state;
    const text = `PodCertificateRequest ${namespaceOf(ask.pod)}/${asked.name} ${how === 'denied' ? 'was denied' : 'failed'}`;
    const why = `reason=${JSON.stringify(reason)}, message=${JSON.stringify(message)}`;
    events.pod(ask.pod, 'Warning', how === 'denied' ? 'Denied' : 'Failed', `${text}, ${why}`);
  }

  async #ask(entry: Entry, signal: AbortSignal): Promise<void> {
    try {
      const next = await this.#request(entry.ask, signal);
      const { state } = entry;
      entry.state = state.is === 'issued' ? { ...state, next } : { is: 'waiting', asked: next };
    } catch (err) {
      // A pod that has a certificate goes on with it.
      if (entry.state.is !== 'issued' || signal.aborted) throw err;
      const { pod, source } = entry.ask;
      const fields = { namespace: namespaceOf(pod), pod: pod.metadata.name, signer: source.signerName, err };
      this.#deps.log.warn('could not ask for a new pod certificate', fields);
    }
    this.#settle(entry);
  }

  async #request({ pod, source }: CertificateAsk, signal: AbortSignal): Promise<Asked> {
    const { client, accounts, clock } = this.#deps;
    const namespace = namespaceOf(pod);
    const { name, uid = '' } = pod.metadata;
    const serviceAccountName = pod.spec.serviceAccountName ?? '';
    const account = await accounts.get(namespace, serviceAccountName, signal).catch((err: unknown) => {
      throw new KubeletError('unavailable', `while fetching service account: ${messageOf(err)}`, { cause: err });
    });
    const nodeUID = this.#deps.nodeUid();
    if (nodeUID === undefined) throw new KubeletError('unavailable', 'this node is not known to the API server yet');
    const { keyPem, stub } = await stubRequest(source.keyType);
    const body = {
      apiVersion: 'certificates.k8s.io/v1beta1',
      kind: 'PodCertificateRequest',
      metadata: {
        namespace,
        generateName: 'req-',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name, uid }],
      },
      spec: {
        signerName: source.signerName,
        podName: name,
        podUID: uid,
        serviceAccountName,
        serviceAccountUID: account.metadata.uid ?? '',
        nodeName: this.#nodeName,
        nodeUID,
        ...(source.maxExpirationSeconds === undefined ? {} : { maxExpirationSeconds: source.maxExpirationSeconds }),
        stubPKCS10Request: stub.toString('base64'),
        ...(source.userAnnotations === undefined ? {} : { unverifiedUserAnnotations: source.userAnnotations }),
      },
    };
    const made = await client.create(POD_CERTIFICATE_REQUESTS, { namespace }, body, signal);
    return { name: made.metadata.name, keyPem, askedMs: clock.now() };
  }

  async #waitFor(entry: Entry, signal: AbortSignal): Promise<void> {
    const { promise } = (entry.waiter = Promise.withResolvers<void>());
    try {
      const { clock } = this.#deps;
      await withDeadline(clock, signal, WAIT_MS, (stop) => abortable(stop, promise));
    } catch {
      signal.throwIfAborted(); // else it is told below that there is nothing yet
    } finally {
      delete entry.waiter;
    }
  }

  #credentialsIn({ state, ask, reported }: Entry): PodCredentials {
    const { clock, events } = this.#deps;
    const now = clock.now();
    if (state.is === 'refused') {
      const why = `reason=${JSON.stringify(state.reason)} message=${JSON.stringify(state.message)}`;
      throw new KubeletError('denied', `PodCertificateRequest was permanently ${state.how}: ${why}`);
    }
    if (state.is !== 'issued') {
      const request = state.is === 'waiting' ? ` (PodCertificateRequest ${state.asked.name})` : '';
      throw new KubeletError('unavailable', `credential bundle is not issued yet${request}`);
    }
    const tell = (reason: string, message: string): void => {
      if (!reported.has(reason)) events.pod(ask.pod, 'Warning', reason, message);
      reported.add(reason);
    };
    const shown = shownState(state, now);
    if (shown === 'overdue_for_refresh') tell('CertificateOverdueForRefresh', 'PodCertificate refresh overdue');
    if (shown === 'expired') tell('CertificateExpired', 'PodCertificate expired');
    const { keyPem, chainPem, refreshAtMs } = state.issued;
    return { keyPem, chainPem, refreshAtMs: now < refreshAtMs ? refreshAtMs : now + LOOK_AGAIN_MS };
  }
}
