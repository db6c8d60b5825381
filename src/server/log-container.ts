// Which instance of a container's logs are meant, by the pod's status, and what to say when there is none. Pure.
import type { ContainerStatus, Pod } from '../core/pod.ts';

export type ChosenLog =
  | {
      readonly ok: true;
      readonly containerId: string;
      /** As the status has it, with the runtime's name before it. */
      readonly fullId: string;
    }
  | { readonly ok: false; readonly why: string };

export function logContainerOf(pod: Pod, container: string, previous: boolean): ChosenLog {
  const { status } = pod;
  const where = `container ${JSON.stringify(container)} in pod ${JSON.stringify(pod.metadata.name)}`;
  const found = [
    ...(status?.containerStatuses ?? []),
    ...(status?.initContainerStatuses ?? []),
    ...(status?.ephemeralContainerStatuses ?? []),
  ].find((s) => s.name === container);
  if (found === undefined) return no(`${where} is not available`);
  const last = found.lastState.terminated?.containerID ?? '';
  if (previous) return last === '' ? no(`previous terminated ${where} not found`) : yes(last);
  return current(found, last, where);
}

function current({ state, containerID, lastState }: ContainerStatus, last: string, where: string): ChosenLog {
  if (state.running !== undefined) return yes(containerID ?? '');
  if (state.terminated !== undefined) {
    const own = state.terminated.containerID ?? '';
    const id = own === '' ? last : own;
    return id === '' ? no(`${where} is terminated`) : yes(id);
  }
  if (lastState.terminated !== undefined) return last === '' ? no(`${where} is terminated`) : yes(last);
  if (state.waiting !== undefined) return no(`${where} is waiting to start: ${waitingFor(state.waiting.reason)}`);
  return no(`${where} is waiting to start - no logs yet`);
}

function waitingFor(reason: string | undefined): string {
  if (reason === 'ErrImagePull') return "image can't be pulled";
  if (reason === 'ImagePullBackOff') return 'trying and failing to pull image';
  return reason ?? '';
}

/** `containerd://abc` → `abc` */
const yes = (fullId: string): ChosenLog => ({ ok: true, containerId: fullId.replace(/^[^:]*:\/\//, ''), fullId });
const no = (why: string): ChosenLog => ({ ok: false, why });
