// What a drain leaves alone stays as it is: the cordon until somebody else takes it away, static pods, and the mark of an
// evicted pod. That pods of a DaemonSet are not stopped is seen with all others (`moments.ts`).
import type { Pod } from '../../../src/core/pod.ts';
import { MANIFESTS } from '../world/perform.ts';
import type { World } from '../world/world.ts';
import { podNameOf, type Invariant } from './violation.ts';

type Report = (invariant: string, text: string) => void;

export const cordonIsKept: Invariant = ({ cordon }) =>
  cordon.isSet === cordon.isWanted
    ? []
    : [`the node was ${cordon.isWanted ? '' : 'un'}cordoned, its object says otherwise`];

export function watchLeftAlone(world: World, report: Report): void {
  const called = world.onCall;
  world.onCall = (verb, request) => {
    called(verb, request);
    if (verb !== 'StopContainer' && verb !== 'RemoveContainer') return;
    const { containerId = '' } = request as { containerId?: string };
    const container = world.runtime.state.containers.get(containerId);
    if (container === undefined || !container.sandbox.ready || !world.running().includes(container)) return;
    if (world.faults.isEvicting || world.logind?.isEnding === true) return;
    const name = podNameOf(container);
    if (isManifest(world, name.replace(/-n1$/, '')))
      report('nothing needed is stopped', `${verb} of the static pod ${name}, whose manifest is there`);
  };
  watchMarks(world, report);
}

function isManifest({ files }: World, name: string): boolean {
  const { inode } = files.find(`${MANIFESTS}/${name}.json`, 'open');
  return inode?.content.toString().endsWith('}') === true;
}

/** The one who evicted a pod told so in its status: the agent, which owns the rest of it, leaves that there. */
function watchMarks({ api }: World, report: Report): void {
  api.store.onChange(({ resource, type, now, before }) => {
    if (resource !== 'pods' || type === 'DELETED' || before === undefined) return;
    const pod = now.object as unknown as Pod;
    const was = before.object as unknown as Pod;
    if (was.metadata.uid === pod.metadata.uid && isMarked(was) && !isMarked(pod))
      report('evicted stays marked', `${pod.metadata.name} was evicted, and its status does not tell so any more`);
  });
}

const isMarked = ({ status }: Pod): boolean =>
  status?.conditions?.some((c) => c.type === 'DisruptionTarget' && c.status === 'True') === true;
