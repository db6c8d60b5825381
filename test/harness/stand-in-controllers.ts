// What a bare kube-apiserver lacks and a node counts on: every namespace's default service account and CA, the right of
// bootstrap tokens to ask for certificates, and somebody who approves and signs what nodes ask for.
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { isFault } from '../../src/lib/errors.ts';
import { apiTime } from '../../src/core/time.ts';
import type { KubeObject } from '../../src/core/meta.ts';
import type { ApiObject } from '../../src/devcluster/api/objects.ts';
import type { ClusterPki } from '../../src/devcluster/api/pki/pki.ts';
import { judge } from '../../src/devcluster/controllers/signing-requests.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import {
  CONFIG_MAPS,
  SERVICE_ACCOUNTS,
  SIGNING_REQUESTS,
  type CertificateSigningRequest,
  type Resource,
} from '../../src/kube/resources.ts';

const NAMESPACES: Resource<KubeObject> = { base: '/api/v1', plural: 'namespaces' };
const BINDINGS: Resource<KubeObject> = { base: '/apis/rbac.authorization.k8s.io/v1', plural: 'clusterrolebindings' };
const NODE_SIGNERS = ['kubernetes.io/kube-apiserver-client-kubelet', 'kubernetes.io/kubelet-serving'];
const DAY_SECONDS = 86_400;

export class StandInControllers {
  readonly #client: KubeClient;
  readonly #pki: ClusterPki;
  /** Off beside a controller manager, which signs what is approved here. */
  readonly #signs: boolean;
  readonly #stop = new AbortController();
  readonly #running: Promise<void>[] = [];

  constructor(client: KubeClient, pki: ClusterPki, options: { readonly signs: boolean }) {
    this.#client = client;
    this.#pki = pki;
    this.#signs = options.signs;
  }

  /** Resolves when the namespaces that exist have what pods need. */
  async start(): Promise<void> {
    const { signal } = this.#stop;
    await this.#ensure(BINDINGS, undefined, {
      metadata: { name: 'kts:node-bootstrappers' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'system:node-bootstrapper' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'system:bootstrappers' }],
    });
    const { items } = await this.#client.list(NAMESPACES, {}, signal);
    for (const { metadata } of items) await this.#furnish(metadata.name);
    this.#follow<KubeObject>('namespaces', NAMESPACES, (namespace) => this.#furnish(namespace.metadata.name));
    this.#follow<CertificateSigningRequest>('signing-requests', SIGNING_REQUESTS, (csr) => this.#attend(csr));
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.allSettled(this.#running);
  }

  #follow<T extends KubeObject>(name: string, resource: Resource<T>, act: (object: T) => Promise<void>): void {
    const reflector = new Reflector<T>(
      { client: this.#client, clock: systemClock, log: silentLogger },
      { name, resource, scout: true },
    );
    reflector.subscribe((changes) => {
      for (const { after } of changes)
        // A failure is met again with the object's next change; what waits for the result says what is missing.
        if (after !== undefined) void act(after).catch(() => undefined);
    });
    this.#running.push(reflector.run(this.#stop.signal));
  }

  async #furnish(namespace: string): Promise<void> {
    await this.#ensure(SERVICE_ACCOUNTS, namespace, { metadata: { name: 'default', namespace } });
    await this.#ensure(CONFIG_MAPS, namespace, {
      metadata: { name: 'kube-root-ca.crt', namespace },
      data: { 'ca.crt': this.#pki.caPem },
    });
  }

  async #ensure(resource: Resource<unknown>, namespace: string | undefined, body: object): Promise<void> {
    try {
      await this.#client.create(resource, namespace === undefined ? {} : { namespace }, body, this.#stop.signal);
    } catch (err) {
      if (!isFault(err, 'exists', 'conflict')) throw err;
    }
  }

  async #attend(csr: CertificateSigningRequest): Promise<void> {
    const conditions = csr.status?.conditions ?? [];
    if (!NODE_SIGNERS.includes(csr.spec.signerName) || (csr.status?.certificate ?? '') !== '') return;
    const decision = judge(csr as unknown as ApiObject);
    if ('refuse' in decision) return;
    const { name } = csr.metadata;
    const approved = conditions.some((c) => c.type === 'Approved');
    if (!approved) {
      const now = apiTime(systemClock.now());
      const approval = { type: 'Approved', status: 'True', reason: 'AutoApproved', message: 'A node of the test.' };
      const status = { conditions: [...conditions, { ...approval, lastUpdateTime: now, lastTransitionTime: now }] };
      await this.#client.replace(
        SIGNING_REQUESTS,
        { name, subresource: 'approval' },
        { ...csr, status },
        this.#stop.signal,
      );
    } else if (this.#signs) {
      const seconds = csr.spec.expirationSeconds;
      const certificate = this.#pki.sign({
        ...decision.request,
        usages: [decision.usage],
        ...(seconds === undefined ? {} : { days: seconds / DAY_SECONDS }),
      });
      const status = { ...csr.status, certificate: Buffer.from(certificate).toString('base64') };
      await this.#client.replace(
        SIGNING_REQUESTS,
        { name, subresource: 'status' },
        { ...csr, status },
        this.#stop.signal,
      );
    }
  }
}
