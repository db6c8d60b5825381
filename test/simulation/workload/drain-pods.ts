// Pods that a drain leaves where they are.
import { container, POLITE, type PodKind } from './pods.ts';

const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', operator: 'Exists', effect: 'NoSchedule' };
const OWNER = { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agents', uid: 'daemon-set-1', controller: true };

export const DRAIN_KINDS: Readonly<Record<string, PodKind>> = {
  daemon: {
    fate: 'runs',
    metadata: { ownerReferences: [OWNER] },
    spec: () => ({ tolerations: [UNSCHEDULABLE], containers: [container('main', POLITE)] }),
  },
};
