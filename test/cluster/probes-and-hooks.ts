// Probes and hooks as the cluster sees them: when a pod counts as ready, when it is restarted, and what is said about it.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Container, Pod } from '../../src/core/pod.ts';
import { AT_ONCE, container, EMPTY, isTrue, Scene, shell, statusOf, WORK } from './scene.ts';

/** Answers every request on port 8080 with this head. */
const answering = (head: string): readonly string[] =>
  shell(`while :; do printf '${head}' | nc -l -p 8080 >/dev/null 2>&1; done`);
const STAY = 'trap "exit 0" TERM; sleep 1000 & wait';
const staying = (first: string, more: Partial<Container>): Container[] => [
  container('main', { command: shell(`${first}; ${STAY}`), ...more }),
];
const isFile = (path: string) => ({ exec: { command: ['test', '-e', path] } });
const restartsOf = (pod: Pod): number => statusOf(pod, 'main')?.restartCount ?? 0;
const startedMs = (pod: Pod): number => Date.parse(statusOf(pod, 'main')?.state.running?.startedAt ?? '');
const readyMs = (pod: Pod): number =>
  Date.parse(pod.status?.conditions?.find((c) => c.type === 'Ready')?.lastTransitionTime ?? '');

export function probesAndHooksSuite(scene: () => Scene): void {
  describe('probes and hooks', { concurrency: AT_ONCE }, () => {
    readiness(scene);
    liveness(scene);
    hooks(scene);
  });
}

function readiness(scene: () => Scene): void {
  it('is not ready before the first delay is over, and is not restarted for it', async () => {
    const s = scene();
    const readinessProbe = { ...isFile('/'), initialDelaySeconds: 4, periodSeconds: 1 };
    await s.pod('delayed', { containers: staying(':', { readinessProbe }) });
    const pod = await s.ready('delayed');
    assert.ok(readyMs(pod) - startedMs(pod) >= 3000, `${readyMs(pod) - startedMs(pod)} ms after the start`);
    assert.equal(restartsOf(pod), 0);
  });

  it('is never ready and never restarted while its readiness probe fails', async () => {
    const s = scene();
    await s.pod('unready', { containers: staying(':', { readinessProbe: { ...isFile('/nope'), periodSeconds: 1 } }) });
    const created = await s.phase('unready', 'Running');
    await s.event(created, 'Unhealthy', ({ message }) => message?.startsWith('Readiness probe failed') === true);
    const pod = await s.read('unready');
    assert.deepEqual([isTrue(pod, 'Ready'), restartsOf(pod)], [false, 0]);
  });

  it('is asked as soon as it has started up, however rarely it is asked later', async () => {
    const s = scene();
    const startupProbe = { ...isFile('/started'), periodSeconds: 1, failureThreshold: 60 };
    const readinessProbe = { ...isFile('/'), periodSeconds: 3600 };
    await s.pod('started-up', { containers: staying('sleep 3; touch /started', { startupProbe, readinessProbe }) });
    const pod = await s.ready('started-up');
    const tookMs = readyMs(pod) - startedMs(pod);
    assert.ok(tookMs >= 2000, `${tookMs} ms after the start`);
  });

  it('asks named ports, with the headers and the path it is told', async () => {
    const s = scene();
    const httpGet = { path: '/health?x=1', port: 'web', httpHeaders: [{ name: 'X-Who', value: 'me' }] };
    const script =
      'nc -l -p 8080 -e sh -c "printf \'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n\'; head -c 60 > /scratch/new; mv /scratch/new /scratch/asked"';
    const main = container('main', {
      command: shell(`while :; do ${script}; done`),
      ports: [{ name: 'web', containerPort: 8080 }],
      readinessProbe: { httpGet, periodSeconds: 1 },
      volumeMounts: [WORK],
    });
    await s.pod('named-port', { volumes: EMPTY, terminationGracePeriodSeconds: 1, containers: [main] });
    const pod = await s.ready('named-port');
    assert.match(
      await s.exec(pod, 'until cat /scratch/asked; do sleep 0.1; done'),
      /^GET \/health\?x=1 HTTP\/1\.1\r\n/,
    );
  });
}

