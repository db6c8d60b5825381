// How many CPUs of their own a container or a pod is to have. Pure.
import { isSidecar, type Container, type Pod } from '../../core/pod.ts';
import { hasPodLevelResources } from '../../core/pod-resources.ts';
import { qosClassOf } from '../../core/qos.ts';
import { quantity, toMilli, toNumber, type Quantity } from '../../core/quantity.ts';

/** Whether the managers also look after pods with resources of their own (gate `PodLevelResourceManagers`). */
export type PodLevelOption = { readonly podLevelManagers: boolean };

/** Zero: the container shares CPUs with others. */
export function exclusiveCpusOf(pod: Pod, container: Container, { podLevelManagers }: PodLevelOption): number {
  if (qosClassOf(pod) !== 'Guaranteed') return 0;
  if (hasPodLevelResources(pod) && (!podLevelManagers || !asksForItsLimits(container))) return 0;
  return wholeCpus(quantity(container.resources?.requests?.['cpu']));
}

/** Zero: the pod as a whole asks for none. Init containers run before the others and can lend them theirs. */
export function exclusiveCpusOfPod(pod: Pod, option: PodLevelOption): number {
  if (option.podLevelManagers && hasPodLevelResources(pod))
    return qosClassOf(pod) === 'Guaranteed' ? wholeCpus(quantity(pod.spec.resources?.requests?.['cpu'])) : 0;
  let sidecars = 0;
  let peak = 0;
  for (const container of pod.spec.initContainers ?? []) {
    const own = exclusiveCpusOf(pod, container, option);
    if (isSidecar(container)) sidecars += own;
    else peak = Math.max(peak, sidecars + own);
  }
  const main = pod.spec.containers.reduce((sum, container) => sum + exclusiveCpusOf(pod, container, option), 0);
  return Math.max(peak, sidecars + main);
}

const wholeCpus = (cpu: Quantity): number => (toNumber(cpu) * 1000 === toMilli(cpu) ? toNumber(cpu) : 0);

/** Whether the container on its own would make a pod Guaranteed. */
export const asksForItsLimits = ({ resources = {} }: Container): boolean =>
  ['cpu', 'memory'].every((name) => {
    const limit = quantity(resources.limits?.[name]);
    const request = quantity(resources.requests?.[name] ?? resources.limits?.[name]);
    return limit.nano > 0n && limit.nano === request.nano;
  });
