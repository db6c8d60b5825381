// Sentences of a condition: what they leave out, because every change of them is a request to the API server.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { PodFacts } from './facts.ts';
import { why } from './why.ts';
import {
  ago,
  appWith,
  conditions,
  crashed,
  factsOf,
  http,
  init,
  NOW,
  probed,
  pulled,
  pullOf,
  running,
  volume,
  withApp,
} from './why.fixture.ts';

const creating = withApp({ waiting: { reason: 'ContainerCreating' } });

const ROWS: readonly (readonly [name: string, facts: Partial<PodFacts>, sentence: string])[] = [
  [
    'no countdown',
    pulled('reg.io/app:1: not found'),
    'Image "reg.io/app:1" of container "app" cannot be pulled because the registry does not have it.',
  ],
  [
    'no progress',
    { status: creating, pulls: [pullOf({})] },
    'Image "reg.io/app:1" of container "app" is being pulled.',
  ],
  [
    'no place in the line',
    { status: creating, pulls: [pullOf({ phase: 'queued', ahead: 3 })] },
    'Image "reg.io/app:1" of container "app" waits behind other pulls.',
  ],
  ['no count', { status: crashed(1) }, 'Container "app" ends with exit code 1 and is restarted after a back-off.'],
  [
    'not how long a probe has failed',
    { status: running(), pod: appWith({ readinessProbe: http }), probes: [probed('readiness', 'failure')] },
    'Container "app" runs but is not ready: its readiness probe (HTTP GET /ok on port 8080) keeps failing.',
  ],
  [
    'not how long it is until the first probe',
    {
      status: withApp({ running: { startedAt: ago(35) } }, { started: true }),
      pod: appWith({ readinessProbe: { ...http, initialDelaySeconds: 120 } }),
    },
    'Container "app" runs; its readiness probe (HTTP GET /ok on port 8080) is asked for the first time 120 s after its start.',
  ],
  [
    'not how long a volume has been missing',
    volume('secret "s" not found'),
    'The pod waits for a secret that is not there: volume "data": secret "s" not found.',
  ],
  [
    'not how long an init container has run',
    init({ running: { startedAt: ago(300) } }),
    'Init container "migrate" (1 of 1) runs; the others wait for it.',
  ],
  [
    'not how long a turn has been waited for',
    { underWay: [{ name: 'turn', sinceMs: NOW - 40_000 }] },
    'The pod waits for its turn to start: other pods are starting.',
  ],
  [
    'not how long a step takes',
    { status: { phase: 'Pending' }, underWay: [{ name: 'runPodSandbox', sinceMs: NOW - 40_000 }] },
    'The pod is starting: its sandbox and network are being made.',
  ],
  [
    'not the words of an error that only the log has',
    {
      status: { phase: 'Pending', ...conditions('PodReadyToStartContainers') },
      worker: { phase: 'syncing', lastError: { message: 'token abc is wrong', atMs: NOW, attempts: 3 } },
    },
    'The pod could not be brought up.',
  ],
];

for (const [name, facts, sentence] of ROWS)
  it(name, () => assert.equal(why({ ...factsOf(facts), steady: true }).sentence, sentence));
