// The client certificate that a kubeconfig brings along, as kubeadm's does for the first start. With rotation on, an embedded
// one is stored like a rotated one: kubeadm looks for the file and then has the kubeconfig refer to it.
import { readFile } from 'node:fs/promises';
import { loadKubeconfig, type ClusterAccess } from '../kube/kubeconfig.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { CertificateStore, parseKept, type KeptCertificate } from './certificate-store.ts';

export type GivenCertificate = {
  readonly certificate: KeptCertificate;
  /** Embedded, so not in a file that is rotated. */
  readonly replaceNow: boolean;
};

export async function givenCertificate({ auth }: ClusterAccess, log: Logger): Promise<GivenCertificate | undefined> {
  try {
    if (auth.certData !== undefined && auth.keyData !== undefined) {
      return { certificate: parseKept(auth.certData, auth.keyData), replaceNow: true };
    }
    if (auth.certFile === undefined || auth.keyFile === undefined) return undefined;
    const [cert, key] = await Promise.all([readFile(auth.certFile, 'utf8'), readFile(auth.keyFile, 'utf8')]);
    return { certificate: parseKept(cert, key), replaceNow: false };
  } catch (err) {
    log.debug('the kubeconfig has no usable client certificate yet', { reason: messageOf(err) });
    return undefined;
  }
}

/** An expired certificate of the store gives way to a given one that is valid longer, which an administrator put there since. */
export const prefersStored = (
  stored: Pick<KeptCertificate, 'notAfterMs'>,
  given: Pick<KeptCertificate, 'notAfterMs'> | undefined,
  nowMs: number,
): boolean => given === undefined || nowMs < stored.notAfterMs || given.notAfterMs <= stored.notAfterMs;

/** Stores an embedded certificate unless the store has a usable one. A failure is logged: the start goes on and tries again. */
export async function storeEmbeddedCertificate(
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
  { kubeconfig, certDir }: { readonly kubeconfig: string; readonly certDir: string },
): Promise<void> {
  try {
    const given = await givenCertificate(await loadKubeconfig(kubeconfig), log);
    if (given?.replaceNow !== true) return;
    const store = new CertificateStore(certDir, 'kubelet-client');
    const stored = await store.load().catch(() => undefined); // a damaged one is reported when the manager reads it
    const { certificate } = given;
    if (stored !== undefined && prefersStored(stored, certificate, clock.now())) return;
    await store.save(certificate.cert, certificate.key, clock.now());
    log.info('the embedded client certificate was stored', { kubeconfig, path: store.currentPath });
  } catch (err) {
    log.warn('the embedded client certificate was not stored', { kubeconfig, reason: messageOf(err) });
  }
}
