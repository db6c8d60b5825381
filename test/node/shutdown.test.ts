// The machine goes down under a whole kubelet, with a stand-in for logind on a real message bus: pods end from low to high
// priority while the shutdown is held up, then it may go on.
// runs: gate
// shows: graceful node shutdown
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { FakeLogind } from '../fakes/fake-systemd.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { MessageBus, noMessageBus } from '../harness/message-bus.ts';
import { until, untilSeen } from '../harness/until.ts';
import { Machine } from './process-harness.ts';

let machine: Machine;
const bus = new MessageBus();
const logind = new FakeLogind();
before(async () => {
  if (noMessageBus !== false) return;
  await bus.start();
  await logind.open(bus);
  machine = await Machine.open();
});
after(async () => {
  logind.close();
  await bus.close();
  await machine?.close();
});

it('pods end in order while the shutdown waits', { skip: noMessageBus }, async () => {
  logind.maxDelaySeconds = 60;
  machine.writeConfig({ shutdownGracePeriod: '20s', shutdownGracePeriodCriticalPods: '10s' });
  const ends = join(machine.dir, 'ends');
  mkdirSync(ends);
  const writePod = (name: string, priority: number): void => {
    const command = `trap 'echo ${name} asked >> /ends/log; sleep 1; echo ${name} ended >> /ends/log; exit 0' TERM; touch /ends/${name}; while :; do sleep 1000 & wait $!; done`;
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        priority,
        volumes: [{ name: 'v', hostPath: { path: ends } }],
        containers: [
          {
            name: 'c',
            image: BUSYBOX_IMAGE,
            imagePullPolicy: 'Never',
            command: ['sh', '-c', command],
            volumeMounts: [{ name: 'v', mountPath: '/ends' }],
          },
        ],
      },
    };
    writeFileSync(join(machine.manifests, `${name}.json`), JSON.stringify(pod));
  };
  writePod('ordinary', 5);
  writePod('critical', 2_000_001_000);
  const program = machine.start([], { DBUS_SYSTEM_BUS_ADDRESS: bus.address });
  for (const name of ['ordinary', 'critical'])
    await program.says(new RegExp(`about="${name}-n1" type="Normal" reason="Started"`));
  await untilSeen(
    'both listen',
    () => ['ordinary', 'critical'].filter((name) => !existsSync(join(ends, name))),
    (missing) => missing.length === 0,
  );
  await untilSeen(
    'the shutdown is held up',
    () => logind.inhibitors,
    (seen) => seen === 1,
  );

  logind.announce(true);
  await program.says(/reason="Shutdown" message="Shutdown manager detected shutdown event"/);
  writePod('late', 5);
  await program.says(/"pod rejected" pod="default\/late-n1" reason="NodeShutdown"/);
  await untilSeen(
    'the shutdown may go on',
    () => logind.inhibitors,
    (seen) => seen === 0,
  );
  assert.deepEqual(readFileSync(join(ends, 'log'), 'utf8').trim().split('\n'), [
    'ordinary asked',
    'ordinary ended',
    'critical asked',
    'critical ended',
  ]);
  const times = JSON.parse(readFileSync(join(machine.dir, 'kubelet', 'graceful_node_shutdown_state'), 'utf8')) as {
    startTime: string;
    endTime: string;
  };
  assert.ok(Date.parse(times.endTime) - Date.parse(times.startTime) >= 2000);

  logind.announce(false);
  await program.says(/message="Shutdown manager detected shutdown cancellation"/);
  await until('the next shutdown is held up too', () => logind.inhibitors === 1 && logind.granted === 2);
  program.signal('SIGTERM');
  assert.equal(await program.ends(), 0);
  await untilSeen(
    'nothing holds shutdowns up any more',
    () => logind.inhibitors,
    (seen) => seen === 0,
  );
});
