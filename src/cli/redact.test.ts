// Secrets planted everywhere a pod can hold one: none of them is in what may leave the machine.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { redactedEvent, redactedPod, redactedWaterfall, redactedWhy, redactedWorkers } from './redact.ts';

const SECRET = 'hunter2';
const ended = { exitCode: 1, message: SECRET, startedAt: null, finishedAt: null };
const pod: Pod = {
  metadata: {
    name: 'web',
    namespace: 'shop',
    uid: 'u',
    labels: { token: SECRET },
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': SECRET },
  },
  spec: {
    containers: [
      {
        name: 'app',
        image: 'app:1',
        command: ['sh', SECRET],
        args: [`--password=${SECRET}`],
        env: [{ name: 'PASSWORD', value: SECRET }],
        livenessProbe: { exec: { command: [SECRET] }, periodSeconds: 3 },
        readinessProbe: { httpGet: { port: 80, httpHeaders: [{ name: 'Authorization', value: SECRET }] } },
        lifecycle: { preStop: { exec: { command: [SECRET] } } },
        volumeMounts: [{ name: 'data', mountPath: '/data' }],
        workingDir: SECRET,
      },
    ],
    volumes: [{ name: 'data', csi: { driver: 'd', volumeAttributes: { key: SECRET } } }],
    hostAliases: [{ ip: '1.2.3.4', hostnames: [SECRET] }],
  },
  status: {
    phase: 'Running',
    message: SECRET,
    conditions: [{ type: 'Ready', status: 'False', message: SECRET }],
    containerStatuses: [
      {
        name: 'app',
        state: { waiting: { reason: 'CrashLoopBackOff', message: SECRET } },
        lastState: { terminated: ended },
        ready: false,
        restartCount: 3,
        image: 'app:1',
        imageID: 'sha256:1',
      },
    ],
  },
};

describe('what may leave the machine', () => {
  it('of a pod: what it is and how it is, not what it was given or said', () => {
    const kept = redactedPod(pod);
    const text = JSON.stringify(kept);
    assert.ok(!text.includes(SECRET), text);
    for (const fact of [
      '"app:1"',
      '"CrashLoopBackOff"',
      '"exitCode":1',
      '"kind":"csi"',
      '"how":"exec"',
      '"restartCount":3',
    ])
      assert.ok(text.includes(fact), fact);
  });

  it('of a pod that says as little as it can: empty lists', () => {
    const bare = { metadata: { name: 'p' }, spec: { containers: [{ name: 'a' }] } };
    assert.deepEqual(redactedPod(bare), {
      metadata: { name: 'p' },
      spec: { initContainers: [], containers: [{ name: 'a', mounts: [], probes: [] }], volumes: [] },
      status: { conditions: [], initContainerStatuses: [], containerStatuses: [] },
    });
  });

  it('of init containers: their state without words', () => {
    const its = { name: 'i', ready: false, restartCount: 0, image: '', imageID: '', lastState: {} };
    const text = JSON.stringify(
      redactedPod({
        ...pod,
        spec: { ...pod.spec, initContainers: [{ name: 'i', startupProbe: {} }] },
        status: { initContainerStatuses: [{ ...its, state: { running: { startedAt: '2026-01-01T00:00:00Z' } } }] },
      }),
    );
    assert.match(text, /"initContainerStatuses":\[.*"running":\{"startedAt":"2026-01-01T00:00:00Z"\}/);
    assert.match(text, /"kind":"startupProbe"/);
  });

  it('of an event: the text where it is our own', () => {
    const event = { metadata: { name: 'e' }, involvedObject: { name: 'web' }, message: SECRET };
    assert.equal(redactedEvent({ ...event, reason: 'Unhealthy' })['message'], '(left out)');
    assert.equal(redactedEvent(event)['message'], '(left out)');
    // Mount options of a volume may hold a password.
    for (const reason of ['FailedMount', 'FailedAttachVolume', 'FailedMapVolume'])
      assert.equal(redactedEvent({ ...event, reason })['message'], '(left out)');
    assert.equal(redactedEvent({ ...event, reason: 'Pulled', message: 'in 3 s' })['message'], 'in 3 s');
  });

  it('of why, workers and waterfalls: no quotations', () => {
    const why = { state: 'failing', cause: 'X', sentence: SECRET, evidence: [SECRET], todo: '' } as const;
    assert.deepEqual(redactedWhy({ namespace: 'shop', name: 'web', why }), {
      namespace: 'shop',
      name: 'web',
      state: 'failing',
      cause: 'X',
    });
    const worker = { uid: 'u', pod: 'shop/web', phase: 'syncing', busy: false, lastError: SECRET } as const;
    const workers = JSON.stringify(redactedWorkers({ atMs: 0, workers: [worker], calls: [], problems: [] }));
    assert.ok(!workers.includes(SECRET) && workers.includes('shop/web'));
    assert.deepEqual(redactedWaterfall({}), { spans: [] });
    assert.deepEqual(redactedWaterfall({ spans: [{ error: SECRET }, {}] }), { spans: [{ error: '(left out)' }, {}] });
  });
});
