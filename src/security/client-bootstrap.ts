// TLS bootstrap: from `--bootstrap-kubeconfig` to a kubeconfig of our own. With rotation on, the kubeconfig is written at
// once and the certificate manager asks for the certificate; with rotation off, we wait for the certificate here.
import { createHash, createPrivateKey, createPublicKey } from 'node:crypto';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { stringify } from 'yaml';
import { withDeadline } from '../lib/abort.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError, messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { newKeyPair, privateKeyPem, publicKeyDer, type KeyPair } from '../lib/x509/keys.ts';
import { loadKubeconfig, type ClusterAccess } from '../kube/kubeconfig.ts';
import { covers } from './certificate-manager.ts';
import { parseKept, type CertificateStore } from './certificate-store.ts';
import {
  CLIENT_SIGNER,
  requestCertificate,
  usagesFor,
  type CertificateTemplate,
  type SigningClient,
} from './signing-request.ts';

export type BootstrapDeps = {
  /** A client with the bootstrap credentials. */
  connect: (access: ClusterAccess) => SigningClient & { text(path: string, signal: AbortSignal): Promise<string> };
  store: CertificateStore;
  clock: Clock;
  log: Logger;
};

export type BootstrapOptions = {
  kubeconfig: string;
  bootstrapKubeconfig: string;
  certDir: string;
  nodeName: string;
  /** `rotateCertificates` */
  rotate: boolean;
};

const HEALTH_WAIT_MS = 60_000;
const HEALTH_EVERY_MS = 2000;
const ISSUE_WAIT_MS = 3_600_000;

export const clientTemplate = (nodeName: string): CertificateTemplate => ({
  commonName: `system:node:${nodeName}`,
  organizations: ['system:nodes'],
  dnsNames: [],
  ipAddresses: [],
});

/** After this the kubeconfig exists. */
export async function bootstrapClient(deps: BootstrapDeps, o: BootstrapOptions, signal: AbortSignal): Promise<void> {
  const problem = await kubeconfigProblem(deps, o);
  if (problem === undefined) return;
  const access = await loadBootstrap(o, problem);
  deps.log.info('no usable kubeconfig, using the bootstrap one', { path: o.kubeconfig, reason: problem.reason });
  if (!o.rotate) await obtainOnce(deps, access, o, signal);
  await writeKubeconfig(o.kubeconfig, access, deps.store.currentPath);
}

type KubeconfigProblem = { readonly reason: string; readonly wayOut?: string };

/**
 * Undefined for a kubeconfig with credentials, and if these are a certificate, one that has not expired. With rotation on, the
 * stored certificate is used and the kubeconfig's own does not matter.
 */
async function kubeconfigProblem(deps: BootstrapDeps, o: BootstrapOptions): Promise<KubeconfigProblem | undefined> {
  try {
    const { auth } = await loadKubeconfig(o.kubeconfig);
    if (o.rotate && (await hasStored(deps, o.nodeName))) return undefined;
    const cert = auth.certData ?? (auth.certFile === undefined ? undefined : await readFile(auth.certFile, 'utf8'));
    if (cert === undefined) {
      const hasOthers = [auth.token, auth.tokenFile, auth.exec].some((own) => own !== undefined);
      return hasOthers ? undefined : { reason: 'no credentials' };
    }
    const key = auth.keyData ?? (auth.keyFile === undefined ? '' : await readFile(auth.keyFile, 'utf8'));
    const { notAfterMs } = parseKept(cert, key);
    if (deps.clock.now() < notAfterMs) return undefined;
    return {
      reason: `its client certificate expired on ${new Date(notAfterMs).toISOString()}`,
      wayOut: `replace ${o.kubeconfig} (with kubeadm, on a control plane node: kubeadm kubeconfig user --org system:nodes --client-name system:node:${o.nodeName})`,
    };
  } catch (err) {
    return { reason: messageOf(err) };
  }
}

/** A valid certificate of this node; a damaged one is reported when the manager reads it. */
async function hasStored({ store, clock }: BootstrapDeps, nodeName: string): Promise<boolean> {
  const kept = await store.load().catch(() => undefined);
  return kept !== undefined && clock.now() < kept.notAfterMs && covers(kept, clientTemplate(nodeName));
}

