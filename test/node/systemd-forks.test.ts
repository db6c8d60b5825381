// A pod's start and stop with the systemd driver, watched by strace: the kubelet starts no process. systemd is a stand-in on a
// real bus, the runtime is in memory.
// runs: gate
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Volume } from '../../src/core/pod.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FakeSystemd } from '../fakes/fake-systemd.ts';
import { FrozenNode } from '../faults/frozen/frozen-node.ts';
import { startTestApiServer, type TestApiServer } from '../harness/api-server.ts';
import { connectClient } from '../harness/connect-client.ts';
import { MessageBus, noMessageBus } from '../harness/message-bus.ts';
import { makeNodeFolder, removeNodeFolder } from '../harness/node-folder.ts';
import { until, untilSeen } from '../harness/until.ts';

const STRACE = '/usr/bin/strace';
const { signal } = new AbortController();
const skip = process.getuid?.() !== 0 ? 'needs root' : existsSync(STRACE) ? noMessageBus : 'strace is not installed';

/** New processes and new programs; a thread is a clone that shares its memory. */
const newProcesses = (trace: string): string[] =>
  trace
    .split('\n')
    .filter((line) => /\b(execve|fork|vfork|clone3?)\(/.test(line) && !line.includes('CLONE_THREAD'))
    .filter((line) => !line.includes('resumed>'));

describe('the systemd driver', { skip }, () => {
  const bus = new MessageBus();
  const systemd = new FakeSystemd();
  let dir: string;
  let api: TestApiServer;
  let node: FrozenNode;

  before(async () => {
    dir = await makeNodeFolder();
    api = await startTestApiServer(join(dir, 'api'));
    await bus.start();
    await systemd.open(bus);
    const cgroups = await openCgroups(systemClock, 'cgroupfs');
    systemd.makeSlice = (path) => cgroups.create(path, {}, signal);
    const home = join(dir, 'forks');
    mkdirSync(home);
    const client = await connectClient(api.adminKubeconfigPath);
    const env = { DBUS_SYSTEM_BUS_ADDRESS: bus.address };
    node = new FrozenNode({ name: 'forks', dir: home, api, client, systemd: true, env });
    await node.start();
  });
  after(async () => {
    await node?.stop();
    await api?.stop();
    await bus.close();
    await removeNodeFolder(dir);
  });

  it('starts and stops a pod without starting a process', async (t) => {
    const file = join(dir, 'trace');
    const strace = spawn(
      STRACE,
      ['-f', '-e', 'trace=execve,fork,vfork,clone,clone3', '-o', file, '-p', String(node.pid)],
      {
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    );
    let said = '';
    strace.stderr.on('data', (data: Buffer) => (said += data.toString()));
    await untilSeen(
      'strace is attached',
      () => said,
      (seen) => seen.includes('attached'),
    );
    const before = systemd.asked.length;
    const volumes = [
      { name: 'disk', emptyDir: {} },
      { name: 'memory', emptyDir: { medium: 'Memory' } },
      { name: 'facts', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
    ] as unknown as readonly Volume[];
    await node.create(node.pod('quick', { volumes }));
    await until('the pod runs', () => node.runs('quick'));
    await node.delete('quick');
    await untilSeen(
      'the pod is gone',
      () => node.shown('quick'),
      (seen) => seen === undefined,
    );
    const slice = (unit: unknown): boolean => typeof unit === 'string' && /pod[0-9a-f_]+\.slice$/.test(unit);
    await untilSeen(
      'its slice is stopped',
      () => systemd.asked,
      (seen) => seen.some(([method, unit]) => method === 'StopUnit' && slice(unit)),
    );
    const ended = new Promise((resolve) => strace.once('exit', resolve));
    strace.kill('SIGINT');
    await ended;
    const asked = systemd.asked.slice(before).map(([method]) => method);
    t.diagnostic(`systemd was asked: ${asked.join(' ')}`);
    assert.ok(asked.includes('StartTransientUnit'));
    assert.deepEqual(newProcesses(readFileSync(file, 'utf8')), []);
  });
});
