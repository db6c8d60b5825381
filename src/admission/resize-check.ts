// Whether a pod's new resources can be had: now, later, or never on this node.
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { podRequests, resourcesOf } from '../core/pod-resources.ts';
import { qosClassOf } from '../core/qos.ts';
import { amountOf, shortageMessage, shortagesOf } from './node-fit.ts';

export type ResizeVerdict =
  { readonly ok: true } | { readonly ok: false; readonly reason: 'Deferred' | 'Infeasible'; readonly message: string };

export type ResizeOptions = {
  readonly cpuManagerPolicy: string;
  readonly memoryManagerPolicy: string;
  /** Whether some container of the pod may use swap. */
  readonly usesSwap: (pod: Pod) => boolean;
};

/** `pod` with the wanted, `others` with their allocated resources. */
export function checkResize(pod: Pod, others: readonly Pod[], node: Node, o: ResizeOptions): ResizeVerdict {
  const never = impossible(pod, node, o);
  if (never !== undefined) return { ok: false, reason: 'Infeasible', message: never };
  const [shortage] = shortagesOf(pod, others, node);
  return shortage === undefined ? { ok: true } : { ok: false, reason: 'Deferred', message: shortageMessage(shortage) };
}

function impossible(pod: Pod, node: Node, o: ResizeOptions): string | undefined {
  if (o.usesSwap(pod)) return 'In-place resize of containers with swap is not supported.';
  if (qosClassOf(pod) === 'Guaranteed') {
    if (o.cpuManagerPolicy === 'static')
      return 'Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"';
    if (o.memoryManagerPolicy === 'Static')
      return 'Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"';
  }
  const requests = podRequests(pod);
  const allocatable = resourcesOf(node.status?.allocatable);
  for (const name of ['memory', 'cpu']) {
    const [requested, capacity] = [amountOf(requests, name), amountOf(allocatable, name)];
    if (requested > capacity)
      return `Node didn't have enough capacity: ${name}, requested: ${requested}, capacity: ${capacity}`;
  }
  return undefined;
}
