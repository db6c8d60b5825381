// Where the real control plane's programs are, and how they are called. Flags as envtest passes them, plus what a node
// needs: the node authorizer, NodeRestriction, bootstrap tokens, the client certificate for the kubelet's port, an
// audit log.
import { accessSync, constants } from 'node:fs';
import { join } from 'node:path';

export type Assets = {
  readonly etcd: string;
  readonly apiServer: string;
  readonly kubectl: string | undefined;
  readonly scheduler: string | undefined;
  readonly controllerManager: string | undefined;
};

/** The folder named by KUBEBUILDER_ASSETS; undefined when the embedded server is meant. */
export function assetsFolder(env: NodeJS.ProcessEnv = process.env): string | undefined {
  const folder = env['KUBEBUILDER_ASSETS'] ?? '';
  return folder === '' ? undefined : folder;
}

function executable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false; // not there, or not a program: the caller says which
  }
}

/** Throws, naming what is missing, rather than falling back to another server than the one asked for. */
export function findAssets(folder: string, has: (path: string) => boolean = executable): Assets {
  const missing = ['kube-apiserver', 'etcd'].filter((name) => !has(join(folder, name)));
  if (missing.length > 0)
    throw new Error(`KUBEBUILDER_ASSETS=${folder} has no executable ${missing.join(' and no ')}; unset it, or fill it`);
  const optional = (name: string): string | undefined => (has(join(folder, name)) ? join(folder, name) : undefined);
  return {
    etcd: join(folder, 'etcd'),
    apiServer: join(folder, 'kube-apiserver'),
    kubectl: optional('kubectl'),
    scheduler: optional('kube-scheduler'),
    controllerManager: optional('kube-controller-manager'),
  };
}

export type Ports = { readonly etcdClient: number; readonly etcdPeer: number; readonly api: number };

export const SERVICE_RANGE = '10.96.0.0/16';
export const ISSUER = 'https://kubernetes.default.svc.cluster.local';

export const etcdFlags = (dir: string, ports: Ports): string[] => [
  `--data-dir=${dir}/etcd`,
  `--listen-client-urls=http://127.0.0.1:${ports.etcdClient}`,
  `--advertise-client-urls=http://127.0.0.1:${ports.etcdClient}`,
  `--listen-peer-urls=http://127.0.0.1:${ports.etcdPeer}`,
  '--unsafe-no-fsync=true',
];

export const apiServerFlags = (dir: string, ports: Ports): string[] => [
  `--etcd-servers=http://127.0.0.1:${ports.etcdClient}`,
  '--bind-address=127.0.0.1',
  '--advertise-address=127.0.0.1',
  // A loopback address may not be an endpoint of the kubernetes service.
  '--endpoint-reconciler-type=none',
  `--secure-port=${ports.api}`,
  `--cert-dir=${dir}/apiserver`,
  `--tls-cert-file=${dir}/pki/apiserver.crt`,
  `--tls-private-key-file=${dir}/pki/apiserver.key`,
  `--client-ca-file=${dir}/pki/ca.crt`,
  `--kubelet-client-certificate=${dir}/pki/apiserver-kubelet-client.crt`,
  `--kubelet-client-key=${dir}/pki/apiserver-kubelet-client.key`,
  '--kubelet-preferred-address-types=InternalIP,Hostname',
  `--service-account-key-file=${dir}/pki/sa.pub`,
  `--service-account-signing-key-file=${dir}/pki/sa.key`,
  `--service-account-issuer=${ISSUER}`,
  `--service-cluster-ip-range=${SERVICE_RANGE}`,
  '--authorization-mode=Node,RBAC',
  '--enable-admission-plugins=NodeRestriction',
  '--enable-bootstrap-token-auth=true',
  '--allow-privileged=true',
  '--feature-gates=ClusterTrustBundle=true,ClusterTrustBundleProjection=true,PodCertificateRequest=true',
  '--runtime-config=certificates.k8s.io/v1beta1=true',
  `--audit-policy-file=${dir}/audit-policy.yaml`,
  `--audit-log-path=${dir}/audit.log`,
];

export const AUDIT_POLICY = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules: [{level: Metadata}]
`;

export const schedulerFlags = (dir: string): string[] => [
  `--kubeconfig=${dir}/scheduler.kubeconfig`,
  `--authentication-kubeconfig=${dir}/scheduler.kubeconfig`,
  `--authorization-kubeconfig=${dir}/scheduler.kubeconfig`,
  '--bind-address=127.0.0.1',
  '--secure-port=0',
  '--leader-elect=false',
];

export const controllerManagerFlags = (dir: string): string[] => [
  `--kubeconfig=${dir}/controller-manager.kubeconfig`,
  '--bind-address=127.0.0.1',
  '--secure-port=0',
  '--leader-elect=false',
  '--use-service-account-credentials=true',
  `--service-account-private-key-file=${dir}/pki/sa.key`,
  `--root-ca-file=${dir}/pki/ca.crt`,
  `--cluster-signing-cert-file=${dir}/pki/ca.crt`,
  `--cluster-signing-key-file=${dir}/pki/ca.key`,
];
