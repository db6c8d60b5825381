// Cron jobs: a job at every time of the schedule, no more of the finished ones than asked for.
import { apiTime, parseTimeMs } from '../../core/time.ts';
import type { Timer } from '../../lib/clock.ts';
import { ApiError } from '../api/api-error.ts';
import { deleteObject } from '../api/deletion.ts';
import { keyOf, numberAt, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../api/objects.ts';
import { resourceNamed } from '../api/resources.ts';
import type { Change } from '../api/store.ts';
import { latestTime, nextTime, parseSchedule, type Schedule } from '../cron-schedule.ts';
import { systemContext } from '../seed.ts';
import type { Controller, ControllerDeps } from './controller.ts';
import { ownerReference, Workload } from './workload.ts';

const STORAGE = 'batch/cronjobs';
const JOBS = 'batch/jobs';
const SCHEDULED = 'batch.kubernetes.io/cronjob-scheduled-timestamp';
/** Clocks are set and timers have a longest time: looked at again at least this often. */
const LONGEST_WAIT_MS = 600_000;

const has = (job: ApiObject, type: string): boolean =>
  recordsAt(job, 'status', 'conditions').some((c) => c['type'] === type && c['status'] === 'True');
const isDone = (job: ApiObject): boolean => has(job, 'Complete') || has(job, 'Failed');
const startedMs = (job: ApiObject): number =>
  parseTimeMs(textAt(job, 'status', 'startTime') || job.metadata.creationTimestamp);

export class CronJobController implements Controller {
  readonly name = 'cron-jobs';
  readonly #deps: ControllerDeps;
  readonly #workload: Workload;
  readonly #wake: (key: string) => void;
  readonly #timers = new Map<string, Timer>();

  /** `wake` has a key looked at again. */
  constructor(deps: ControllerDeps, wake: (key: string) => void) {
    this.#deps = deps;
    this.#wake = wake;
    this.#workload = new Workload(deps.registry, {
      kind: 'CronJob',
      storage: STORAGE,
      owns: JOBS,
      component: 'cronjob-controller',
    });
  }

  initialKeys(): readonly string[] {
    return this.#workload.keys();
  }

  keysOf(change: Change): readonly string[] {
    return this.#workload.keysOf(change);
  }

  reconcile(key: string): void {
    this.#timers.get(key)?.cancel();
    this.#timers.delete(key);
    const cron = this.#workload.read(key);
    if (cron === undefined) return;
    const jobs = this.#workload.owned(cron);
    this.#report(cron, jobs, {});
    this.#forgetOld(cron, jobs);
    if (cron.metadata.deletionTimestamp !== undefined || recordAt(cron, 'spec')['suspend'] === true) return;
    const schedule = parseSchedule(textAt(cron, 'spec', 'schedule'));
    if (typeof schedule === 'string') return;
    const now = this.#deps.clock.now();
    const zone = textAt(cron, 'spec', 'timeZone') || 'UTC';
    this.#start(cron, schedule, zone, now);
    const next = nextTime(schedule, now, zone) ?? Infinity;
    this.#timers.set(
      key,
      this.#deps.clock.after(Math.min(LONGEST_WAIT_MS, next - now), () => this.#wake(key)),
    );
  }

  #start(cron: ApiObject, schedule: Schedule, zone: string, now: number): void {
    const last = parseTimeMs(textAt(cron, 'status', 'lastScheduleTime') || cron.metadata.creationTimestamp);
    const deadline = numberAt(cron, 'spec', 'startingDeadlineSeconds');
    const due = latestTime(schedule, last, now, zone);
    if (due === undefined) return;
    const scheduled = apiTime(due);
    if (deadline !== undefined && due + deadline * 1000 < now) {
      const message = `Missed scheduled time to start a job: ${new Date(due).toUTCString().replace('GMT', '+0000')}`;
      if (last < due - 1) this.#workload.tell(cron, { type: 'Warning', reason: 'MissSchedule', message });
      return;
    }
    const active = this.#workload.owned(cron).filter((job) => !isDone(job));
    const policy = textAt(cron, 'spec', 'concurrencyPolicy');
    if (policy === 'Forbid' && active.length > 0) {
      const message = 'Not starting job because prior execution is running and concurrency policy is Forbid';
      return this.#workload.tell(cron, { type: 'Normal', reason: 'JobAlreadyActive', message });
    }
    if (policy === 'Replace') for (const job of active) this.#delete(cron, job);
    this.#createJob(cron, due);
    const fresh = this.#workload.read(keyOf(cron.metadata.namespace, cron.metadata.name)) ?? cron;
    this.#report(fresh, this.#workload.owned(fresh), { lastScheduleTime: scheduled });
  }

  #createJob(cron: ApiObject, due: number): void {
    const template = recordAt(cron, 'spec', 'jobTemplate');
    const metadata = recordAt(template, 'metadata');
    const name = `${cron.metadata.name}-${Math.floor(due / 60_000)}`;
    const body = {
      metadata: {
        name,
        ...(metadata['labels'] === undefined ? {} : { labels: metadata['labels'] }),
        annotations: { ...recordAt(metadata, 'annotations'), [SCHEDULED]: apiTime(due) },
        ownerReferences: [ownerReference(cron)],
      },
      spec: structuredClone(recordAt(template, 'spec')),
    };
    const { namespace = '' } = cron.metadata;
    try {
      this.#deps.registry.create(resourceNamed(JOBS), namespace, body, systemContext());
    } catch (err) {
      // Made before, by one who was killed before it could say so in the status.
      if (err instanceof ApiError && err.reason === 'AlreadyExists') return;
      const message = `Error creating job: ${err instanceof Error ? err.message : String(err)}`;
      this.#workload.tell(cron, { type: 'Warning', reason: 'FailedCreate', message });
      throw err;
    }
    this.#workload.tell(cron, { type: 'Normal', reason: 'SuccessfulCreate', message: `Created job ${name}` });
  }

  #forgetOld(cron: ApiObject, jobs: readonly ApiObject[]): void {
    const trim = (type: string, keep: number): void => {
      const over = jobs.filter((job) => has(job, type)).toSorted((a, b) => startedMs(a) - startedMs(b));
      for (const job of over.slice(0, Math.max(0, over.length - keep))) this.#delete(cron, job);
    };
    trim('Complete', numberAt(cron, 'spec', 'successfulJobsHistoryLimit') ?? 3);
    trim('Failed', numberAt(cron, 'spec', 'failedJobsHistoryLimit') ?? 1);
  }

  #delete(cron: ApiObject, job: ApiObject): void {
    const { name, namespace = '', deletionTimestamp } = job.metadata;
    if (deletionTimestamp !== undefined) return;
    const options = { propagationPolicy: 'Background' } as const;
    deleteObject(this.#deps.registry, resourceNamed(JOBS), namespace, name, options, systemContext());
    this.#workload.tell(cron, { type: 'Normal', reason: 'SuccessfulDelete', message: `Deleted job ${name}` });
  }

  #report(cron: ApiObject, jobs: readonly ApiObject[], more: Json): void {
    const before = recordsAt(cron, 'status', 'active').map((ref) => ref['uid']);
    for (const job of jobs) {
      if (!isDone(job) || !before.includes(job.metadata.uid)) continue;
      const condition = has(job, 'Complete') ? 'Complete' : 'Failed';
      const message = `Saw completed job: ${job.metadata.name}, condition: ${condition}`;
      this.#workload.tell(cron, { type: 'Normal', reason: 'SawCompletedJob', message });
    }
    const ends = jobs.filter((job) => has(job, 'Complete')).map((job) => textAt(job, 'status', 'completionTime'));
    const latest = [textAt(cron, 'status', 'lastSuccessfulTime'), ...ends].toSorted().at(-1);
    const active = jobs.filter((job) => !isDone(job)).map(referenceOf);
    this.#workload.writeStatus(cron, {
      ...recordAt(cron, 'status'),
      active: active.length === 0 ? undefined : active,
      ...(latest === undefined || latest === '' ? {} : { lastSuccessfulTime: latest }),
      ...more,
    });
  }
}

const referenceOf = ({ apiVersion, kind, metadata }: ApiObject): Json => ({
  apiVersion,
  kind,
  namespace: metadata.namespace,
  name: metadata.name,
  uid: metadata.uid,
  resourceVersion: metadata.resourceVersion,
});
