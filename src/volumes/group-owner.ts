// Gives volumes to a pod's fsGroup, and tells people when that takes long: many files make a pod start slowly, and
// nothing else would say why.
import type { EventRecorder } from '../core/events.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import type { Mounter } from '../host/mounts/mounter.ts';
import type { Clock, Timer } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { giveToGroup, type Ownership } from './ownership.ts';
import { giveToGroupElsewhere } from './ownership-elsewhere.ts';
import type { VolumeRequest } from './plugin.ts';

export type GroupOwnerDeps = {
  readonly clock: Clock;
  readonly events: EventRecorder;
  /** Says which volumes may not answer; without it none is expected to hang. */
  readonly mounter?: Pick<Mounter, 'table'>;
  readonly log?: Pick<Logger, 'warn'>;
};

const FIRST_NEWS_MS = 30_000;
const MORE_NEWS_MS = 60_000;
const REASON = 'VolumePermissionChangeInProgress';
const ADVICE =
  'consider using OnRootMismatch - https://kubernetes.io/docs/tasks/configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods';

export class GroupOwner {
  readonly #deps: GroupOwnerDeps;
  readonly #change: typeof giveToGroup;

  constructor(deps: GroupOwnerDeps, change = giveToGroup) {
    this.#deps = deps;
    this.#change = change;
  }

  /** Does nothing for a pod without an fsGroup. */
  async give(
    { pod, progress, ownershipChanged }: Pick<VolumeRequest, 'pod' | 'progress' | 'ownershipChanged'>,
    path: string,
    how: Omit<Ownership, 'gid'>,
    signal: AbortSignal,
  ): Promise<void> {
    const gid = pod.spec.securityContext?.fsGroup;
    if (gid === undefined) return;
    const { clock, events, mounter, log } = this.#deps;
    const place = placeIn(path, pod);
    const from = clock.monotonic();
    let files = 0;
    let succeeded = false;
    let refused: unknown;
    const onRefused = (err: unknown): void => void (refused ??= err);
    const warn = (text: string): void => {
      events.pod(pod, 'Warning', REASON, `Setting volume ownership for ${place}${text}`);
      timer = clock.after(MORE_NEWS_MS, () => warn(`, processed ${files} files.`));
    };
    let timer: Timer = clock.after(FIRST_NEWS_MS, () => warn(` is taking longer than expected, ${ADVICE}`));
    try {
      const onFile = (): void => progress(`giving its files to group ${gid}, ${++files} so far`);
      const mayHang = mounter !== undefined && !(await mounter.table(signal)).isLocal(path);
      if (mayHang) await giveToGroupElsewhere(clock, path, { gid, ...how }, signal, onFile, { onRefused });
      else await this.#change(path, { gid, ...how }, signal, onFile, onRefused);
      succeeded = true;
      if (refused !== undefined)
        log?.warn('not every file of a volume could be given to the group', { volume: place, gid, err: refused });
    } finally {
      timer.cancel();
      // What was found given already took nothing.
      if (files > 0 && (succeeded || !signal.aborted)) ownershipChanged?.(succeeded, (clock.monotonic() - from) / 1000);
    }
  }
}

/** From the pod's own directory on. */
const placeIn = (path: string, pod: Pod): string => {
  const at = path.indexOf(uidOf(pod));
  return at < 0 ? path : path.slice(at);
};
