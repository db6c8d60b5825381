// The configuration the kubelet of a development cluster gets: private directories, a private cgroup, its own ports.
import { stringify } from 'yaml';
import { DOMAIN } from '../services/zone.ts';
import type { Paths } from './paths.ts';
import type { Settings } from './settings.ts';

export const DEFAULT_PAGE_PORT = 4194;

/** `withDns`: pods ask the cluster's own server for names. */
export function kubeletConfig(paths: Paths, settings: Settings, withDns: boolean): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    containerRuntimeEndpoint: `unix://${paths.containerdSocket}`,
    cgroupDriver: 'cgroupfs',
    cgroupRoot: settings.cgroupRoot,
    failCgroupV1: false,
    failSwapOn: false,
    port: settings.kubeletPort,
    healthzPort: settings.healthzPort,
    readOnlyPort: 0,
    staticPodPath: paths.manifests,
    podLogsDir: paths.podLogs,
    volumePluginDir: paths.volumePlugins,
    tlsCertFile: `${paths.kubeletCertificates}/serving.crt`,
    tlsPrivateKeyFile: `${paths.kubeletCertificates}/serving.key`,
    authentication: { anonymous: { enabled: false }, webhook: { enabled: true }, x509: { clientCAFile: paths.ca } },
    authorization: { mode: 'Webhook' },
    makeIPTablesUtilChains: false,
    // The machine is somebody's desk, or has other clusters on it: its kernel settings stay as they are.
    featureGates: { KubeletInUserNamespace: true },
    // Images made here come from no registry: what is collected cannot be pulled again.
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    evictionHard: {
      'memory.available': '50Mi',
      'nodefs.available': '1%',
      'imagefs.available': '1%',
      'nodefs.inodesFree': '1%',
    },
    registerWithTaints: [],
    clusterDomain: DOMAIN,
    ...(withDns ? { clusterDNS: [settings.network.gateway] } : {}),
  });
}

export const kubeletArguments = (paths: Paths, settings: Settings): string[] => [
  `--kubeconfig=${paths.nodeKubeconfig}`,
  `--config=${paths.kubeletConfig}`,
  `--root-dir=${paths.kubeletRoot}`,
  `--cert-dir=${paths.kubeletCertificates}`,
  `--hostname-override=${settings.nodeName}`,
  `--node-page-port=${settings.nodePagePort ?? DEFAULT_PAGE_PORT}`,
  '--node-page-write',
];
