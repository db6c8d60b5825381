// Pulls as the page shows them: one line per image, whoever waits for it. Pure.
import type { PullView as PullFacts } from '../images/pull-progress.ts';
import type { PullView } from './model.ts';

const MS_PER_SECOND = 1000;

export function pullViews(pulls: readonly PullFacts[]): readonly PullView[] {
  const byImage = new Map<string, PullView>();
  for (const pull of pulls) {
    const known = byImage.get(pull.image);
    const pod = `${pull.namespace}/${pull.pod}`;
    const pods = known === undefined ? [pod] : [...new Set([...known.pods, pod])];
    // The one that is further: the others wait for the same bytes.
    const view = known === undefined || pull.phase === 'pulling' ? viewOf(pull) : known;
    byImage.set(pull.image, { ...view, pods });
  }
  return [...byImage.values()];
}

function viewOf({ image, phase, sinceMs, pullingSinceMs, ahead, progress }: PullFacts): Omit<PullView, 'pods'> {
  return {
    image,
    state: phase,
    startedAtMs: pullingSinceMs ?? sinceMs,
    ...(ahead === undefined ? {} : { ahead }),
    ...(progress === undefined ? {} : progressView(progress)),
  };
}

const progressView = (progress: NonNullable<PullFacts['progress']>): Partial<PullView> => ({
  doneBytes: progress.doneBytes,
  ...(progress.totalBytes === undefined ? {} : { totalBytes: progress.totalBytes }),
  ...(progress.bytesPerSecond === undefined ? {} : { bytesPerSecond: progress.bytesPerSecond }),
  ...(progress.remainingSeconds === undefined ? {} : { leftMs: progress.remainingSeconds * MS_PER_SECOND }),
  layers: progress.layers.map(({ digest, doneBytes, totalBytes, done }) => ({
    name: digest,
    doneBytes,
    totalBytes,
    state: done ? 'done' : 'pulling',
  })),
});