function liveness(scene: () => Scene): void {
  it('restarts again and again, and counts', async () => {
    const s = scene();
    const livenessProbe = { ...isFile('/alive'), periodSeconds: 1, failureThreshold: 1, initialDelaySeconds: 1 };
    await s.pod('dying', {
      terminationGracePeriodSeconds: 1,
      containers: staying('touch /alive; sleep 2; rm /alive', { livenessProbe }),
    });
    const created = await s.until('dying', 'was restarted twice', (p) => restartsOf(p) >= 2);
    await s.event(
      created,
      'Killing',
      ({ message }) => message === 'Container main failed liveness probe, will be restarted',
    );
    await s.delete('dying', { gracePeriodSeconds: 0 });
  });

  it('counts an answer that takes too long as none', async () => {
    const s = scene();
    const livenessProbe = {
      exec: { command: ['sleep', '30'] },
      timeoutSeconds: 1,
      periodSeconds: 1,
      failureThreshold: 1,
    };
    await s.pod('too-slow', { terminationGracePeriodSeconds: 1, containers: staying(':', { livenessProbe }) });
    const pod = await s.until('too-slow', 'was restarted', (p) => restartsOf(p) >= 1);
    await s.event(pod, 'Unhealthy', ({ message }) => /Liveness probe failed: .*timed out/.test(message ?? ''));
    await s.delete('too-slow', { gracePeriodSeconds: 0 });
  });

  it('waits for the start, and gives up on one that never ends', async () => {
    const s = scene();
    const startupProbe = { ...isFile('/never'), periodSeconds: 1, failureThreshold: 2 };
    const livenessProbe = { ...isFile('/'), periodSeconds: 1 };
    await s.pod('never-up', {
      terminationGracePeriodSeconds: 1,
      containers: staying(':', { startupProbe, livenessProbe }),
    });
    const pod = await s.until('never-up', 'was restarted', (p) => restartsOf(p) >= 1);
    await s.event(
      pod,
      'Killing',
      ({ message }) => message === 'Container main failed startup probe, will be restarted',
    );
    assert.equal(isTrue(pod, 'Ready'), false);
    await s.delete('never-up', { gracePeriodSeconds: 0 });
  });

  it('uses the grace period of the probe instead of the pod', async () => {
    const s = scene();
    const livenessProbe = {
      ...isFile('/nope'),
      periodSeconds: 1,
      failureThreshold: 1,
      terminationGracePeriodSeconds: 1,
    };
    await s.pod('short-grace', {
      terminationGracePeriodSeconds: 500,
      containers: [container('main', { command: shell('trap "" TERM; while :; do sleep 1; done'), livenessProbe })],
    });
    await s.phase('short-grace', 'Running');
    const pod = await s.until('short-grace', 'was restarted', (p) => restartsOf(p) >= 1);
    assert.equal(statusOf(pod, 'main')?.lastState.terminated?.exitCode, 137);
    await s.delete('short-grace', { gracePeriodSeconds: 0 });
  });

  it('follows no redirection to somewhere else, and says so', async () => {
    const s = scene();
    const livenessProbe = {
      httpGet: { path: '/', port: 8080 },
      initialDelaySeconds: 1,
      periodSeconds: 1,
      failureThreshold: 1,
    };
    const head = 'HTTP/1.1 302 Found\\r\\nLocation: http://192.0.2.77/\\r\\nContent-Length: 0\\r\\n\\r\\n';
    await s.pod('elsewhere', {
      terminationGracePeriodSeconds: 1,
      containers: [
        container('main', { command: answering(head), livenessProbe: { ...livenessProbe, failureThreshold: 5 } }),
      ],
    });
    const created = await s.phase('elsewhere', 'Running');
    await s.event(created, 'ProbeWarning', ({ message }) => message?.startsWith('Liveness probe warning: ') === true);
    await s.delete('elsewhere', { gracePeriodSeconds: 0 });
  });
}

