// Makes the image of a container (or image volume) present, or says why not: name, policy, access, back-off, pull. The
// events are the Go kubelet's; the caller adds its own `Error: <reason>`.
import type { Image, ImageSpec, PodSandboxConfig } from '../cri/gen/cri.ts';
import type { CriImages } from '../cri/services.ts';
import { formatDurationMs } from '../core/duration.ts';
import type { EventRecorder, EventType } from '../core/events.ts';
import type { PodUid } from '../core/ids.ts';
import type { Secret } from '../core/node.ts';
import { namespaceOf, uidOf, type Pod } from '../core/pod.ts';
import type { Clock } from '../lib/clock.ts';
import { messageOf } from '../lib/errors.ts';
import { fullErrorText } from '../lib/grpc/status.ts';
import type { Logger } from '../lib/logger.ts';
import { Lru } from '../lib/lru.ts';
import type { Registry } from '../lib/metrics.ts';
import type { Partially } from '../lib/proto/codec.ts';
import { accessOf, grants, mayRecord, mustVerify, type AccessResult, type VerificationPolicy } from './access.ts';
import { imageMetrics, sizeLabel, type ImageMetrics } from './image-metrics.ts';
import type { Credential } from './keyring.ts';
import { PullBackoff } from './pull-backoff.ts';
import { ImageError, joinErrors, pullErrorText, pullFailure } from './pull-errors.ts';
import { PullQueue, type PullQueueOptions } from './pull-queue.ts';
import type { PullMeter } from './pull-meter.ts';
import type { PullView } from './pull-progress.ts';
import type { PullRecords } from './pull-records.ts';
import { reportPull, type PullReportDeps, type PullReportOptions } from './pull-reports.ts';
import { parseImageName, withDefaultTag, withoutTag } from './reference.ts';

export type ImageRequest = {
  readonly pod: Pod;
  /** Where events point to: `spec.containers{web}`; empty for the pod as a whole. */
  readonly fieldPath: string;
  /** As the pod's author wrote it. */
  readonly image: string;
  readonly policy: 'Always' | 'Never' | 'IfNotPresent' | undefined;
  readonly pullSecrets: readonly Secret[];
  readonly sandboxConfig: Partially<PodSandboxConfig>;
  readonly runtimeHandler: string;
  /** Called before a registry is asked. */
  readonly onPull?: (() => void) | undefined;
};

export type EnsuredImage = { readonly imageRef: string; readonly image: Image | undefined };

export interface CredentialFinder {
  forImage(
    pod: Pod,
    repository: string,
    pullSecrets: readonly Secret[],
    signal: AbortSignal,
  ): Promise<readonly Credential[]>;
}

export type ImagePullerDeps = {
  readonly images: CriImages;
  readonly credentials: CredentialFinder;
  readonly records: PullRecords;
  readonly events: EventRecorder;
  readonly clock: Clock;
  readonly log: Logger;
  readonly registry: Registry;
  /** Measures pulls while they last. */
  readonly meter?: Pick<PullMeter, 'begin' | 'progressOf'>;
  /** Told every ten seconds why a container waits for its image. */
  readonly onWaiting?: PullReportDeps['onWaiting'];
};

export type ImagePullerOptions = PullQueueOptions & {
  /** Feature gate KubeletEnsureSecretPulledImages: without it every pod may use what is present. */
  readonly verifyAccess?: boolean;
  readonly verification: VerificationPolicy;
  readonly allowlist: readonly string[];
  /** Feature gate RuntimeClassInImageCriApi. */
  readonly sendRuntimeHandler: boolean;
  /** When a long pull is told of, where not as usual. */
  readonly reports?: PullReportOptions;
};

type Ensuring = ImageRequest & {
  readonly uid: PodUid;
  readonly name: string;
  /** As the pod's author wrote it, without tag and digest: records and lists of images know it by that. */
  readonly written: string;
  readonly repository: string;
  readonly spec: Partially<ImageSpec>;
};
/** A pull that somebody waits for. */
type Waiting = { -readonly [K in keyof PullView]: PullView[K] } & { readonly name: string };
type PullAnswer = { readonly imageRef: string; readonly image: Image | undefined };

