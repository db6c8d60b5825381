// The program as an operator and systemd meet it: run once, signals, reload, lock file, notifications, a part that dies.
// runs: gate, default ports
// shows: command line, `KubeletConfiguration`, drop-ins, feature gates, validation
// shows: systemd: readiness, watchdog
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { ContainerState } from '../../src/cri/gen/cri.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { freePort } from '../harness/ports.ts';
import { until, untilSeen } from '../harness/until.ts';
import { Machine, takenPort } from './process-harness.ts';

const never = new AbortController().signal;
const STARTED = /NodeAllocatableEnforced/;

let machine: Machine;
before(async () => {
  machine = await Machine.open();
});
after(() => machine?.close());

const lastLine = (text: string): string => text.trimEnd().split('\n').at(-1) ?? '';

describe('--runonce', () => {
  const written = new Set<string>();
  after(() => written.forEach((file) => rmSync(file)));

  function writePod(name: string, command: string, initCommand = 'true'): void {
    const usual = { image: BUSYBOX_IMAGE, imagePullPolicy: 'Never' };
    const container = { ...usual, name: 'c', command: ['sh', '-c', command] };
    const initContainers = [{ ...usual, name: 'init', command: ['sh', '-c', initCommand] }];
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { restartPolicy: 'Never', containers: [container], initContainers },
    };
    const file = join(machine.manifests, `${name}.json`);
    writeFileSync(file, JSON.stringify(pod));
    written.add(file);
  }

  it('starts the static pods, reports each, leaves them running and exits 0', async () => {
    machine.writeConfig();
    writePod('serves', 'sleep 1000');
    writePod('ends', 'true');
    const program = machine.start(['--runonce']);
    assert.equal(await program.ends(), 0, program.output());
    assert.match(program.output(), /"pod started once" pod="default\/serves-n1" outcome="running"/);
    assert.match(program.output(), /"pod started once" pod="default\/ends-n1" outcome="(succeeded|running)"/);
    const { containers } = await machine.containerd.runtime.listContainers({}, never);
    const running = containers.filter((c) => c.state === ContainerState.CONTAINER_RUNNING);
    assert.ok(running.some((c) => c.labels['io.kubernetes.pod.name'] === 'serves-n1'));
  });

  it('exits 1 and names the pods that failed', async () => {
    machine.writeConfig();
    writePod('fails', 'sleep 1000', 'exit 3');
    const program = machine.start(['--runonce']);
    assert.equal(await program.ends(), 1, program.output());
    assert.match(program.output(), /pod="default\/fails-n1" outcome="failed"/);
    assert.match(lastLine(program.output()), /"kubelet failed" err="error running pods: default\/fails-n1"/);
  });

  it('has nothing to do without pods', async () => {
    machine.writeConfig({ staticPodPath: join(machine.dir, 'nothing-here') });
    assert.equal(await machine.start(['--runonce']).ends(), 0);
  });
});

