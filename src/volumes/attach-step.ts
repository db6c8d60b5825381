// The step between resolving a volume and setting it up: some controller, or this node, attaches it.
import type { EventRecorder } from '../core/events.ts';
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Attachments } from './attachments.ts';
import type { ResolvedVolume } from './plugin.ts';
import type { Running, VolumeEntry } from './volume-entry.ts';

export type AttachStepDeps = {
  /** Absent where nothing is ever attached. */
  readonly attachments?: Pick<Attachments, 'whenAttached'>;
  /** False where no controller does it (`enableControllerAttachDetach`). */
  readonly controllerAttaches: boolean;
  readonly events: Pick<EventRecorder, 'pod'>;
  /** The node says which volumes it uses as soon as it is told to look. */
  readonly onChange: () => void;
};

/** The path it was attached at, which may be empty. Waits for a controller however long that takes: nothing here can hurry it. */
export function attachVolume(
  deps: AttachStepDeps,
  entry: VolumeEntry,
  running: Running,
  volume: { readonly pod: Pod; readonly resolved: ResolvedVolume },
): Promise<string> {
  // What nobody attaches counts as seen attached, as upstream.
  const byController = deps.controllerAttaches || entry.attachedName === undefined;
  return running.operations.attach(byController, () => attached(deps, entry, running, volume), running.scope.signal);
}

async function attached(
  deps: AttachStepDeps,
  entry: VolumeEntry,
  running: Running,
  { pod, resolved }: { readonly pod: Pod; readonly resolved: ResolvedVolume },
): Promise<string> {
  const name = entry.attachedName;
  const { attachments } = deps;
  if (name === undefined || attachments === undefined) return '';
  if (!deps.controllerAttaches) return attachHere(deps, entry, pod, resolved);
  const before = running.doing;
  running.awaitsAttach = name;
  running.doing = 'waiting for a controller to attach it';
  deps.onChange();
  try {
    return await attachments.whenAttached(name, running.scope.signal);
  } finally {
    delete running.awaitsAttach;
    running.doing = before;
  }
}

/** Kinds that this node can attach do it when they are set up. */
function attachHere({ events }: AttachStepDeps, entry: VolumeEntry, pod: Pod, { plugin }: ResolvedVolume): string {
  if (plugin.attachesOnNode !== true)
    throw new KubeletError('invalid', 'attaching volumes from the kubelet is not supported', {
      detail: { stage: 'AttachVolume.Attach' },
    });
  if (entry.actual.is === 'unmounted')
    events.pod(
      pod,
      'Normal',
      'SuccessfulAttachVolume',
      `AttachVolume.Attach succeeded for volume "${entry.specName}" `,
    );
  return '';
}

/** Whether it waits to be attached although nobody attaches such volumes any more. */
export function awaitsNobody({ running, resolved, wanted }: VolumeEntry, pod: Pod): boolean {
  if (running?.awaitsAttach === undefined || resolved === undefined || wanted === undefined) return false;
  return resolved.plugin.attachedName?.({ ...resolved, pod, volume: wanted }) === undefined;
}

/** Whether one of the volumes that wait to be attached waits in vain. */
export async function waitsInVain(entries: Iterable<VolumeEntry>, signal: AbortSignal): Promise<boolean> {
  for (const { running, resolved } of entries) {
    if (running?.awaitsAttach === undefined || resolved === undefined) continue;
    if ((await resolved.plugin.attachLimitReached?.(resolved, signal)) === true) return true;
  }
  return false;
}
