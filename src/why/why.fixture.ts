// What is known of an ordinary pod, to be changed by one thing at a time.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import type { KubeEvent } from '../core/node.ts';
import type { Container, ContainerState, ContainerStatus, Pod, PodStatus } from '../core/pod.ts';
import { apiTime } from '../core/time.ts';
import type { PullView } from '../images/pull-progress.ts';
import type { PodFacts, ProbeFacts, WhyState } from './facts.ts';
import { why } from './why.ts';

export const NOW = Date.parse('2026-05-04T10:00:00Z');
export const ago = (seconds: number): string => apiTime(NOW - seconds * 1000);
const UID = podUid('uid-web');

export const podOf = (spec: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { name: 'web', namespace: 'shop', uid: UID, ...metadata },
  spec: { containers: [{ name: 'app', image: 'reg.io/app:1' }], ...spec },
});

export const appWith = (container: Partial<Container>): Pod =>
  podOf({ containers: [{ name: 'app', image: 'reg.io/app:1', ...container }] });

export const containerIn = (state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: 'app',
  state,
  lastState: {},
  ready: false,
  restartCount: 0,
  image: 'reg.io/app:1',
  imageID: '',
  ...more,
});

export const eventOf = (reason: string, message: string, more: Partial<KubeEvent> = {}): KubeEvent => ({
  metadata: { name: 'e' },
  involvedObject: {},
  reason,
  message,
  type: 'Warning',
  count: 1,
  lastTimestamp: ago(5),
  ...more,
});

/** The pod as it is while nothing of it is there. */
export const factsOf = (more: Partial<PodFacts> = {}): PodFacts => ({
  pod: podOf(),
  status: { phase: 'Pending', containerStatuses: [containerIn({ waiting: { reason: 'ContainerCreating' } })] },
  nowMs: NOW,
  events: [],
  worker: { phase: 'syncing', nextRunMs: NOW + 17_000 },
  volumes: [],
  pulls: [],
  probes: [],
  underWay: [],
  others: [],
  ...more,
});

/** With a sandbox, and the one container in this state. */
export const withApp = (
  state: ContainerState,
  more: Partial<ContainerStatus> = {},
  status: Partial<PodStatus> = {},
): PodStatus => ({
  phase: 'Running',
  conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }],
  containerStatuses: [containerIn(state, more)],
  ...status,
});

export const waitingFor = (reason: string, message: string): PodStatus => withApp({ waiting: { reason, message } });

export const crashed = (exitCode: number, reason?: string, message?: string): PodStatus =>
  withApp(
    { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 40s restarting failed container=app' } },
    {
      restartCount: 4,
      lastState: {
        terminated: {
          exitCode,
          ...(reason === undefined ? {} : { reason }),
          ...(message === undefined ? {} : { message }),
          startedAt: reason === 'StartError' ? '1970-01-01T00:00:00Z' : ago(25),
          finishedAt: ago(23),
        },
      },
    },
  );

export const running = (more: Partial<ContainerStatus> = {}): PodStatus =>
  withApp({ running: { startedAt: ago(90) } }, { started: true, ...more });

const failed = (reason: string, message: string): PodStatus => ({ phase: 'Failed', reason, message });

export const probed = (type: ProbeFacts['type'], ...results: string[]): ProbeFacts => ({
  container: 'app',
  type,
  runs: results.map((result, at) => ({
    atMs: NOW - (results.length - at) * 10_000,
    result,
    output: result === 'success' ? '' : 'HTTP probe failed with statuscode: 503',
  })),
});

export const pullOf = (more: Partial<PullView>): PullView => ({
  podUid: UID,
  namespace: 'shop',
  pod: 'web',
  image: 'reg.io/app:1',
  phase: 'pulling',
  sinceMs: NOW - 60_000,
  pullingSinceMs: NOW - 40_000,
  ...more,
});

// ---- rows of a table: what is known, and what is said of it ----

export type Row = readonly [cause: string, state: WhyState, facts: Partial<PodFacts>, sentence: string];

export const pulled = (words: string): Partial<PodFacts> => ({
  status: waitingFor('ImagePullBackOff', `Back-off pulling image "reg.io/app:1": ${words}`),
});
export const start = (reason: string, words: string): Partial<PodFacts> => ({ status: waitingFor(reason, words) });
export const volume = (words: string): Partial<PodFacts> => ({ volumes: [`volume "data": ${words} (for 40s)`] });
export const sandbox = (words: string): Partial<PodFacts> => ({
  events: [eventOf('FailedCreatePodSandBox', `Failed to create pod sandbox: ${words}`, { count: 3 })],
});
export const refused = (reason: string, words = ''): Partial<PodFacts> => ({ status: failed(reason, words) });
export const deleting = (more: Partial<PodFacts>, metadata: Partial<Pod['metadata']> = {}): Partial<PodFacts> => ({
  pod: podOf({}, { deletionTimestamp: ago(12), ...metadata }),
  ...more,
});
export const http = { httpGet: { path: '/ok', port: 8080 } };
export const port = (name: string, uid: string): Pod =>
  podOf({ containers: [{ name: 'app', ports: [{ containerPort: 80, hostPort: 8080 }] }] }, { name, uid });
export const conditions = (...types: string[]) => ({
  conditions: types.map((type) => ({ type, status: 'True' as const })),
});
const initPod = podOf({
  initContainers: [
    { name: 'migrate', image: 'reg.io/m:1' },
    { name: 'seed', image: 'reg.io/s:1' },
  ],
});
export const init = (state: Parameters<typeof containerIn>[0], more = {}): Partial<PodFacts> => ({
  pod: initPod,
  status: {
    phase: 'Pending',
    conditions: [{ type: 'PodReadyToStartContainers', status: 'True' }],
    initContainerStatuses: [containerIn(state, { name: 'migrate', image: 'reg.io/m:1', ...more })],
    containerStatuses: [containerIn({ waiting: { reason: 'PodInitializing' } })],
  },
});

const SAID_BY_A_CONDITION: readonly WhyState[] = ['failing', 'waiting', 'progressing'];

/** The same, a while later: nothing has happened but that time went by. */
function later(facts: PodFacts, ms: number): PodFacts {
  const { worker, nowMs } = facts;
  const seconds = Math.round(ms / 1000);
  return {
    ...facts,
    nowMs: nowMs + ms,
    ...(worker?.nextRunMs === undefined ? {} : { worker: { ...worker, nextRunMs: worker.nextRunMs + ms + 5000 } }),
    volumes: facts.volumes.map((v) => v.replace(/\(for .*\)$/, `(for ${seconds}s)`)),
    pulls: facts.pulls.map((pull) => ({ ...pull, ahead: (pull.ahead ?? 9) - 1 })),
  };
}

/** One test per row; and what a condition would say of it must not change by itself. */
export function checkRows(title: string, rows: readonly Row[]): void {
  describe(title, () => {
    for (const [cause, state, facts, sentence] of rows)
      it(`${cause}: ${sentence}`, () => {
        const found = why(factsOf(facts));
        assert.deepEqual([found.cause, found.state, found.sentence], [cause, state, sentence]);
        const steady = why({ ...factsOf(facts), steady: true });
        assert.deepEqual([steady.cause, steady.state], [cause, state]);
        if (SAID_BY_A_CONDITION.includes(state))
          assert.equal(why({ ...later(factsOf(facts), 3000), steady: true }).sentence, steady.sentence);
      });
  });
}
