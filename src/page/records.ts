// What is written down as it happens, for the page to show later: calls, the last hour, the timeline.
import { join } from 'node:path';
import type { PodUid } from '../core/ids.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';
import { CallLog } from './call-log.ts';
import { NodeHistory } from './history.ts';
import { PodTouches } from './pod-touches.ts';
import { Timeline } from './timeline.ts';

export type PageRecords = {
  readonly calls: CallLog;
  readonly history: NodeHistory;
  readonly timeline: Timeline;
  readonly touches: PodTouches;
};

interface SeenPods {
  readonly ready: boolean;
  get(uid: PodUid): PodSnapshot | undefined;
  onChange(listener: (uid: PodUid) => void): () => void;
}
interface SeenRuntime {
  onChange(
    listener: (state: { readonly ready: boolean; readonly runtimeErrors: readonly string[] }) => void,
  ): () => void;
}

/** Writes down what is seen of pods and of the runtime. */
export function followRuntime({ timeline, touches }: PageRecords, pods: SeenPods, runtime: SeenRuntime): void {
  pods.onChange((uid) => {
    timeline.observed(uid, pods.get(uid), !pods.ready);
    touches.touch(uid);
  });
  runtime.onChange(({ ready, runtimeErrors }) => timeline.runtime(ready, runtimeErrors.join(', ')));
}

export function pageRecords(clock: Clock, log: Logger, rootDir: string): PageRecords {
  const calls = new CallLog(clock);
  const history = new NodeHistory(clock);
  history.with(() => ({ runtimeMs: calls.latency('runtime').p50Ms, apiMs: calls.latency('api').p50Ms }));
  const timeline = new Timeline(
    { clock, log: log.child({ component: 'timeline' }) },
    { directory: join(rootDir, 'node-page') },
  );
  return { calls, history, timeline, touches: new PodTouches() };
}
