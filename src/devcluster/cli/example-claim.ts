// A claim and a pod that writes to it, as a file for `kubectl apply`: storage that outlives its pod.
import { stringify } from 'yaml';
import type { Json } from '../api/objects.ts';
import { EXAMPLE_IMAGE } from './runtime.ts';

const CLAIM: Json = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data', namespace: 'default' },
  spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '64Mi' } } },
};

const POD: Json = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'writer', namespace: 'default' },
  spec: {
    terminationGracePeriodSeconds: 2,
    dnsPolicy: 'Default',
    containers: [
      {
        name: 'c',
        image: EXAMPLE_IMAGE,
        command: ['sh', '-c', 'date >> /data/starts; cat /data/starts; trap "exit 0" TERM; while :; do sleep 1; done'],
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
      },
    ],
    volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
  },
};

const HEAD = `# Storage that outlives a pod: apply, delete the pod, apply again, and look at: kubectl logs writer
# Grow it under the running pod: kubectl patch pvc data -p '{"spec":{"resources":{"requests":{"storage":"128Mi"}}}}'
`;

export const exampleClaimText = (): string => `${HEAD}${stringify(CLAIM)}---\n${stringify(POD)}`;