describe('signals', () => {
  it('SIGHUP applies what can change, names the rest and refuses what is broken', async () => {
    machine.writeConfig({ maxPods: 20, clusterDomain: 'one.local' });
    const program = machine.start();
    await program.says(STARTED);
    machine.writeConfig({ maxPods: 21, clusterDomain: 'two.local', imageGCHighThresholdPercent: 90 });
    program.signal('SIGHUP');
    await program.says(
      /"configuration read again" applied="clusterDomain,imageGCHighThresholdPercent" needRestart="maxPods"/,
    );
    machine.writeConfig({ maxPods: -1 });
    program.signal('SIGHUP');
    await program.says(/"configuration is not usable, the old one stays in force" err=".*maxPods/);
    program.signal('SIGTERM');
    assert.equal(await program.ends(), 0, program.output());
    assert.match(lastLine(program.output()), /"kubelet stopped"/);
  });

  it('the second one exits at once', async () => {
    machine.writeConfig();
    const program = machine.start();
    await program.says(STARTED);
    // Held still, so that both are there when it goes on.
    for (const signal of ['SIGSTOP', 'SIGTERM', 'SIGINT', 'SIGCONT'] as const) program.signal(signal);
    assert.equal(await program.ends(), 1, program.output());
    assert.match(lastLine(program.output()), /"second signal, exiting at once"/);
  });
});

describe('--lock-file', () => {
  it('waits for whoever holds the lock', async () => {
    machine.writeConfig();
    const path = join(machine.dir, 'lock');
    const holder = spawn('flock', [path, 'sh', '-c', 'echo held; read _'], { stdio: ['pipe', 'pipe', 'inherit'] });
    await new Promise((resolve) => holder.stdout.once('data', resolve));
    const program = machine.start([`--lock-file=${path}`]);
    await program.says(/the lock file is held by another process, waiting/);
    assert.doesNotMatch(program.output(), STARTED);
    holder.stdin.end('\n');
    await program.says(STARTED);
    assert.equal(spawnSync('flock', ['--nonblock', path, 'true']).status, 1, 'now the kubelet holds it');
    program.signal('SIGTERM');
    assert.equal(await program.ends(), 0, program.output());
    assert.equal(spawnSync('flock', ['--nonblock', path, 'true']).status, 0, 'and gave it back');
  });

  it('with --exit-on-lock-contention, leaves as soon as somebody opens the file', async () => {
    machine.writeConfig();
    const path = join(machine.dir, 'contended');
    const program = machine.start([`--lock-file=${path}`, '--exit-on-lock-contention']);
    await program.says(STARTED);
    closeSync(openSync(path, 'r'));
    assert.equal(await program.ends(), 0, program.output());
    assert.match(program.output(), /somebody else wants the lock file, leaving/);
  });
});

const RECEIVER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print('bound', flush=True)
while True: print(s.recv(100).decode(), flush=True)
`;
const hasPython = spawnSync('python3', ['--version']).status === 0;

describe('systemd', { skip: hasPython ? false : 'needs python3' }, () => {
  it('hears READY, then signs of life, then STOPPING', async () => {
    machine.writeConfig();
    const path = join(machine.dir, 'notify');
    const receiver = spawn('python3', ['-c', RECEIVER, path], { stdio: ['ignore', 'pipe', 'inherit'] });
    const heard: string[] = [];
    receiver.stdout.on('data', (data: Buffer) =>
      heard.push(
        ...data
          .toString()
          .split('\n')
          .filter((line) => line !== ''),
      ),
    );
    try {
      await untilSeen(
        'the socket is there',
        () => heard,
        (seen) => seen.includes('bound'),
      );
      const program = machine.start([], { NOTIFY_SOCKET: path, WATCHDOG_USEC: '2000000' });
      await untilSeen(
        'READY',
        () => heard,
        (seen) => seen.includes('READY=1'),
      ).catch((err: unknown) => {
        throw new Error(`${String(err)}; heard ${heard.join()}\n${program.output().slice(-3000)}`);
      });
      const before = heard.length;
      await untilSeen(
        'three signs of life',
        () => heard.slice(before).filter((h) => h === 'WATCHDOG=1'),
        (seen) => seen.length >= 3,
      );
      program.signal('SIGTERM');
      assert.equal(await program.ends(), 0, program.output());
      await untilSeen(
        'STOPPING',
        () => heard,
        (seen) => seen.includes('STOPPING=1'),
      );
      assert.deepEqual(
        heard.filter((h) => h !== 'WATCHDOG=1'),
        ['bound', 'READY=1', 'STOPPING=1'],
      );
    } finally {
      receiver.kill('SIGKILL');
    }
  });
});

it('without an API server and a client CA nobody else can reach either port', async () => {
  const [port, readOnlyPort] = [await freePort(), await freePort()];
  const authentication = { anonymous: { enabled: false }, webhook: { enabled: true } };
  const open = { enableServer: true, address: '0.0.0.0', port, readOnlyPort };
  machine.writeConfig({ ...open, authentication, authorization: { mode: 'Webhook' } });
  const program = machine.start();
  for (const [listener, at] of [
    ['server', port],
    ['read-only-server', readOnlyPort],
  ])
    await program.says(new RegExp(`"listening" listener="${listener}" address="127.0.0.1" port=${at}`));
  program.signal('SIGTERM');
  assert.equal(await program.ends(), 0);
});

it('a watchdog that expects signs of life faster than they are sent is refused', async () => {
  machine.writeConfig();
  const program = machine.start([], { NOTIFY_SOCKET: join(machine.dir, 'nobody'), WATCHDOG_USEC: '1000000' });
  assert.equal(await program.ends(), 1, program.output());
  assert.match(lastLine(program.output()), /"kubelet failed" err="configure watchdog timeout too small"/);
});

describe('a part that dies takes the process down', () => {
  it('when the port of the server is taken', async () => {
    const taken = await takenPort();
    machine.writeConfig({ enableServer: true, port: taken.port });
    const program = machine.start();
    assert.equal(await program.ends(), 1, program.output());
    assert.match(lastLine(program.output()), new RegExp(`"kubelet failed" err=".*${taken.port}`));
    assert.doesNotMatch(program.output(), /^ {4}at /m);
    taken.free();
  });

  it('when there is no runtime at the endpoint', async () => {
    machine.writeConfig({ containerRuntimeEndpoint: `unix://${machine.dir}/nobody.sock` });
    const program = machine.start();
    assert.equal(await program.ends(), 1, program.output());
    assert.match(lastLine(program.output()), /"kubelet failed" err=".*nobody\.sock/);
  });

  it('when a directory it needs cannot be made', async () => {
    machine.writeConfig({ podLogsDir: join(machine.dir, 'config.yaml', 'pod-logs') });
    const program = machine.start();
    assert.equal(await program.ends(), 1, program.output());
    assert.match(lastLine(program.output()), /"kubelet failed" err=".*config\.yaml/);
  });

  it('but a health port that is taken is only tried again', async () => {
    const taken = await takenPort();
    machine.writeConfig({ healthzPort: taken.port });
    const program = machine.start();
    await program.says(/failed to start healthz server/);
    await program.says(STARTED);
    taken.free();
    await until('health answers', () =>
      fetch(`http://127.0.0.1:${taken.port}/healthz`).then(
        (r) => r.ok,
        () => false,
      ),
    );
    program.signal('SIGTERM');
    assert.equal(await program.ends(), 0);
  });
});
