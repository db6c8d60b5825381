// Where the time of pods is taken: the ports between the parts, wrapped. The parts themselves know nothing of it.
import type { PodUid } from '../core/ids.ts';
import { podUid } from '../core/ids.ts';
import { CONFIG_MIRROR, isStaticPod, namespaceOf, uidOf, type Pod } from '../core/pod.ts';
import type { JustDone, PodSnapshot } from '../core/snapshot.ts';
import type { CallInterceptor } from '../cri/services.ts';
import type { PodClient } from '../status/status-sync.ts';
import type { PodTracing } from '../pods/create.ts';
import type { WorkerSteps } from '../pods/pod-workers.ts';
import type { PodPrerequisites, Turns } from '../pods/sync-pod.ts';
import type { PodStops } from '../pods/terminate-pod.ts';
import type { PodTracer } from './pod-tracer.ts';
import type { Kind } from './waterfall.ts';

/** Where the time of a pod's start and stop goes, for the parts of its life. */
export const podTracing = (tracer: PodTracer): PodTracing => ({
  steps: (inner) => tracedSteps(tracer, inner),
  turns: (inner) => tracedTurns(tracer, inner),
  stops: (inner) => tracedStops(tracer, inner),
  prerequisites: (inner) => tracedPrerequisites(tracer, inner),
  observed: (inner) => tracedObservation(tracer, inner),
  admission: (runsAlready, inner) => tracedAdmission(tracer, runsAlready, inner),
});

/** CRI calls under their own names. */
export const tracedCalls =
  (tracer: PodTracer, inner: CallInterceptor): CallInterceptor =>
  (verb, call) =>
    inner(verb, () => tracer.span(verb, call));

/** Two interceptors as one, the first around the second. */
export const joinedCalls =
  (outer: CallInterceptor, inner: CallInterceptor): CallInterceptor =>
  (verb, call) =>
    outer(verb, () => inner(verb, call));

const beginTrace = (tracer: PodTracer, kind: Kind, pod: Pod): void =>
  tracer.begin(kind, { uid: uidOf(pod), namespace: namespaceOf(pod), name: pod.metadata.name });

const tracedPrerequisites = (tracer: PodTracer, inner: PodPrerequisites): PodPrerequisites => ({
  ...inner,
  ensureCgroup: (pod, signal, isThere) => tracer.span('cgroup', () => inner.ensureCgroup(pod, signal, isThere)),
  ensureDirectories: (pod) => tracer.span('directories', () => inner.ensureDirectories(pod)),
  mountVolumes: (pod, signal) => tracer.span('volumes', () => inner.mountVolumes(pod, signal)),
});

const tracedTurns = (tracer: PodTracer, turns: Turns): Turns => ({
  get waiting(): number {
    return turns.waiting;
  },
  run: (signal, start) => {
    const begun = tracedWait(tracer);
    return turns
      .run(signal, (turn) => {
        begun();
        return start(turn);
      })
      .finally(begun);
  },
});

const tracedStops = (tracer: PodTracer, stops: PodStops): PodStops => ({
  run: (graceSeconds, signal, stop) => {
    const begun = tracedWait(tracer);
    return stops
      .run(graceSeconds, signal, () => {
        begun();
        return stop();
      })
      .finally(begun);
  },
});

/** Until what it returns is called, the pod waits for its turn. */
function tracedWait(tracer: PodTracer): () => void {
  const begun = Promise.withResolvers<void>();
  void tracer.span('turn', () => begun.promise);
  return begun.resolve;
}

/** Everything a worker does for a pod belongs to that pod; its first step towards an end begins the trace of its stop. */
const tracedSteps = (tracer: PodTracer, steps: WorkerSteps): WorkerSteps => ({
  sync: (pod, signal) => tracer.during(uidOf(pod), () => steps.sync(pod, signal)),
  dueAt: (pod) => steps.dueAt(pod),
  terminate: (target, state, signal) => {
    if (target.pod !== undefined) beginTrace(tracer, 'stop', target.pod);
    return tracer.during(target.uid, () => tracer.span('terminate', () => steps.terminate(target, state, signal)));
  },
  finish: async (target, signal) => {
    await tracer.during(target.uid, () => tracer.span('finish', () => steps.finish(target, signal)));
    // The API server has no object of a static pod but its mirror, or none at all.
    if (target.pod !== undefined && isStaticPod(target.pod)) tracer.finish('stop', target.uid);
  },
});

interface Admission<Verdict> {
  admit(pod: Pod, others: readonly Pod[], signal: AbortSignal): Promise<Verdict>;
}

/** The start of a pod begins with its admission, but not that of one that ran before this agent. */
const tracedAdmission = <Verdict>(
  tracer: PodTracer,
  runsAlready: (pod: Pod) => boolean,
  inner: Admission<Verdict>,
): Admission<Verdict> => ({
  admit: (pod, others, signal) => {
    if (!runsAlready(pod)) beginTrace(tracer, 'start', pod);
    return tracer.spanOf(uidOf(pod), 'admit', () => inner.admit(pod, others, signal));
  },
});

interface Observed {
  get(uid: PodUid): PodSnapshot | undefined;
  beginMutation(uid: PodUid, foreseen: 'started' | 'stopped'): (unseen: boolean) => void;
  isOutdated(uid: PodUid): boolean;
  refresh(uid: PodUid, signal: AbortSignal, done?: JustDone): Promise<PodSnapshot | undefined>;
}

const tracedObservation = (tracer: PodTracer, cache: Observed): Observed => ({
  get: (uid) => cache.get(uid),
  beginMutation: (uid, foreseen) => cache.beginMutation(uid, foreseen),
  isOutdated: (uid) => cache.isOutdated(uid),
  refresh: (uid, signal, done) => tracer.span('observe', () => cache.refresh(uid, signal, done)),
});

interface Images<Request, Answer> {
  ensure(request: Request, signal: AbortSignal): Promise<Answer>;
}

export const tracedImages = <Request extends { readonly image: string }, Answer>(
  tracer: PodTracer,
  images: Images<Request, Answer>,
): Images<Request, Answer> => ({
  ensure: (request, signal) => tracer.span('image', () => images.ensure(request, signal), request.image),
});

/** A start is over when the API server has heard that the pod is Ready, a stop when the pod is gone there. */
export const tracedStatuses = (tracer: PodTracer, client: PodClient): PodClient => ({
  get: (resource, where, signal) => client.get(resource, where, signal),
  patch: async (resource, where, body, signal) => {
    const answer = await tracer.spanOf(uidIn(body), 'status', () => client.patch(resource, where, body, signal));
    const pod = answer as Pod;
    if (isPodReady(pod)) tracer.finish('start', ownerOf(pod));
    return answer;
  },
  delete: async (resource, where, options, signal) => {
    const uid = podUid(options.preconditions?.uid ?? '');
    await tracer.spanOf(uid, 'delete', () => client.delete(resource, where, options, signal));
    tracer.finish('stop', uid);
  },
});

export const isPodReady = (pod: Pick<Pod, 'status'>): boolean =>
  pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;

/** A mirror speaks for its static pod. */
const ownerOf = (pod: Pod): PodUid => podUid(pod.metadata.annotations?.[CONFIG_MIRROR] ?? pod.metadata.uid ?? '');

const uidIn = (patch: object): PodUid => podUid((patch as { metadata?: { uid?: string } }).metadata?.uid ?? '');
