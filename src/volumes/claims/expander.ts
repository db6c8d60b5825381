// Grows volumes on this node when their claims were given more space: after a mount, and while containers use them.
import type { EventRecorder, EventType } from '../../core/events.ts';
import type { PersistentVolumeClaim } from '../../core/storage.ts';
import { apiTime } from '../../core/time.ts';
import type { Clock } from '../../lib/clock.ts';
import { isFault, KubeletError, messageOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/logger.ts';
import type { MountedVolume, VolumePlugin, VolumeRequest } from '../plugin.ts';
import {
  begunPatch,
  expansionOf,
  failedPatch,
  grownPatch,
  isGivenUp,
  isHopelessCode,
  type Expansion,
} from './expansion.ts';

export type ClaimEvents = {
  claim(claim: PersistentVolumeClaim, type: EventType, reason: string, message: string): void;
};

export type ExpanderDeps = {
  readonly patchClaim: (
    claim: PersistentVolumeClaim,
    patch: object,
    signal: AbortSignal,
  ) => Promise<PersistentVolumeClaim>;
  readonly events: Pick<EventRecorder, 'pod'> & ClaimEvents;
  readonly clock: Clock;
  readonly log: Logger;
};

type Work = {
  readonly request: VolumeRequest;
  readonly claim: PersistentVolumeClaim;
  readonly expansion: Expansion;
  readonly plugin: VolumePlugin;
  readonly mounted: MountedVolume;
};

/** Where a mount is said to fail when its expansion does. */
const STAGE = { Filesystem: 'MountVolume.Setup failed', Block: 'MapVolume.MarkVolumeAsMounted failed' } as const;

export class Expander {
  readonly #deps: ExpanderDeps;
  /** Volumes whose driver wants them out of use first, by pod and volume. */
  readonly #notInUse = new Set<string>();

  constructor(deps: ExpanderDeps) {
    this.#deps = deps;
  }

  /**
   * Does nothing for a volume that is as large as it should be. `inUse`: it was mounted before; `here`: how large it is on
   * this node, as an earlier call said.
   */
  async expand(
    request: VolumeRequest,
    plugin: VolumePlugin,
    mounted: MountedVolume,
    { inUse, here }: { readonly inUse: boolean; readonly here: string | undefined },
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { persistent, pod, specName } = request;
    if (persistent?.claim === undefined || plugin.expand === undefined) return here;
    const { claim, volume } = persistent;
    const key = `${pod.metadata.uid ?? ''}/${specName}`;
    if (!inUse) this.#notInUse.delete(key);
    const before = here ?? claim.status?.capacity?.['storage'];
    const expansion = expansionOf(claim, volume, before);
    if (expansion === undefined || this.#notInUse.has(key)) return before;
    if (request.readOnly) {
      // Under a running pod upstream does not look at such volumes.
      if (!inUse) this.#refuseReadOnly(request, claim);
      return expansion.size;
    }
    try {
      await this.#grow({ request, claim, expansion, plugin, mounted }, signal);
      return expansion.size;
    } catch (err) {
      signal.throwIfAborted();
      if (codeOf(err) === 'FailedPrecondition') {
        this.#notInUse.add(key);
        this.#deps.log.warn('volume could not be expanded yet', { volume: specName, err });
        return before;
      }
      const stage = inUse
        ? 'NodeExpandVolume.NodeExpandVolume failed'
        : `${STAGE[request.volumeMode]} while expanding volume`;
      throw new KubeletError('unavailable', messageOf(err), { cause: err, detail: { stage } });
    }
  }

  /** The pod is over. */
  forget(uid: string): void {
    for (const key of this.#notInUse) if (key.startsWith(`${uid}/`)) this.#notInUse.delete(key);
  }

  async #grow({ request, claim, expansion, plugin, mounted }: Work, signal: AbortSignal): Promise<void> {
    const begun = expansion.tracked ? begunPatch(claim) : undefined;
    const before = begun === undefined ? claim : await this.#deps.patchClaim(claim, begun, signal);
    request.progress(`waiting for the driver to grow it to ${expansion.size}`);
    try {
      await plugin.expand?.(request, mounted, expansion.bytes, signal);
    } catch (err) {
      signal.throwIfAborted();
      if (expansion.tracked) await this.#tellFailure(before, expansion, err, signal);
      else if (isFault(err, 'unimplemented')) return;
      throw err;
    }
    const { pod, specName } = request;
    const message = `MountVolume.NodeExpandVolume succeeded for volume "${specName}" ${pod.spec.nodeName ?? ''}`;
    this.#tell(request, claim, 'Normal', 'FileSystemResizeSuccessful', message);
    if (expansion.elsewhere !== true) await this.#deps.patchClaim(before, grownPatch(before, expansion.size), signal);
  }

  async #tellFailure(
    claim: PersistentVolumeClaim,
    { size }: Expansion,
    err: unknown,
    signal: AbortSignal,
  ): Promise<void> {
    // Nobody was asked: that says nothing about the volume.
    if (isFault(err) && err.detail['driverAway'] === true) return;
    const isHopeless = isHopelessCode(codeOf(err)) || isGivenUp(claim, size);
    const patch = failedPatch(claim, messageOf(err), isHopeless, apiTime(this.#deps.clock.now()));
    await this.#deps.patchClaim(claim, patch, signal).catch((failure: unknown) => {
      this.#deps.log.warn('the claim was not told of a failed expansion', {
        claim: claim.metadata.name,
        err: failure,
      });
    });
  }

  #refuseReadOnly(request: VolumeRequest, claim: PersistentVolumeClaim): void {
    const message = `MountVolume.NodeExpandVolume failed for volume "${request.specName}" requested read-only file system`;
    this.#tell(request, claim, 'Warning', 'FileSystemResizeFailed', message);
  }

  #tell({ pod }: VolumeRequest, claim: PersistentVolumeClaim, type: EventType, reason: string, message: string): void {
    const { events } = this.#deps;
    events.pod(pod, type, reason, message);
    events.claim(claim, type, reason, message);
  }
}

/** What a driver answered, if one did. */
const codeOf = (err: unknown): unknown => (isFault(err) ? err.detail['grpcCode'] : undefined);
