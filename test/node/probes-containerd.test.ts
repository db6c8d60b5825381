// Every kind of probe that needs no gRPC server against a real container: what the runtime answers, in our words.
// runs: gate
// shows: probes: exec, HTTP, TCP, gRPC
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Probe } from '../../src/core/pod.ts';
import { systemClock } from '../../src/lib/clock.ts';
import type { Answer } from '../../src/probes/prober.ts';
import { containerProber } from '../../src/probes/probers.ts';
import { startContainerd, type PrivateRuntime } from '../harness/containerd.ts';
import { removePod, runPod, type BarePod } from '../harness/pods.ts';
import { untilSeen } from '../harness/until.ts';

const { signal } = new AbortController();
const SERVE = 'mkdir /www; echo fine > /www/healthz; httpd -f -p 8080 -h /www';

let containerd: PrivateRuntime;
let pod: BarePod;
let podIp: string;

before(async () => {
  containerd = await startContainerd({ version: '1.6' });
  pod = await runPod(containerd, 'probed', ['sh', '-c', SERVE]);
  const { status } = await containerd.runtime.podSandboxStatus({ podSandboxId: pod.sandboxId, verbose: false }, signal);
  podIp = status?.network?.ip ?? '';
});
after(async () => {
  await removePod(containerd, pod);
  await containerd.stop();
});

const ask = (probe: Probe): Promise<Answer> =>
  containerProber(systemClock, (containerId, cmd, timeout, s) =>
    containerd.runtime.execSync({ containerId, cmd: [...cmd], timeout }, s),
  )(
    {
      probe,
      container: { name: 'main', ports: [{ name: 'web', containerPort: 8080 }] },
      containerId: pod.containerId,
      podIp,
      timeoutMs: (probe.timeoutSeconds ?? 1) * 1000,
    },
    signal,
  );

test('http and tcp by pod address and port name', async () => {
  await untilSeen(
    'it listens',
    async () => (await ask({ tcpSocket: { port: 8080 } })).result,
    (seen) => seen === 'success',
  );
  assert.deepEqual(await ask({ tcpSocket: { port: 'web' } }), { result: 'success', output: '' });
  assert.deepEqual(await ask({ httpGet: { port: 'web', path: '/healthz' } }), { result: 'success', output: 'fine\n' });
  assert.deepEqual(await ask({ httpGet: { port: 8080, path: '/gone' } }), {
    result: 'failure',
    output: 'HTTP probe failed with statuscode: 404',
  });
  assert.deepEqual(await ask({ tcpSocket: { port: 81 } }), {
    result: 'failure',
    output: `dial tcp ${podIp}:81: connect: connection refused`,
  });
});

test('exec: exit codes, output, commands that do not exist, timeouts', async () => {
  assert.deepEqual(await ask({ exec: { command: ['cat', '/www/healthz'] } }), { result: 'success', output: 'fine\n' });
  assert.deepEqual(await ask({ exec: { command: ['test', '-f', '/nothing'] } }), { result: 'failure', output: '' });
  assert.deepEqual(await ask({ exec: { command: ['sleep', '5'] } }), {
    result: 'failure',
    output: 'command timed out: "sleep 5" timed out after 1s',
  });
  await assert.rejects(ask({ exec: { command: ['/no/such/thing'] } }), /no such file or directory/);
  const long = await ask({ exec: { command: ['sh', '-c', 'head -c 100000 /dev/zero | tr "\\0" x'] } });
  assert.equal(long.output.length, 10 * 1024);
});
