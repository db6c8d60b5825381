// Which users of the node the sandbox of a pod runs with, as the runtime knows it.
import type { CriRuntime } from '../cri/services.ts';
import { POD_UID } from '../core/runtime-labels.ts';

/** First host id of the pod's users; undefined where the pod has no sandbox or shares the node's users. */
export async function firstIdOfSandbox(
  cri: Pick<CriRuntime, 'listPodSandbox' | 'podSandboxStatus'>,
  uid: string,
  signal: AbortSignal,
): Promise<number | undefined> {
  const { items } = await cri.listPodSandbox({ filter: { labelSelector: { [POD_UID]: uid } } }, signal);
  for (const { id } of items) {
    const { status } = await cri.podSandboxStatus({ podSandboxId: id }, signal);
    const [mapping] = status?.linux?.namespaces?.options?.usernsOptions?.uids ?? [];
    if (mapping !== undefined) return mapping.hostId;
  }
  return undefined;
}
