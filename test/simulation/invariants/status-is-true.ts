// What the API server is told of a pod becomes the truth, and stays it: running containers are shown running, with the right
// identifier and count of restarts, and nothing is Ready that does not run.
import { containerNameOf, MINUTE, uidOf, type Invariant } from './violation.ts';

const LAG_MS = MINUTE;

export const statusIsTrue: Invariant = ({ pods, running, overdue }) => {
  const byName = new Map(running.map((c) => [`${uidOf(c)}/${containerNameOf(c)}`, c]));
  return [...pods.values()]
    .filter((p) => !p.isDeleting)
    .flatMap(({ uid, pod }) => {
      const shown = [...(pod.status?.initContainerStatuses ?? []), ...(pod.status?.containerStatuses ?? [])];
      const isInit = new Set(pod.spec.initContainers?.map((c) => c.name));
      return shown.flatMap((status) => {
        const real = byName.get(`${uid}/${status.name}`);
        const says = status.state?.running === undefined ? '' : (status.containerID ?? '').replace(/^\w+:\/\//, '');
        const where = `${pod.metadata.name}/${status.name}`;
        const count = Number(real?.config.annotations['io.kubernetes.container.restartCount'] ?? status.restartCount);
        const texts: string[] = [];
        if (says !== (real?.id ?? '') && overdue(`status ${uid}/${status.name} ${real?.id ?? ''}`, LAG_MS))
          texts.push(
            `${where} is shown as running ${says.slice(0, 8) || 'not at all'}, in truth ${real?.id.slice(0, 8) ?? 'not at all'}`,
          );
        if (
          real === undefined &&
          status.ready &&
          !isInit.has(status.name) &&
          overdue(`ready ${uid}/${status.name}`, LAG_MS)
        )
          texts.push(`${where} is shown as ready and does not run`);
        if (
          real !== undefined &&
          count !== status.restartCount &&
          overdue(`count ${uid}/${status.name} ${real.id}`, LAG_MS)
        )
          texts.push(`${where} is shown with ${status.restartCount} restarts, in truth ${count}`);
        return texts;
      });
    });
};
