// Which resource has which strategy; what is not named here is stored as it comes.
import type { Strategy } from '../strategy.ts';
import {
  configMapStrategy,
  namespaceStrategy,
  nodeStrategy,
  priorityClassStrategy,
  secretStrategy,
  signingRequestStrategy,
} from './basic.ts';
import { cronJobStrategy } from './cron-job.ts';
import { podCertificateRequestStrategy, trustBundleStrategy } from './certificates.ts';
import { podStrategy } from './pod.ts';
import { serviceStrategy } from './service.ts';
import { statefulSetStrategy } from './stateful-set.ts';
import {
  attachmentStrategy,
  claimStrategy,
  csiDriverStrategy,
  csiNodeStrategy,
  storageClassStrategy,
  volumeStrategy,
} from './storage.ts';
import { daemonSetStrategy, deploymentStrategy, jobStrategy, replicaSetStrategy } from './workload.ts';

const loose: Strategy = { looseNames: true };

export const STRATEGIES: Readonly<Record<string, Strategy>> = {
  pods: podStrategy,
  namespaces: namespaceStrategy,
  nodes: nodeStrategy,
  configmaps: configMapStrategy,
  secrets: secretStrategy,
  services: serviceStrategy,
  serviceaccounts: { returnsDeleted: true },
  limitranges: { returnsDeleted: true },
  resourcequotas: { returnsDeleted: true },
  persistentvolumes: volumeStrategy,
  persistentvolumeclaims: claimStrategy,
  'apps/deployments': deploymentStrategy,
  'apps/replicasets': replicaSetStrategy,
  'apps/daemonsets': daemonSetStrategy,
  'apps/statefulsets': statefulSetStrategy,
  'batch/cronjobs': cronJobStrategy,
  'batch/jobs': jobStrategy,
  'certificates.k8s.io/certificatesigningrequests': signingRequestStrategy,
  'certificates.k8s.io/clustertrustbundles': trustBundleStrategy,
  'certificates.k8s.io/podcertificaterequests': podCertificateRequestStrategy,
  'scheduling.k8s.io/priorityclasses': priorityClassStrategy,
  'storage.k8s.io/csidrivers': csiDriverStrategy,
  'storage.k8s.io/csinodes': csiNodeStrategy,
  'storage.k8s.io/storageclasses': storageClassStrategy,
  'storage.k8s.io/volumeattachments': attachmentStrategy,
  'rbac.authorization.k8s.io/roles': loose,
  'rbac.authorization.k8s.io/rolebindings': loose,
  'rbac.authorization.k8s.io/clusterroles': loose,
  'rbac.authorization.k8s.io/clusterrolebindings': loose,
};
