// The shortest way to a running pod, by bare CRI calls: for tests of what watches the runtime, not of what drives it.
import { randomUUID } from 'node:crypto';
import { NamespaceMode } from '../../src/cri/gen/cri.ts';
import type { CriRuntime } from '../../src/cri/services.ts';
import { BUSYBOX_IMAGE } from './containerd.ts';

export type BarePod = {
  readonly uid: string;
  readonly name: string;
  readonly sandboxId: string;
  readonly containerId: string;
};

const { signal } = new AbortController();

export const barePodLabels = (name: string, uid: string): Record<string, string> => ({
  'io.kubernetes.pod.name': name,
  'io.kubernetes.pod.namespace': 'test',
  'io.kubernetes.pod.uid': uid,
});

export const bareSandboxConfig = (root: string, name: string, uid: string) => ({
  metadata: { name, namespace: 'test', uid, attempt: 0 },
  logDirectory: `${root}/logs/${uid}`,
  labels: barePodLabels(name, uid),
  linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } },
});

export async function runPod(
  on: { readonly runtime: CriRuntime; readonly root: string },
  name: string,
  command: readonly string[],
): Promise<BarePod> {
  const uid = randomUUID();
  const sandboxConfig = bareSandboxConfig(on.root, name, uid);
  const { podSandboxId } = await on.runtime.runPodSandbox({ config: sandboxConfig }, signal);
  const config = {
    metadata: { name: 'main', attempt: 0 },
    image: { image: BUSYBOX_IMAGE, userSpecifiedImage: BUSYBOX_IMAGE },
    command,
    labels: { ...barePodLabels(name, uid), 'io.kubernetes.container.name': 'main' },
    logPath: 'main.log',
    linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } },
  };
  const { containerId } = await on.runtime.createContainer({ podSandboxId, sandboxConfig, config }, signal);
  await on.runtime.startContainer({ containerId }, signal);
  return { uid, name, sandboxId: podSandboxId, containerId };
}

export async function removePod(on: { readonly runtime: CriRuntime }, pod: BarePod): Promise<void> {
  await on.runtime.stopPodSandbox({ podSandboxId: pod.sandboxId }, signal);
  await on.runtime.removePodSandbox({ podSandboxId: pod.sandboxId }, signal);
}
