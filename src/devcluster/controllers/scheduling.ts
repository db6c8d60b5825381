// Does a pod fit a node? Pure. The reasons are those of the real scheduler, so that its messages read the same.
import type { Node } from '../../core/node.ts';
import type { Pod } from '../../core/pod.ts';
import { podRequests, resourcesOf } from '../../core/pod-resources.ts';
import { compareQuantities, addQuantities, type Quantity } from '../../core/quantity.ts';
import { matchesNode, untoleratedTaint } from '../../core/selectors.ts';

const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' };
const UNSCHEDULABLE = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** Why `pod` cannot go to `node`; empty when it can. */
export function reasonsAgainst(pod: Pod, node: Node, others: readonly Pod[]): readonly string[] {
  if (node.spec?.unschedulable === true) {
    const tainted: Node = { ...node, spec: { taints: [UNSCHEDULABLE] } };
    if (untoleratedTaint(pod, tainted, ['NoSchedule']) !== undefined) return ['node(s) were unschedulable'];
  }
  const taint = untoleratedTaint(pod, withReadiness(node), ['NoSchedule', 'NoExecute']);
  if (taint !== undefined) return [`node(s) had untolerated taint {${taint.key}: ${taint.value ?? ''}}`];
  if (!matchesNode(pod, node)) return ["node(s) didn't match Pod's node affinity/selector"];
  if (portConflict(pod, others)) return ["node(s) didn't have free ports for the requested pod ports"];
  return shortOf(pod, node, others);
}

/** A node that is not ready counts as tainted, so that those who tolerate it may still come. */
function withReadiness(node: Node): Node {
  const ready = node.status?.conditions?.find((c) => c.type === 'Ready');
  if (ready?.status === 'True') return node;
  return { ...node, spec: { ...node.spec, taints: [...(node.spec?.taints ?? []), NOT_READY] } };
}

function shortOf(pod: Pod, node: Node, others: readonly Pod[]): string[] {
  const allocatable = resourcesOf(node.status?.allocatable);
  const short: string[] = [];
  const slots = allocatable.get('pods');
  if (slots !== undefined && BigInt(others.length + 1) * 1_000_000_000n > slots.nano) short.push('Too many pods');
  for (const [name, wanted] of podRequests(pod)) {
    if (wanted.nano === 0n) continue;
    const used = others.reduce<Quantity>((sum, other) => {
      const request = podRequests(other).get(name);
      return request === undefined ? sum : addQuantities(sum, request);
    }, wanted);
    const free = allocatable.get(name);
    if (free === undefined || compareQuantities(used, free) > 0) short.push(`Insufficient ${name}`);
  }
  return short;
}

type HostPort = { readonly port: number; readonly protocol: string; readonly ip: string };

const hostPorts = (pod: Pod): HostPort[] =>
  [...pod.spec.containers, ...(pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === 'Always')].flatMap(
    (c) =>
      (c.ports ?? [])
        .filter((p) => (p.hostPort ?? 0) > 0)
        .map((p) => ({ port: p.hostPort ?? 0, protocol: p.protocol ?? 'TCP', ip: p.hostIP ?? '0.0.0.0' })),
  );

function portConflict(pod: Pod, others: readonly Pod[]): boolean {
  const wanted = hostPorts(pod);
  if (wanted.length === 0) return false;
  const any = '0.0.0.0';
  return others
    .flatMap(hostPorts)
    .some((used) =>
      wanted.some(
        (w) =>
          w.port === used.port && w.protocol === used.protocol && (w.ip === used.ip || w.ip === any || used.ip === any),
      ),
    );
}

/** `0/1 nodes are available: 1 Insufficient cpu. …` */
export function unschedulableMessage(nodes: number, reasons: readonly string[]): string {
  if (nodes === 0) return 'no nodes available to schedule pods';
  const counts = new Map<string, number>();
  for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  const list = [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ');
  return `0/${nodes} nodes are available: ${list}. preemption: 0/${nodes} nodes are available: ${nodes} Preemption is not helpful for scheduling.`;
}