/** Of how many repositories the size of an image is remembered. */
const SIZES = 500;
/** So long a failed pull is shown as such, then as one that is backed off. */
const FAILURE_SHOWN_MS = 5000;

export class ImagePuller {
  readonly #deps: ImagePullerDeps;
  readonly #o: ImagePullerOptions;
  readonly #backoff = new PullBackoff();
  readonly #queue: PullQueue<PullAnswer>;
  readonly #metrics: ImageMetrics;
  readonly #verifyAccess: boolean;
  readonly #inProgress = new Set<Waiting>();
  /** What an image of a repository took, the one that was seen last: the next will be about as large. */
  readonly #sizes = new Lru<string, number>(SIZES);

  constructor(deps: ImagePullerDeps, options: ImagePullerOptions) {
    this.#deps = deps;
    this.#o = options;
    this.#verifyAccess = options.verifyAccess ?? true;
    this.#queue = new PullQueue(deps.clock, options);
    this.#metrics = imageMetrics(deps.registry, deps.records);
  }

  /** Reads the records of an earlier run. Before the first `ensure`. */
  async prepare(signal: AbortSignal): Promise<void> {
    const { images, log, records } = this.#deps;
    await records.load(async (image) => {
      try {
        return (await images.imageStatus({ image: { image: withDefaultTag(image) } }, signal)).image?.id;
      } catch (err) {
        log.warn('image of an interrupted pull cannot be looked up', { image, err });
        return undefined;
      }
    });
  }