function hooks(scene: () => Scene): void {
  it('runs the hook after the start before it calls the container started', async () => {
    const s = scene();
    const lifecycle = { postStart: { exec: { command: shell('sleep 2; touch /scratch/hooked') } } };
    await s.pod('hooked', { volumes: EMPTY, containers: staying(':', { volumeMounts: [WORK], lifecycle }) });
    const pod = await s.ready('hooked');
    assert.equal(await s.exec(pod, 'ls /scratch'), 'hooked\n');
  });

  it('kills a container whose hook after the start fails, and tries again', async () => {
    const s = scene();
    const lifecycle = { postStart: { exec: { command: shell('echo no good; exit 3') } } };
    await s.pod('bad-hook', { terminationGracePeriodSeconds: 1, containers: staying(':', { lifecycle }) });
    const created = await s.until('bad-hook', 'was restarted', (p) => restartsOf(p) >= 1);
    await s.event(created, 'FailedPostStartHook');
    await s.delete('bad-hook', { gracePeriodSeconds: 0 });
  });

  it('runs the hook before the stop also when a probe asks for the stop', async () => {
    const s = scene();
    const lifecycle = { preStop: { exec: { command: shell('touch /scratch/stopped') } } };
    const livenessProbe = { ...isFile('/nope'), periodSeconds: 1, failureThreshold: 1 };
    await s.pod('hook-of-probe', {
      volumes: EMPTY,
      containers: staying('[ -e /scratch/stopped ] && touch /nope', { volumeMounts: [WORK], lifecycle, livenessProbe }),
    });
    const pod = await s.until('hook-of-probe', 'runs again', (p) => restartsOf(p) >= 1 && isTrue(p, 'Ready'));
    assert.equal(await s.exec(pod, 'ls /scratch'), 'stopped\n');
  });

  it('asks another pod after the start and before the stop', async () => {
    const s = scene();
    const answer = "printf 'HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n'; head -1 >> /scratch/asked";
    await s.pod('listener', {
      volumes: EMPTY,
      terminationGracePeriodSeconds: 1,
      containers: [
        container('main', {
          command: shell(`while :; do nc -l -p 8080 -e sh -c "${answer}"; done`),
          volumeMounts: [WORK],
        }),
      ],
    });
    const listener = await s.ready('listener');
    const listens = (): Promise<string> =>
      s.exec(listener, "until cat /proc/net/tcp /proc/net/tcp6 | grep -q ':1F90 .* 0A '; do sleep 0.1; done");
    await listens();
    const httpGet = (path: string) => ({ httpGet: { host: listener.status?.podIP ?? '', port: 8080, path } });
    const lifecycle = { postStart: httpGet('/hello'), preStop: httpGet('/goodbye') };
    await s.pod('caller', { containers: staying(':', { lifecycle }) });
    await s.ready('caller');
    await listens();
    await s.delete('caller');
    await s.gone('caller');
    const asked = await s.exec(listener, 'cat /scratch/asked');
    assert.match(asked, /^GET \/hello HTTP\/1\.1\r?\nGET \/goodbye HTTP\/1\.1\r?\n$/);
  });

  it('sleeps before the stop as long as it is told', async () => {
    const s = scene();
    await s.pod('sleeper', {
      terminationGracePeriodSeconds: 3600,
      containers: staying(':', { lifecycle: { preStop: { sleep: { seconds: 3 } } } }),
    });
    await s.ready('sleeper');
    const from = performance.now();
    await s.delete('sleeper');
    await s.gone('sleeper');
    const tookMs = performance.now() - from;
    assert.ok(tookMs >= 2900, `gone after ${tookMs} ms`);
  });
}
