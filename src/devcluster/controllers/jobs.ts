// Jobs: pods until enough have succeeded or too many have failed. A finished pod is counted exactly once, also when it
// is deleted or we are killed in between: it keeps a finalizer until its UID stands in the job's status.
import { apiTime, parseTimeMs } from '../../core/time.ts';
import { deleteObject } from '../api/deletion.ts';
import {
  at,
  keyOf,
  numberAt,
  recordAt,
  recordsAt,
  textAt,
  textsAt,
  type ApiObject,
  type Json,
} from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { Workload } from './workload.ts';
import { isActive, isFinished, isPodReady, withCondition } from './workload-pods.ts';

const STORAGE = 'batch/jobs';
const TRACKING = 'batch.kubernetes.io/job-tracking';
const FIRST_BACKOFF_MS = 10_000;
const MAX_BACKOFF_MS = 600_000;

const isDone = (job: ApiObject): boolean =>
  recordsAt(job, 'status', 'conditions').some(
    (c) => ['Complete', 'Failed'].includes(textAt(c, 'type')) && c['status'] === 'True',
  );

export class JobController implements Controller {
  readonly name = 'jobs';
  readonly #deps: ControllerDeps;
  readonly #workload: Workload;
  readonly #wake: (key: string) => void;

  constructor(deps: ControllerDeps, wake: (key: string) => void) {
    this.#deps = deps;
    this.#workload = new Workload(deps.registry, {
      kind: 'Job',
      storage: STORAGE,
      owns: 'pods',
      component: 'job-controller',
    });
    this.#wake = wake;
  }

  initialKeys(): readonly string[] {
    return this.#workload.keys();
  }

  keysOf(change: Change): readonly string[] {
    return this.#workload.keysOf(change);
  }

  reconcile(key: string): void {
    const job = this.#workload.read(key);
    if (job === undefined) return this.#releaseOrphans(key);
    this.#count(job);
    const counted = this.#workload.read(key);
    if (counted === undefined) return;
    if (isDone(counted)) return this.#expire(key, counted);
    if (counted.metadata.deletionTimestamp === undefined) this.#drive(key, counted);
    const now = this.#workload.read(key);
    if (now !== undefined && !isDone(now)) this.#report(now);
  }

  /** Pods of a job that is gone need nobody's count any more. */
  #releaseOrphans(key: string): void {
    const [namespace, name] = key.split('/');
    for (const stored of this.#deps.registry.store.list('pods', namespace)) {
      const pod = stored.object as ApiObject;
      const owned = pod.metadata.ownerReferences?.some((r) => r.kind === 'Job' && r.name === name);
      if (owned === true && pod.metadata.finalizers?.includes(TRACKING) === true) this.#release(pod);
    }
  }

  #count(job: ApiObject): void {
    const pods = this.#workload.owned(job);
    const tracked = pods.filter((p) => p.metadata.finalizers?.includes(TRACKING) === true);
    const over = tracked.filter(
      (p) => isFinished(p) || (p.metadata.deletionTimestamp !== undefined && textAt(p, 'spec', 'nodeName') === ''),
    );
    const uncounted = recordAt(job, 'status', 'uncountedTerminatedPods');
    const lists = { succeeded: [...textsAt(uncounted, 'succeeded')], failed: [...textsAt(uncounted, 'failed')] };
    for (const pod of over) {
      const list = textAt(pod, 'status', 'phase') === 'Succeeded' ? lists.succeeded : lists.failed;
      const uid = pod.metadata.uid ?? '';
      if (!lists.succeeded.includes(uid) && !lists.failed.includes(uid)) list.push(uid);
    }
    if (lists.succeeded.length + lists.failed.length === 0) return;
    const status = recordAt(job, 'status');
    this.#workload.writeStatus(job, { ...status, uncountedTerminatedPods: lists });
    for (const pod of tracked)
      if ([...lists.succeeded, ...lists.failed].includes(pod.metadata.uid ?? '')) this.#release(pod);
    const fresh = this.#workload.read(keyOf(job.metadata.namespace, job.metadata.name)) ?? job;
    this.#workload.writeStatus(fresh, {
      ...recordAt(fresh, 'status'),
      succeeded: (numberAt(status, 'succeeded') ?? 0) + lists.succeeded.length || undefined,
      failed: (numberAt(status, 'failed') ?? 0) + lists.failed.length || undefined,
      uncountedTerminatedPods: {},
    });
  }

  #release(pod: ApiObject): void {
    const { name, namespace = '' } = pod.metadata;
    this.#deps.registry.modify(
      resourceNamed('pods'),
      namespace,
      name,
      (draft) => {
        const rest = (draft.metadata.finalizers ?? []).filter((f) => f !== TRACKING);
        if (rest.length > 0) draft.metadata.finalizers = rest;
        else delete draft.metadata.finalizers;
        return draft;
      },
      systemContext(),
    );
  }

  /** One decision: finished, failed, fewer pods, more pods, or wait. */
  #drive(key: string, job: ApiObject): void {
    const { clock } = this.#deps;
    const spec = recordAt(job, 'spec');
    const succeeded = numberAt(job, 'status', 'succeeded') ?? 0;
    const failed = numberAt(job, 'status', 'failed') ?? 0;
    const active = this.#workload.owned(job).filter(isActive);
    if (spec['suspend'] === true) {
      for (const pod of active) this.#workload.deletePod(job, pod);
      return;
    }
    const started = textAt(job, 'status', 'startTime');
    const deadline = numberAt(spec, 'activeDeadlineSeconds');
    if (deadline !== undefined && started !== '') {
      const left = parseTimeMs(started) + deadline * 1000 - clock.now();
      if (left <= 0)
        return this.#fail(job, active, 'DeadlineExceeded', 'Job was active longer than specified deadline');
      clock.after(left, () => this.#wake(key));
    }
    const limit = numberAt(spec, 'backoffLimit') ?? 6;
    const restarts = active.reduce((sum, p) => sum + restartsOf(p), 0);
    const tooMany =
      failed > limit ||
      (textAt(spec, 'template', 'spec', 'restartPolicy') === 'OnFailure' && limit > 0 && restarts >= limit);
    if (tooMany) return this.#fail(job, active, 'BackoffLimitExceeded', 'Job has reached the specified backoff limit');
    const completions = numberAt(spec, 'completions');
    const complete = completions === undefined ? succeeded > 0 && active.length === 0 : succeeded >= completions;
    if (complete) return this.#complete(job);
    const parallelism = numberAt(spec, 'parallelism') ?? 1;
    const wanted =
      completions === undefined
        ? succeeded > 0
          ? active.length
          : parallelism
        : Math.min(parallelism, completions - succeeded);
    for (const pod of active.slice(Math.max(0, wanted))) this.#workload.deletePod(job, pod);
    if (active.length < wanted && this.#mayStart(key, job, failed))
      for (let i = active.length; i < wanted; i++) this.#workload.createPod(job, tracked);
  }

  /** After a failure the next try waits, twice as long each time. */
  #mayStart(key: string, job: ApiObject, failed: number): boolean {
    if (failed === 0) return true;
    const { clock } = this.#deps;
    const ends = this.#workload
      .owned(job)
      .filter((p) => textAt(p, 'status', 'phase') === 'Failed')
      .map((p) => Math.max(parseTimeMs(p.metadata.creationTimestamp), ...finishTimes(p)));
    const last = Math.max(0, ...ends);
    const left = last + Math.min(FIRST_BACKOFF_MS * 2 ** (failed - 1), MAX_BACKOFF_MS) - clock.now();
    if (left <= 0) return true;
    clock.after(left, () => this.#wake(key));
    return false;
  }

  #complete(job: ApiObject): void {
    const message = 'Reached expected number of succeeded pods';
    const completionTime = apiTime(this.#deps.clock.now());
    this.#finish(job, ['SuccessCriteriaMet', 'Complete'], 'CompletionsReached', message, { completionTime });
    this.#workload.tell(job, { type: 'Normal', reason: 'Completed', message: 'Job completed' });
  }

  #fail(job: ApiObject, active: readonly ApiObject[], reason: string, message: string): void {
    for (const pod of active) this.#workload.deletePod(job, pod);
    this.#finish(job, ['FailureTarget', 'Failed'], reason, message, {});
    this.#workload.tell(job, { type: 'Warning', reason, message });
  }

  /** Two conditions: that it is decided, and that it is over. */
  #finish(job: ApiObject, types: readonly string[], reason: string, message: string, more: Json): void {
    const now = apiTime(this.#deps.clock.now());
    const conditions = types.reduce<readonly Json[]>(
      (all, type) => withCondition(all, { type, status: 'True', reason, message, lastProbeTime: now }, now),
      recordsAt(job, 'status', 'conditions'),
    );
    const { active: _a, ...status } = recordAt(job, 'status');
    this.#workload.writeStatus(job, { ...status, conditions, ready: 0, terminating: 0, ...more });
  }

  #expire(key: string, job: ApiObject): void {
    const seconds = numberAt(job, 'spec', 'ttlSecondsAfterFinished');
    if (seconds === undefined || job.metadata.deletionTimestamp !== undefined) return;
    const { clock, registry } = this.#deps;
    const ended = recordsAt(job, 'status', 'conditions').map((c) => parseTimeMs(textAt(c, 'lastTransitionTime')));
    const left = Math.max(0, ...ended) + seconds * 1000 - clock.now();
    if (left > 0) clock.after(left, () => this.#wake(key));
    else
      deleteObject(
        registry,
        resourceNamed(STORAGE),
        job.metadata.namespace ?? '',
        job.metadata.name,
        { propagationPolicy: 'Background' },
        systemContext(),
      );
  }

  #report(job: ApiObject): void {
    const { clock } = this.#deps;
    const pods = this.#workload.owned(job);
    const active = pods.filter(isActive);
    const now = apiTime(clock.now());
    const suspended = at(job, 'spec', 'suspend') === true;
    const before = recordsAt(job, 'status', 'conditions');
    const condition = {
      type: 'Suspended',
      status: suspended ? 'True' : 'False',
      reason: suspended ? 'JobSuspended' : 'JobResumed',
      message: suspended ? 'Job suspended' : 'Job resumed',
      lastProbeTime: now,
    };
    const known = before.some((c) => c['type'] === 'Suspended' && c['status'] === condition.status);
    const conditions =
      (suspended || before.some((c) => c['type'] === 'Suspended')) && !known
        ? withCondition(before, condition, now)
        : before;
    this.#workload.writeStatus(job, {
      ...recordAt(job, 'status'),
      conditions: conditions.length > 0 ? conditions : undefined,
      active: active.length || undefined,
      ready: active.filter(isPodReady).length,
      terminating: pods.filter((p) => p.metadata.deletionTimestamp !== undefined && !isFinished(p)).length,
      startTime: suspended ? undefined : textAt(job, 'status', 'startTime') || now,
      uncountedTerminatedPods: recordAt(job, 'status', 'uncountedTerminatedPods'),
    });
  }
}

const tracked = (body: Json): Json => ({
  ...body,
  metadata: { ...recordAt(body, 'metadata'), finalizers: [...textsAt(body, 'metadata', 'finalizers'), TRACKING] },
});

const restartsOf = (pod: ApiObject): number =>
  [...recordsAt(pod, 'status', 'containerStatuses'), ...recordsAt(pod, 'status', 'initContainerStatuses')].reduce(
    (sum, s) => sum + (numberAt(s, 'restartCount') ?? 0),
    0,
  );

const finishTimes = (pod: ApiObject): number[] =>
  recordsAt(pod, 'status', 'containerStatuses').map((s) =>
    parseTimeMs(textAt(s, 'state', 'terminated', 'finishedAt') || undefined),
  );
