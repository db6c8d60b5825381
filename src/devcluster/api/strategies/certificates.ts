// Certificates for pods: bundles of trust anchors, and requests of kubelets on behalf of pods.
import { X509Certificate } from 'node:crypto';
import { dns1123Subdomain, signerName } from '../../../core/names.ts';
import type { Findings } from '../../../core/validation/field-error.ts';
import { isFault } from '../../../lib/errors.ts';
import { readSigningRequest } from '../../../lib/x509/csr.ts';
import { pem } from '../../../lib/x509/der.ts';
import { numberAt, recordAt, recordsAt, sameJson, textAt, type ApiObject } from '../objects.ts';
import type { Strategy } from '../strategy.ts';

const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----[^]*?-----END \1-----/g;
const OMITTED = '<value omitted>';
const MAX_BUNDLE_BYTES = 1024 * 1024;

/** A bundle of a signer carries the signer in its name, so that nobody else's can be mistaken for it. */
function checkBundleName(f: Findings, name: string, signer: string): void {
  const field = 'metadata.name';
  if (signer === '') {
    if (name.includes(':'))
      f.invalid(field, name, 'ClusterTrustBundle without signer name must not have ":" in its name');
    else f.reasons(field, name, dns1123Subdomain(name));
    return;
  }
  const prefix = `${signer.replaceAll('/', ':')}:`;
  if (!name.startsWith(prefix))
    f.invalid(field, name, `ClusterTrustBundle for signerName ${signer} must be named with prefix ${prefix}`);
  else f.reasons(field, name, dns1123Subdomain(name.slice(prefix.length)));
}

function checkAnchors(f: Findings, text: string): void {
  const field = 'spec.trustBundle';
  if (text.length > MAX_BUNDLE_BYTES)
    return f.invalid(field, OMITTED, `may not be more than ${MAX_BUNDLE_BYTES} bytes`);
  const seen = new Set<string>();
  const problems: string[] = [];
  [...text.matchAll(PEM_BLOCK)].forEach(([block, type = ''], i) => {
    if (type !== 'CERTIFICATE') return void problems.push(`entry ${i} has bad block type: ${type}`);
    const certificate = anchorIn(block);
    if (certificate === undefined) return void problems.push(`entry ${i} does not parse as X.509`);
    if (!certificate.ca) return void problems.push(`entry ${i} does not have the CA bit set`);
    if (seen.has(certificate.fingerprint256)) problems.push(`duplicate trust anchor (index ${i})`);
    seen.add(certificate.fingerprint256);
  });
  if (problems.length === 0 && seen.size === 0) problems.push('at least one trust anchor must be provided');
  for (const problem of problems) f.invalid(field, OMITTED, problem);
}

function anchorIn(block: string): X509Certificate | undefined {
  try {
    return new X509Certificate(block);
  } catch {
    return undefined; // told to the caller in the server's words
  }
}

function checkBundle(f: Findings, bundle: ApiObject): void {
  const signer = textAt(bundle, 'spec', 'signerName');
  checkBundleName(f, bundle.metadata.name, signer);
  if (signer !== '') f.reasons('spec.signerName', signer, signerName(signer));
}

export const trustBundleStrategy: Strategy = {
  looseNames: true,
  validate(f, bundle) {
    checkBundle(f, bundle);
    checkAnchors(f, textAt(bundle, 'spec', 'trustBundle'));
  },
  validateUpdate(f, bundle, old) {
    checkBundle(f, bundle);
    const text = textAt(bundle, 'spec', 'trustBundle');
    if (text !== textAt(old, 'spec', 'trustBundle')) checkAnchors(f, text);
    const signer = textAt(bundle, 'spec', 'signerName');
    if (signer !== textAt(old, 'spec', 'signerName')) f.invalid('spec.signerName', signer, 'field is immutable');
  },
};

const DEFAULT_SECONDS = 86_400;
const SECONDS = [3600, 7_862_400] as const;
const IDENTITY = ['podName', 'podUID', 'serviceAccountName', 'serviceAccountUID', 'nodeName', 'nodeUID'] as const;
const FINAL = ['Issued', 'Denied', 'Failed'];

/** What a kubelet signs proves that it holds the key. The request itself says nothing. */
function checkStub(f: Findings, base64: string): void {
  const field = 'spec.stubPKCS10Request';
  try {
    const { publicKey } = readSigningRequest(pem('CERTIFICATE REQUEST', Buffer.from(base64, 'base64')));
    const { modulusLength, namedCurve } = publicKey.asymmetricKeyDetails ?? {};
    if (publicKey.asymmetricKeyType === 'rsa' && modulusLength !== 3072 && modulusLength !== 4096)
      f.invalid(field, `${modulusLength}-bit modulus`, 'RSA keys must have modulus size 3072 or 4096');
    if (publicKey.asymmetricKeyType === 'ec' && !['prime256v1', 'secp384r1', 'secp521r1'].includes(namedCurve ?? ''))
      f.invalid(field, `curve ${namedCurve}`, 'elliptic public keys must use curve P256, P384, or P521');
  } catch (err) {
    if (!isFault(err)) throw err;
    f.invalid(field, OMITTED, err.message);
  }
}

export const podCertificateRequestStrategy: Strategy = {
  prepareCreate(draft) {
    const spec = recordAt(draft, 'spec');
    draft['spec'] = { ...spec, maxExpirationSeconds: numberAt(spec, 'maxExpirationSeconds') ?? DEFAULT_SECONDS };
    draft['status'] = {};
  },
  validate(f, request) {
    const spec = recordAt(request, 'spec');
    f.reasons('spec.signerName', textAt(spec, 'signerName'), signerName(textAt(spec, 'signerName')));
    for (const field of IDENTITY) if (textAt(spec, field) === '') f.invalid(`spec.${field}`, '', 'must not be empty');
    const seconds = numberAt(spec, 'maxExpirationSeconds') ?? 0;
    if (seconds < SECONDS[0] || seconds > SECONDS[1])
      f.invalid('spec.maxExpirationSeconds', seconds, `must be in the range [${SECONDS[0]}, ${SECONDS[1]}]`);
    checkStub(f, textAt(spec, 'stubPKCS10Request'));
  },
  prepareUpdate(draft, old, _world, subresource) {
    if (subresource === 'status') draft['spec'] = old['spec'];
    else draft['status'] = old['status'];
  },
  validateUpdate(f, request, old, _world, subresource) {
    if (!sameJson(recordAt(request, 'spec'), recordAt(old, 'spec'))) f.invalid('spec', OMITTED, 'field is immutable');
    if (subresource !== 'status') return;
    const final = recordsAt(request, 'status', 'conditions').filter((c) => FINAL.includes(textAt(c, 'type')));
    if (final.length > 1)
      f.invalid(
        'status.conditions',
        OMITTED,
        'There may be at most one condition with type "Issued", "Denied", or "Failed"',
      );
    const isIssued = final.some((c) => c['type'] === 'Issued');
    for (const field of ['certificateChain', 'notBefore', 'beginRefreshAt', 'notAfter'])
      if (isIssued !== (textAt(request, 'status', field) !== ''))
        f.invalid(`status.${field}`, OMITTED, isIssued ? 'must be set' : 'must not be set before it is issued');
  },
};
