// Which filesystems the runtime uses beside the kubelet's. A runtime or disk that does not answer in time changes nothing: the
// layout is as it was last seen, so that memory is watched also while the runtime hangs.
import { abortable, withDeadline } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import type { DiskLayout } from './figures.ts';

type Filesystem = { readonly fsId?: { readonly mountpoint: string } | undefined };

export type DiskLayoutsDeps = {
  readonly imageFsInfo: (signal: AbortSignal) => Promise<{
    readonly imageFilesystems: readonly Filesystem[];
    readonly containerFilesystems: readonly Filesystem[];
  }>;
  /** Number of the device that holds a path. */
  readonly deviceOf: (path: string) => Promise<number>;
  readonly clock: Clock;
  readonly log: Logger;
};

/** Devices of the kubelet's root directory, of images and of writable layers; undefined where the runtime names none. */
export type Devices = { readonly own: number; readonly images?: number; readonly containers?: number };

const PATIENCE_MS = 5000;
/** A layout changes with the runtime's configuration, if ever: it need not be asked for at every look. */
const KEPT_MS = 300_000;

export class DiskLayouts {
  readonly #deps: DiskLayoutsDeps;
  readonly #rootDir: string;
  #last: DiskLayout = 'shared';
  #readAt = -Infinity;

  constructor(deps: DiskLayoutsDeps, rootDir: string) {
    this.#deps = deps;
    this.#rootDir = rootDir;
  }

  /** Rejects only when `signal` aborts. */
  async read(signal: AbortSignal): Promise<DiskLayout> {
    const { clock, log } = this.#deps;
    if (clock.monotonic() - this.#readAt < KEPT_MS) return this.#last;
    try {
      this.#last = layoutOf(
        await withDeadline(clock, signal, PATIENCE_MS, (own) => abortable(own, this.#devices(own))),
      );
      this.#readAt = clock.monotonic();
    } catch (err) {
      signal.throwIfAborted();
      log.warn('the filesystems of the runtime are not known, taken as they were', { layout: this.#last, err });
    }
    return this.#last;
  }

  async #devices(signal: AbortSignal): Promise<Devices> {
    const { imageFsInfo, deviceOf } = this.#deps;
    const { imageFilesystems, containerFilesystems } = await imageFsInfo(signal);
    const [own, images, containers] = await Promise.all(
      [this.#rootDir, imageFilesystems[0]?.fsId?.mountpoint, containerFilesystems[0]?.fsId?.mountpoint].map((path) =>
        path === undefined ? Promise.resolve(undefined) : deviceOf(path),
      ),
    );
    return {
      own: own ?? 0,
      ...(images === undefined ? {} : { images }),
      ...(containers === undefined ? {} : { containers }),
    };
  }
}

export function layoutOf({ own, images = own, containers = images }: Devices): DiskLayout {
  if (containers !== images) return 'split';
  return images === own ? 'shared' : 'dedicated';
}
