// The machine goes down under a whole kubelet, with stand-ins for the programs that speak to logind: pods end from low
// to high priority while the shutdown is held up, then it may go on.
import assert from 'node:assert/strict';
import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, it } from 'node:test';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { until } from '../harness/until.ts';
import { Machine } from './process-harness.ts';

let machine: Machine;
before(async () => {
  machine = await Machine.open();
});
after(() => machine?.close());

/** Speaks as `busctl` and `systemd-inhibit` do, through files. */
function fakePrograms(dir: string): void {
  const program = (name: string, text: string): void =>
    writeFileSync(join(dir, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  mkdirSync(dir);
  writeFileSync(join(dir, 'bus'), '');
  program('busctl', `case $1 in get-property) echo 't 60000000';; monitor) exec tail -n +1 -f ${dir}/bus;; esac`);
  program(
    'systemd-inhibit',
    `while [ "\${1#--}" != "$1" ]; do shift; done; echo held >> ${dir}/inhibitor; "$@"; echo released >> ${dir}/inhibitor`,
  );
}

it('pods end in order while the shutdown waits', async () => {
  const fake = join(machine.dir, 'fake');
  fakePrograms(fake);
  machine.writeConfig({ shutdownGracePeriod: '20s', shutdownGracePeriodCriticalPods: '10s' });
  const ends = join(machine.dir, 'ends');
  mkdirSync(ends);
  const writePod = (name: string, priority: number): void => {
    const command = `trap 'echo ${name} asked >> /ends/log; sleep 1; echo ${name} ended >> /ends/log; exit 0' TERM; while :; do sleep 1000 & wait $!; done`;
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
  const program = machine.start([], { PATH: `${fake}:${process.env['PATH'] ?? ''}` });
  for (const name of ['ordinary', 'critical'])
    await program.says(new RegExp(`about="${name}-n1" type="Normal" reason="Started"`));
  const inhibitor = (): string[] => readFileSync(join(fake, 'inhibitor'), 'utf8').trim().split('\n');
  await until('the shutdown is held up', () => existsSync(join(fake, 'inhibitor')));
  const announce = (down: boolean): void =>
    appendFileSync(
      join(fake, 'bus'),
      `${JSON.stringify({ member: 'PrepareForShutdown', payload: { data: [down] } })}\n`,
    );

  announce(true);
  await program.says(/reason="Shutdown" message="Shutdown manager detected shutdown event"/);
  writePod('late', 5);
  await program.says(/"pod rejected" pod="default\/late-n1" reason="NodeShutdown"/);
  await until('the shutdown may go on', () => inhibitor().length === 2);
  assert.deepEqual(inhibitor(), ['held', 'released']);
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

  announce(false);
  await program.says(/message="Shutdown manager detected shutdown cancellation"/);
  await until('the next shutdown is held up too', () => inhibitor().length === 3);
  program.signal('SIGTERM');
  assert.equal(await program.ends(), 0);
  await until('nothing holds shutdowns up any more', () => inhibitor().filter((l) => l === 'released').length === 2);
});
