// What a person needs to know when the cluster is up.
import { findProgram } from './machine.ts';
import type { Paths } from './paths.ts';
import type { Settings } from './settings.ts';

export function summary(paths: Paths, settings: Settings, exampleIp: string | undefined): string {
  const kubectl = `kubectl --kubeconfig ${paths.admin}`;
  const hint =
    findProgram('kubectl') === undefined ? '   (no kubectl here yet: apt-get install kubernetes-client)' : '';
  return [
    '',
    `One node, ${settings.nodeName}, is up.`,
    `  API         https://127.0.0.1:${settings.apiPort}`,
    `  Kubelet     https://127.0.0.1:${settings.kubeletPort}`,
    ...(exampleIp === undefined ? [] : [`  Example     http://${exampleIp}:8080/   (pod default/hello)`]),
    `  Logs        ${paths.logs}`,
    '',
    `Talk to it:   ${kubectl} get pods${hint}`,
    `Your own pod: ${kubectl} apply -f my-pod.yaml   (start from ${paths.example})`,
    `Static pods:  put a manifest into ${paths.manifests}`,
    'Stop:         bin/kubelet-dev down     Remove everything: bin/kubelet-dev reset',
    '',
    'This is a cluster of one node for development. For more nodes, point the kubelet at a real cluster (README).',
    '',
  ].join('\n');
}
