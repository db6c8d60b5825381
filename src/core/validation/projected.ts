// Projected volumes: several sources in one directory, no two writing the same path.
import { dns1123Subdomain, signerName } from '../names.ts';
import type { DownwardApiFile, KeyToPath, PodCertificateProjection, ProjectedSource, Volume } from '../pod.ts';
import { item, type Findings } from './field-error.ts';
import { checkLabelSelector } from './labels.ts';
import { checkFileMode, checkNonReserved } from './paths.ts';

export type ItemChecks = {
  readonly checkItems: (f: Findings, field: string, items: readonly KeyToPath[]) => void;
  readonly checkDownwardItems: (f: Findings, field: string, items: readonly DownwardApiFile[]) => void;
};

const MIN_TOKEN_SECONDS = 600;
const MAX_TOKEN_SECONDS = 2 ** 32;
const KEY_TYPES = ['RSA3072', 'RSA4096', 'ECDSAP256', 'ECDSAP384', 'ECDSAP521', 'ED25519'];
const MIN_CERTIFICATE_SECONDS = 3600;
const MAX_CERTIFICATE_SECONDS = 91 * 86_400;

export function checkProjected(
  f: Findings,
  field: string,
  volume: NonNullable<Volume['projected']>,
  checks: ItemChecks,
): void {
  checkFileMode(f, `${field}.defaultMode`, volume.defaultMode);
  const taken = new Set<string>();
  const take = (path: string | undefined, at: string): void => {
    if (!path) return;
    if (taken.has(path)) f.invalid(at, path, 'conflicting duplicate paths');
    taken.add(path);
  };
  (volume.sources ?? []).forEach((source, i) => {
    const at = item(`${field}.sources`, i);
    const kinds = Object.keys(source).length;
    if (kinds > 1) f.forbidden(at, 'may not specify more than 1 volume type per source');
    checkObjects(f, at, source, checks, take);
    if (source.serviceAccountToken !== undefined)
      checkToken(f, `${at}.serviceAccountToken`, source.serviceAccountToken);
    if (source.clusterTrustBundle !== undefined)
      checkTrustBundle(f, `${at}.clusterTrustBundle`, source.clusterTrustBundle, take);
    if (source.podCertificate !== undefined)
      checkPodCertificate(f, `${at}.podCertificate`, source.podCertificate, take);
  });
}

type Take = (path: string | undefined, at: string) => void;

function checkObjects(f: Findings, at: string, source: ProjectedSource, checks: ItemChecks, take: Take): void {
  for (const kind of ['secret', 'configMap'] as const) {
    const part = source[kind];
    if (part === undefined) continue;
    if (!part.name) f.required(`${at}.${kind}.name`);
    checks.checkItems(f, `${at}.${kind}.items`, part.items ?? []);
    part.items?.forEach((entry, i) => take(entry.path, `${at}.${kind}.items[${i}].path`));
  }
  if (source.downwardAPI !== undefined) {
    checks.checkDownwardItems(f, `${at}.downwardAPI.items`, source.downwardAPI.items ?? []);
    source.downwardAPI.items?.forEach((file, i) => take(file.path, `${at}.downwardAPI.items[${i}].path`));
  }
}

function checkToken(f: Findings, field: string, token: NonNullable<ProjectedSource['serviceAccountToken']>): void {
  const seconds = token.expirationSeconds;
  const at = `${field}.expirationSeconds`;
  if (seconds === undefined) f.required(at);
  else if (seconds < MIN_TOKEN_SECONDS) f.invalid(at, seconds, 'may not specify a duration less than 10 minutes');
  else if (seconds > MAX_TOKEN_SECONDS) f.invalid(at, seconds, 'may not specify a duration larger than 2^32 seconds');
  if (!token.path) f.required(`${field}.path`);
  else checkNonReserved(f, `${field}.path`, token.path);
}

function checkTrustBundle(
  f: Findings,
  field: string,
  bundle: NonNullable<ProjectedSource['clusterTrustBundle']>,
  take: Take,
): void {
  if (bundle.name !== undefined && bundle.signerName !== undefined) {
    f.invalid(field, bundle, 'only one of name and signerName may be used');
  } else if (bundle.name !== undefined) {
    if (bundle.name === '') f.required(`${field}.name`, 'must be a valid object name');
    else
      f.reasons(
        `${field}.name`,
        bundle.name,
        dns1123Subdomain(bundle.name.replaceAll(':', '.')).map((why) => `not a valid clustertrustbundlename: ${why}`),
      );
    if (bundle.labelSelector !== undefined)
      f.invalid(`${field}.labelSelector`, bundle.labelSelector, 'labelSelector must be unset if name is specified');
  } else if (bundle.signerName !== undefined) {
    if (bundle.signerName === '') f.required(`${field}.signerName`, 'must be a valid signer name');
    else f.reasons(`${field}.signerName`, bundle.signerName, signerName(bundle.signerName));
    checkLabelSelector(f, `${field}.labelSelector`, bundle.labelSelector);
  } else {
    f.required(field, 'either name or signerName must be specified');
  }
  if (!bundle.path) f.required(`${field}.path`);
  else checkNonReserved(f, `${field}.path`, bundle.path);
  take(bundle.path, `${field}.path`);
}

function checkPodCertificate(
  f: Findings,
  field: string,
  certificate: Partial<PodCertificateProjection>,
  take: Take,
): void {
  const { signerName: signer = '', keyType = '' } = certificate;
  f.reasons(`${field}.signerName`, signer, signerName(signer));
  if (!KEY_TYPES.includes(keyType)) f.notSupported(`${field}.keyType`, keyType, KEY_TYPES);
  const seconds = certificate.maxExpirationSeconds;
  if (seconds !== undefined && (seconds < MIN_CERTIFICATE_SECONDS || seconds > MAX_CERTIFICATE_SECONDS))
    f.invalid(
      `${field}.maxExpirationSeconds`,
      seconds,
      `must be between ${MIN_CERTIFICATE_SECONDS} and ${MAX_CERTIFICATE_SECONDS}, inclusive`,
    );
  const paths = ['credentialBundlePath', 'keyPath', 'certificateChainPath'] as const;
  for (const part of paths) {
    const path = certificate[part];
    if (!path) continue;
    checkNonReserved(f, `${field}.${part}`, path);
    take(path, `${field}.${part}`);
  }
  if (paths.every((part) => !certificate[part]))
    f.required(field, 'specify at least one of credentialBundlePath, keyPath, and certificateChainPath');
}
