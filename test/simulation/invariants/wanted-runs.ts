// A pod that should run runs, after the longest back-off at the latest; one that should end ends.
import { containerNameOf, MINUTE, uidOf, type Invariant, type SeenPod } from './violation.ts';

/** The longest back-off of crashes and of pulls is five minutes; two of them may follow one another. */
const START_MS = 12 * MINUTE;
const END_MS = 180 * MINUTE;

export const wantedRuns: Invariant = ({ pods, manifests, running, overdue }) => {
  const alive = new Set(running.map((c) => `${uidOf(c)}/${containerNameOf(c)}`));
  const names = new Set(running.map((c) => c.config.labels['io.kubernetes.pod.name']));
  const wanted = [...pods.values()].filter((p) => !p.isDeleting && !p.hasEnded);
  const missing = wanted
    .filter((p) => p.fate === 'runs')
    .flatMap((p) => lastingContainers(p).map((name) => ({ p, name })))
    .filter(({ p, name }) => !alive.has(`${p.uid}/${name}`))
    .filter(({ p, name }) => overdue(`wanted ${p.uid}/${name}`, START_MS))
    .map(({ p, name }) => `${p.pod.metadata.name} (${p.kind}) is wanted, its container ${name} does not run`);
  const endless = wanted
    .filter((p) => p.fate === 'ends' && overdue(`ends ${p.uid}`, END_MS))
    .map((p) => `${p.pod.metadata.name} (${p.kind}) should have ended long ago`);
  const statics = [...manifests]
    .filter(([name, state]) => state === 'good' && !names.has(`${name}-n1`) && overdue(`static ${name}`, START_MS))
    .map(([name]) => `the static pod ${name} is wanted and does not run`);
  return [...missing, ...endless, ...statics];
};

const lastingContainers = ({ pod }: SeenPod): string[] => [
  ...(pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === 'Always').map((c) => c.name),
  ...pod.spec.containers.map((c) => c.name),
];