async function loadBootstrap(o: BootstrapOptions, { reason, wayOut }: KubeconfigProblem): Promise<ClusterAccess> {
  try {
    return await loadKubeconfig(o.bootstrapKubeconfig);
  } catch (err) {
    const problems = [
      `the kubeconfig ${o.kubeconfig} cannot be used: ${reason}`,
      `unable to load bootstrap kubeconfig ${o.bootstrapKubeconfig}: ${messageOf(err)}`,
      ...(wayOut === undefined ? [] : [wayOut]),
    ];
    throw new KubeletError('invalid', problems.join('; '));
  }
}

async function obtainOnce(
  deps: BootstrapDeps,
  access: ClusterAccess,
  o: BootstrapOptions,
  signal: AbortSignal,
): Promise<void> {
  const client = deps.connect(access);
  await waitForServer(deps, client, signal);
  const keyPath = join(o.certDir, 'kubelet-client.key.tmp');
  const keys = await keptKey(keyPath);
  const template = clientTemplate(o.nodeName);
  const usages = usagesFor(keys, 'client auth');
  const name = requestName(keys, template, usages);
  const ask = { template, signerName: CLIENT_SIGNER, usages, name, waitMs: ISSUE_WAIT_MS };
  const cert = await requestCertificate({ ...deps, client }, ask, keys, signal);
  await deps.store.save(cert, privateKeyPem(keys.privateKey), deps.clock.now());
  await rm(keyPath, { force: true });
}

/** A server that does not say how it is may sign certificates all the same. */
async function waitForServer(
  { clock, log }: BootstrapDeps,
  client: { text(path: string, signal: AbortSignal): Promise<string> },
  signal: AbortSignal,
): Promise<void> {
  const wait = async (s: AbortSignal): Promise<void> => {
    for (;;) {
      const answer = await client.text('/healthz', s).catch(() => undefined); // not up yet: the reason does not matter
      if (answer !== undefined) return;
      await clock.sleep(HEALTH_EVERY_MS, s);
      s.throwIfAborted();
    }
  };
  await withDeadline(clock, signal, HEALTH_WAIT_MS, wait).catch((err: unknown) => {
    signal.throwIfAborted();
    log.warn('the API server did not become healthy in time', { err });
  });
}

/** The same key after a restart leads to the same request, so that an approval given meanwhile is not lost. */
async function keptKey(path: string): Promise<KeyPair> {
  try {
    const privateKey = createPrivateKey(await readFile(path, 'utf8'));
    return { privateKey, publicKey: createPublicKey(privateKey) };
  } catch {
    const keys = newKeyPair('ec'); // none yet, or a damaged file: either way a new one
    await mkdir(dirname(path), { recursive: true, mode: 0o755 });
    await writeFileAtomic(path, privateKeyPem(keys.privateKey), 0o600);
    return keys;
  }
}

/** As upstream names it, so that a request which either kubelet began is found by the other. */
export function requestName(
  keys: Pick<KeyPair, 'publicKey'>,
  template: Pick<CertificateTemplate, 'commonName' | 'organizations'>,
  usages: readonly string[],
): string {
  const hash = createHash('sha512-256');
  for (const part of [publicKeyDer(keys.publicKey), template.commonName, ...template.organizations, ...usages])
    hash.update(`${Buffer.from(part).toString('base64url')}|`);
  return `node-csr-${hash.digest('base64url')}`;
}

/** A file stays a file: whoever replaces the cluster's authority replaces it there. */
function authorityOf({ ca, caFile }: ClusterAccess): Record<string, string> {
  if (caFile !== undefined) return { 'certificate-authority': caFile };
  return ca === undefined ? {} : { 'certificate-authority-data': Buffer.from(ca).toString('base64') };
}

async function writeKubeconfig(path: string, access: ClusterAccess, pemPath: string): Promise<void> {
  const cluster = {
    server: access.server,
    ...authorityOf(access),
    ...(access.insecure ? { 'insecure-skip-tls-verify': true } : {}),
    ...(access.tlsServerName === undefined ? {} : { 'tls-server-name': access.tlsServerName }),
    ...(access.proxyUrl === undefined ? {} : { 'proxy-url': access.proxyUrl }),
  };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'default-cluster', cluster }],
    contexts: [
      {
        name: 'default-context',
        context: { cluster: 'default-cluster', namespace: 'default', user: 'default-auth' },
      },
    ],
    'current-context': 'default-context',
    users: [{ name: 'default-auth', user: { 'client-certificate': pemPath, 'client-key': pemPath } }],
  };
  await mkdir(dirname(path), { recursive: true, mode: 0o755 });
  await writeFileAtomic(path, stringify(config), 0o600);
}