  /** Throws ImageError (a ContainerStartError), or the abort's reason. */
  async ensure(request: ImageRequest, signal: AbortSignal): Promise<EnsuredImage> {
    const ensuring = this.#named(request);
    const policy = request.policy ?? (ensuring.name.endsWith(':latest') ? 'Always' : 'IfNotPresent');
    const present = policy === 'Always' ? undefined : await this.#inspect(ensuring, signal);
    const usable = present !== undefined && (await this.#mayUse(ensuring, present.id, signal));
    this.#metrics.ensureRequests.inc({
      present_locally: policy === 'Always' ? 'unknown' : String(present !== undefined),
      pull_policy: policy.toLowerCase(),
      // Nobody asks whether it would have to be pulled where it must not be.
      pull_required: policy === 'Never' && present === undefined ? 'unknown' : String(!usable),
    });
    if (present !== undefined && usable) {
      const access = this.#verifyAccess ? ' and can be accessed by the pod' : '';
      const text = `Container image ${quote(request.image)} already present on machine${access}`;
      this.#event(ensuring, 'Normal', 'Pulled', text);
      return { imageRef: present.id, image: present };
    }
    if (policy === 'Never') throw this.#neverPull(ensuring);
    return this.#pull(ensuring, signal);
  }

  /** When the earliest image back-off of this pod ends, on the monotonic clock. */
  nextRetryAt(podUid: PodUid): number | undefined {
    return this.#backoff.nextRetryAt(podUid, this.#deps.clock.monotonic());
  }

  /** Ends all image back-offs of a pod: it is gone, or somebody wants it tried at once. */
  forgetPod(podUid: PodUid): void {
    this.#backoff.forget(podUid);
  }

  /** What pods wait for right now, in the order of asking. */
  pulls(): readonly PullView[] {
    return [...this.#inProgress].map((waiting, ahead) => this.#viewOf(waiting, ahead));
  }

  #viewOf({ name, ...pull }: Waiting, ahead: number): PullView {
    if (pull.phase === 'queued') return { ...pull, ahead };
    const progress = this.#deps.meter?.progressOf(name);
    return progress === undefined ? pull : { ...pull, progress };
  }

  #named(request: ImageRequest): Ensuring {
    try {
      const name = withDefaultTag(request.image);
      const annotations = request.pod.metadata.annotations ?? {};
      const runtimeHandler = this.#o.sendRuntimeHandler ? request.runtimeHandler : '';
      const spec = { image: name, annotations, runtimeHandler };
      const [written, { repository }] = [withoutTag(request.image), parseImageName(name)];
      return { ...request, uid: uidOf(request.pod), name, written, repository, spec };
    } catch (err) {
      const message = `Failed to apply default image tag ${quote(request.image)}: ${messageOf(err)}`;
      this.#event(request, 'Warning', 'InspectFailed', message);
      throw new ImageError('InvalidImageName', message, undefined, err);
    }
  }

  async #inspect(ensuring: Ensuring, signal: AbortSignal): Promise<Image | undefined> {
    try {
      const { image } = await this.#deps.images.imageStatus({ image: ensuring.spec }, signal);
      if (image !== undefined) this.#sizes.set(ensuring.repository, image.size);
      return image;
    } catch (err) {
      signal.throwIfAborted();
      // Upstream names the image it did not find out about: an empty string.
      const message = `Failed to inspect image "": ${fullErrorText(err)}`;
      this.#event(ensuring, 'Warning', 'InspectFailed', message);
      throw new ImageError('ImageInspectError', message, undefined, err);
    }
  }

  /** A pod that may not use the image does not learn that it is here. */
  #neverPull(ensuring: Ensuring): ImageError {
    const message = `Container image ${quote(ensuring.image)} is not present with pull policy of Never`;
    this.#event(ensuring, 'Warning', 'ErrImageNeverPull', message);
    return new ImageError('ErrImageNeverPull', message);
  }

  /** Whether this pod may use the image that is here without asking the registry. */
  async #mayUse(ensuring: Ensuring, imageRef: string, signal: AbortSignal): Promise<boolean> {
    if (!this.#verifyAccess) return true;
    const { records } = this.#deps;
    const { image, written, repository } = ensuring;
    const check = (result: AccessResult): boolean => {
      this.#metrics.mustPullChecks.inc({ result });
      return result !== 'mustAuthenticate';
    };
    const preloaded = !records.ours(image, imageRef);
    if (!mustVerify(this.#o.verification, this.#o.allowlist, written, preloaded))
      return check('credentialPolicyAllowed');
    const known = records.recordOf(imageRef)?.credentialMapping ?? {};
    const access = known[written] ?? known[repository];
    if (access?.nodePodsAccessible === true) return check('credentialRecordFound');
    if (access === undefined) return check('mustAuthenticate');
    const credentials = await this.#credentials(ensuring, signal);
    const shown = credentials.find((c) => grants(access, [c]));
    if (shown === undefined) return check('mustAuthenticate');
    if (mayRecord(access)) await records.allow(imageRef, written, accessOf(shown));
    return check('credentialRecordFound');
  }

  async #credentials(ensuring: Ensuring, signal: AbortSignal): Promise<readonly Credential[]> {
    const { pod, repository, pullSecrets } = ensuring;
    try {
      return await this.#deps.credentials.forImage(pod, repository, pullSecrets, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw this.#failed(ensuring, messageOf(err), err);
    }
  }

  async #pull(ensuring: Ensuring, signal: AbortSignal): Promise<EnsuredImage> {
    const { clock } = this.#deps;
    const { uid, name, image } = ensuring;
    const begun = clock.monotonic();
    const waiting = this.#backoff.waiting(uid, name, begun);
    if (waiting !== undefined) {
      const message = `Back-off pulling image ${quote(image)}`;
      this.#event(ensuring, 'Normal', 'BackOff', message);
      const retryAt = clock.now() + (waiting.untilMs - begun);
      throw new ImageError('ImagePullBackOff', `${message}: ${waiting.lastError}`, retryAt);
    }
    ensuring.onPull?.();
    this.#event(ensuring, 'Normal', 'Pulling', `Pulling image ${quote(image)}`);
    const credentials = await this.#credentials(ensuring, signal);
    const { value, tookMs } = await this.#queued(ensuring, credentials, signal);
    const size = value.image?.size ?? 0;
    this.#sizes.set(ensuring.repository, size);
    const totalMs = Math.floor(clock.monotonic() - begun);
    const [took, total] = [Math.floor(tookMs), totalMs].map(formatDurationMs);
    this.#event(
      ensuring,
      'Normal',
      'Pulled',
      `Successfully pulled image ${quote(image)} in ${took} (${total} including waiting). Image size: ${size} bytes.`,
    );
    this.#metrics.pullDuration.observe(totalMs / 1000, { image_size_in_bytes: sizeLabel(size) });
    this.#backoff.prune(clock.monotonic());
    return value;
  }

  async #queued(ensuring: Ensuring, credentials: readonly Credential[], signal: AbortSignal) {
    const { clock, meter } = this.#deps;
    const { name, repository } = ensuring;
    const entry: Waiting = {
      name,
      podUid: ensuring.uid,
      namespace: namespaceOf(ensuring.pod),
      pod: ensuring.pod.metadata.name,
      image: ensuring.image,
      phase: 'queued',
      sinceMs: clock.now(),
    };
    this.#inProgress.add(entry);
    const logins = credentials.map(({ username, password }) => [username, password]);
    const key = JSON.stringify([name, ensuring.spec.runtimeHandler, logins]);
    let endMetering: (() => void) | undefined;
    const onStart = (): void => {
      if (!this.#inProgress.has(entry)) return;
      entry.phase = 'pulling';
      entry.pullingSinceMs = clock.now();
      endMetering = meter?.begin(name, repository, credentials);
    };
    const turn = { registry: repository.split('/', 1)[0] ?? '', sizeBytes: this.#sizes.get(repository) };
    const view = (): PullView => this.#viewOf(entry, [...this.#inProgress].indexOf(entry));
    const endReports = reportPull(this.#deps, ensuring, view, this.#o.reports);
    try {
      return await this.#queue.run(key, turn, (s) => this.#pullRecorded(ensuring, credentials, s), onStart, signal);
    } catch (err) {
      signal.throwIfAborted();
      throw this.#failed(ensuring, pullErrorText(err), err);
    } finally {
      endReports();
      this.#inProgress.delete(entry);
      endMetering?.();
    }
  }

  /** One pull on the runtime, with its intent and record on disk. */
  async #pullRecorded(
    ensuring: Ensuring,
    credentials: readonly Credential[],
    signal: AbortSignal,
  ): Promise<PullAnswer> {
    const { images, records } = this.#deps;
    const { image: asked, written } = ensuring;
    await records.begin(asked);
    try {
      const { imageRef, used } = await this.#tryEach(ensuring, credentials, signal);
      let image: Image | undefined;
      try {
        ({ image } = await images.imageStatus({ image: { ...ensuring.spec, image: imageRef } }, signal));
      } finally {
        // Some runtimes answer a pull with a digest; a present image is always known by its id.
        await records.succeeded(asked, image?.id ?? imageRef, written, accessOf(used));
      }
      return { imageRef, image };
    } catch (err) {
      await records.failed(asked);
      throw err;
    }
  }

  async #tryEach(
    { spec, sandboxConfig }: Ensuring,
    credentials: readonly Credential[],
    signal: AbortSignal,
  ): Promise<{ imageRef: string; used: Credential | undefined }> {
    const errors: unknown[] = [];
    for (const used of credentials.length === 0 ? [undefined] : credentials) {
      try {
        const auth = used === undefined ? undefined : { username: used.username, password: used.password };
        const { imageRef } = await this.#deps.images.pullImage({ image: spec, auth, sandboxConfig }, signal);
        return { imageRef, used };
      } catch (err) {
        signal.throwIfAborted();
        errors.push(err);
      }
    }
    if (errors.length === 1) throw errors[0];
    throw new Error(joinErrors(errors.map(pullErrorText)), { cause: errors.at(-1) });
  }

  /** Counts the failure and tells it; the next try waits. */
  #failed(ensuring: Ensuring, text: string, cause: unknown): ImageError {
    const { clock } = this.#deps;
    const { uid, name, image } = ensuring;
    this.#event(ensuring, 'Warning', 'Failed', `Failed to pull image ${quote(image)}: ${text}`);
    const { reason, message } = pullFailure(image, text);
    const now = clock.monotonic();
    this.#backoff.failed(uid, name, now, `${reason}: ${message}`);
    const until = this.#backoff.waiting(uid, name, now)?.untilMs ?? now;
    return new ImageError(reason, message, clock.now() + Math.min(until - now, FAILURE_SHOWN_MS), cause);
  }

  #event(request: ImageRequest, type: EventType, reason: string, message: string): void {
    const { pod, fieldPath } = request;
    this.#deps.events.pod(pod, type, reason, message, fieldPath === '' ? {} : { fieldPath });
  }
}

const quote = (text: string): string => JSON.stringify(text);
