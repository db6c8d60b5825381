// Certificates for nodes: requests that are what a kubelet asks for, by someone who may ask, are approved and signed.
import { apiTime } from '../../core/time.ts';
import { messageOf } from '../../lib/errors.ts';
import type { ExtendedUsage } from '../../lib/x509/certificate.ts';
import { readSigningRequest, type SigningRequest } from '../../lib/x509/csr.ts';
import { numberAt, recordAt, recordsAt, textAt, textsAt, type ApiObject, type Json } from '../api/objects.ts';
import type { ClusterPki } from '../api/pki/pki.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';

const STORAGE = 'certificates.k8s.io/certificatesigningrequests';
const CLIENT = 'kubernetes.io/kube-apiserver-client-kubelet';
const SERVING = 'kubernetes.io/kubelet-serving';
const DAY_SECONDS = 86_400;

type Decision = { readonly usage: ExtendedUsage; readonly request: SigningRequest } | { readonly refuse: string };

/** Whether a request is one for a node's certificate, and for which use. */
export function judge(csr: ApiObject): Decision {
  const spec = recordAt(csr, 'spec');
  let request: SigningRequest;
  try {
    request = readSigningRequest(Buffer.from(textAt(spec, 'request'), 'base64').toString());
  } catch (err) {
    return { refuse: messageOf(err) };
  }
  const signer = textAt(spec, 'signerName');
  const { commonName, organizations } = request.subject;
  const isNode = commonName.startsWith('system:node:') && organizations.join() === 'system:nodes';
  if (!isNode)
    return { refuse: 'subject organization is not system:nodes, or common name does not begin with system:node:' };
  const usages = new Set(textsAt(spec, 'usages'));
  const allowed = new Set(['digital signature', 'key encipherment', signer === CLIENT ? 'client auth' : 'server auth']);
  if ([...usages].some((u) => !allowed.has(u)) || !usages.has(signer === CLIENT ? 'client auth' : 'server auth'))
    return { refuse: 'usages did not match' };
  if (request.emailAddresses.length + request.uris.length > 0) return { refuse: 'email and URI names are not allowed' };
  const names = request.dnsNames.length + request.ipAddresses.length;
  if (signer === CLIENT) {
    const user = textAt(spec, 'username');
    const groups = textsAt(spec, 'groups');
    if (names > 0) return { refuse: 'a client certificate has no alternative names' };
    if (user !== commonName && !groups.includes('system:bootstrappers') && !groups.includes('system:masters'))
      return { refuse: `${user} may not ask for the certificate of ${commonName}` };
    return { usage: 'clientAuth', request };
  }
  if (names === 0) return { refuse: 'a serving certificate needs names' };
  return textAt(spec, 'username') === commonName
    ? { usage: 'serverAuth', request }
    : { refuse: 'a node asks only for itself' };
}

export class SigningRequestController implements Controller {
  readonly name = 'signing-requests';
  readonly #deps: ControllerDeps;
  readonly #pki: ClusterPki;

  constructor(deps: ControllerDeps, pki: ClusterPki) {
    this.#deps = deps;
    this.#pki = pki;
  }

  initialKeys(): readonly string[] {
    return this.#deps.registry.store.list(STORAGE).map((c) => c.key);
  }

  keysOf(change: Change): readonly string[] {
    return change.resource === STORAGE && change.type !== 'DELETED' ? [change.now.key] : [];
  }

  reconcile(name: string): void {
    const csr = this.#deps.registry.store.get(STORAGE, name)?.object as ApiObject | undefined;
    if (csr === undefined || textAt(csr, 'status', 'certificate') !== '') return;
    const signer = textAt(csr, 'spec', 'signerName');
    if (signer !== CLIENT && signer !== SERVING) return;
    const conditions = recordsAt(csr, 'status', 'conditions');
    const has = (type: string): boolean => conditions.some((c) => c['type'] === type);
    if (has('Denied') || has('Failed')) return;
    const decision = judge(csr);
    if (!has('Approved')) {
      // What does not look like a node's request waits for a person (`kubectl certificate approve`).
      if ('refuse' in decision) return;
      return this.#condition(name, 'approval', {
        type: 'Approved',
        status: 'True',
        reason: 'AutoApproved',
        message: 'Auto approving kubelet certificate after SubjectAccessReview.',
      });
    }
    if ('refuse' in decision)
      return this.#condition(name, 'status', {
        type: 'Failed',
        status: 'True',
        reason: 'SignerValidationFailure',
        message: decision.refuse,
      });
    this.#issue(name, csr, decision.request, decision.usage);
  }

  #condition(name: string, subresource: string, condition: Json): void {
    const now = apiTime(this.#deps.clock.now());
    this.#update(name, subresource, (status) => ({
      ...status,
      conditions: [...recordsAt(status, 'conditions'), { ...condition, lastUpdateTime: now, lastTransitionTime: now }],
    }));
  }

  #issue(name: string, csr: ApiObject, request: SigningRequest, usage: ExtendedUsage): void {
    const seconds = numberAt(csr, 'spec', 'expirationSeconds');
    const certificate = this.#pki.sign({
      ...request,
      usages: [usage],
      ...(seconds === undefined ? {} : { days: Math.max(seconds, 600) / DAY_SECONDS }),
    });
    this.#update(name, 'status', (status) => ({ ...status, certificate: Buffer.from(certificate).toString('base64') }));
  }

  #update(name: string, subresource: string, change: (status: Json) => Json): void {
    this.#deps.registry.modify(
      resourceNamed(STORAGE),
      '',
      name,
      (draft) => ({ ...draft, status: change(recordAt(draft, 'status')) }),
      systemContext(),
      subresource,
    );
  }
}
