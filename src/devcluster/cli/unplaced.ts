// Pods that no node has yet: the kubelet knows nothing of them, so their why comes from the API server.
import { recordsAt, textAt, type Json } from '../api/objects.ts';
import { callApi } from './client.ts';
import type { Paths } from './paths.ts';

const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/Insufficient|Too many pods/, 'Ask for less, or delete pods that are not needed.'],
  [/were unschedulable/, 'Allow new pods on the node: kubectl uncordon NODE.'],
  [/persistentvolumeclaim .* not found/, 'Create the claim, or check its name in the pod.'],
  [/unbound immediate|unbound/, 'Look at the claim: kubectl describe pvc.'],
  [/node affinity\/selector/, 'Check nodeSelector and affinity of the pod against: kubectl get node --show-labels.'],
  [/untolerated taint/, 'Give the pod a toleration, or take the taint away: kubectl taint node NODE KEY-.'],
  [/free ports/, 'Another pod has the host port: choose another, or delete that pod.'],
  [/scheduling gates/, 'Whoever set the gate has to remove it.'],
];

/** What `why` says of it; undefined for a pod that is on a node, or that has ended. */
export function unplacedText(pod: Json): string | undefined {
  if (textAt(pod, 'spec', 'nodeName') !== '' || ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase')))
    return undefined;
  const name = `${textAt(pod, 'metadata', 'namespace')}/${textAt(pod, 'metadata', 'name')}`;
  const scheduler = textAt(pod, 'spec', 'schedulerName');
  if (scheduler !== '' && scheduler !== 'default-scheduler')
    return `${name}: The pod is on no node yet: it waits for the scheduler "${scheduler}", which this cluster does not have.\n`;
  const condition = recordsAt(pod, 'status', 'conditions').find((c) => c['type'] === 'PodScheduled');
  const message = textAt(condition, 'message').replace(/ preemption: .*$/s, '');
  if (message === '') return `${name}: The pod is on no node yet: the scheduler has not looked at it.\n`;
  const remedy = REMEDIES.find(([words]) => words.test(message))?.[1];
  return `${name}: The pod is on no node yet: ${message}\n${remedy === undefined ? '' : `What to do: ${remedy}\n`}`;
}

export type AskedPod = { readonly namespace: string; readonly name: string };

const NAMESPACE_FLAGS = ['-n', '--namespace'];
const VALUE_FLAGS = [...NAMESPACE_FLAGS, '-o', '--output', '--root-dir'];

/** The pod that the arguments of `why` name. */
export function askedPod(args: readonly string[]): AskedPod | undefined {
  let namespace = 'default';
  let word: string | undefined;
  for (let i = 0; i < args.length; i++) {
    const arg = args[i] ?? '';
    const [flag = '', value] = arg.split('=', 2);
    if (NAMESPACE_FLAGS.includes(flag)) namespace = value ?? args[i + 1] ?? namespace;
    if (VALUE_FLAGS.includes(arg)) i++;
    else if (!arg.startsWith('-')) word ??= arg;
  }
  if (word === undefined) return undefined;
  const [before = '', after] = word.split('/', 2);
  return after === undefined ? { namespace, name: before } : { namespace: before, name: after };
}

/** Of the pod, or of all pods when none is named; empty where there is nothing to say or nobody to ask. */
export async function unplaced(paths: Paths, asked: AskedPod | undefined): Promise<string> {
  const path =
    asked === undefined
      ? '/api/v1/pods'
      : `/api/v1/namespaces/${encodeURIComponent(asked.namespace)}/pods/${encodeURIComponent(asked.name)}`;
  try {
    const { status, body } = await callApi(paths, 'GET', path);
    if (status !== 200) return '';
    const pods = asked === undefined ? recordsAt(body, 'items') : [body];
    return pods.map((pod) => unplacedText(pod) ?? '').join('');
  } catch {
    // The cluster is down, which the kubelet's own answer says better.
    return '';
  }
}
