import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { test, type TestContext } from 'node:test';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { levelOfLimit, ownerOfCgroup } from './cgroup-owner.ts';
import { kmsgText, OomMessages } from './oom-messages.ts';
import { OomWatcher } from './oom-watcher.ts';

const ID = 'c8abb30925ceee6423714412af39faac0cfdf1d58c40a691d62934a3156836ec';
const POD = '/kubepods/burstable/podc5cfdf98-8677-4423-ba65-a7e5a2449ec7';

const push = (...lines: string[]): unknown[] => {
  const messages = new OomMessages();
  return lines.map((line) => messages.push(line)).filter((kill) => kill !== undefined);
};

test('a kill at a cgroup limit', () => {
  assert.deepEqual(
    push(
      'sh invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=999',
      'Call Trace:',
      `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${ID},mems_allowed=0-1,oom_memcg=${POD},task_memcg=${POD}/${ID},task=a,b,pid=4242,uid=0`,
      'Memory cgroup out of memory: Killed process 4242 (a,b) total-vm:72324kB, anon-rss:64512kB, UID:0',
    ),
    [{ pid: 4242, process: 'a,b', limitPath: POD, victimPath: `${POD}/${ID}` }],
  );
});

test('a machine out of memory', () => {
  assert.deepEqual(
    push(
      'kthreadd invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0',
      `oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0,global_oom,task_memcg=${POD}/${ID},task=java,pid=77,uid=1000`,
      'Out of memory: Killed process 77 (java) total-vm:1kB',
    ),
    [{ pid: 77, process: 'java', limitPath: '/', victimPath: `${POD}/${ID}` }],
  );
});

test('kernels before 5.0', () => {
  assert.deepEqual(
    push(
      'x invoked oom-killer: gfp_mask=0x14',
      `Task in ${POD}/${ID} killed as a result of limit of ${POD}`,
      'Killed process 9 (sleep) total-vm:4kB',
    ),
    [{ pid: 9, process: 'sleep', limitPath: POD, victimPath: `${POD}/${ID}` }],
  );
});

test('a whole cgroup that goes together', () => {
  const kills = push(
    'a invoked oom-killer: x',
    `oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=${POD}/${ID},task_memcg=${POD}/${ID},task=a,pid=1,uid=0`,
    'Memory cgroup out of memory: Killed process 1 (a) total-vm:1kB',
    `Tasks in ${POD}/${ID} are going to be killed due to memory.oom.group set`,
    'Memory cgroup out of memory: Killed process 1 (a) total-vm:1kB',
    'Memory cgroup out of memory: Killed process 2 (b) total-vm:1kB',
  );
  assert.equal(kills.length, 3);
});

test('other lines mean nothing', () => {
  assert.deepEqual(push('eth0: link up', 'Killed process 5 (x) by somebody'), []);
  assert.equal(kmsgText('6,339,5140900,-;NET: Registered PF_INET\n SUBSYSTEM=net\n'), 'NET: Registered PF_INET');
  assert.equal(kmsgText('nonsense'), '');
});

test('whose cgroup it is, and at which level', () => {
  const uid = 'c5cfdf98-8677-4423-ba65-a7e5a2449ec7';
  const slice = '/kubepods.slice/kubepods-podc5cfdf98_8677_4423_ba65_a7e5a2449ec7.slice';
  assert.deepEqual(ownerOfCgroup(`${POD}/${ID}`), { podUid: uid, containerId: ID });
  assert.deepEqual(ownerOfCgroup(POD), { podUid: uid });
  assert.deepEqual(ownerOfCgroup(`${slice}/cri-containerd-${ID}.scope`), { podUid: uid, containerId: ID });
  assert.deepEqual(ownerOfCgroup(`${slice}/crio-${ID}.scope/container`), { podUid: uid, containerId: ID });
  assert.deepEqual(ownerOfCgroup('/system.slice/ssh.service'), {});
  assert.deepEqual(['/', POD, `${POD}/${ID}`, '/kubepods/burstable', slice].map(levelOfLimit), [
    'node',
    'pod',
    'container',
    'pods',
    'pod',
  ]);
});

/** A watcher on a plain file in the place of /dev/kmsg, one whole read per look. */
async function watching(t: TestContext) {
  const dir = await mkdtemp(join(tmpdir(), 'oom-'));
  const [kmsgPath, memoryEventsPath] = [join(dir, 'kmsg'), join(dir, 'memory.events')];
  await writeFile(kmsgPath, '');
  await writeFile(memoryEventsPath, 'oom_kill 0\n');
  const clock = new ManualClock();
  const events: string[] = [];
  const watcher = new OomWatcher(
    {
      pods: { pod: () => undefined, containerName: () => undefined },
      events: { pod: () => undefined, node: (_, __, message) => void events.push(message) },
      onContainerOom: () => undefined,
      clock,
      log: silentLogger,
    },
    { kmsgPath, memoryEventsPath, mayBeClosed: false },
  );
  const stop = new AbortController();
  const done = watcher.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await done;
    assert.equal(clock.pending, 0, 'no timer is left');
    await rm(dir, { recursive: true });
  });
  /** The clock moves on, and what goes through the disk gets the time it needs. */
  const pass = async (ms: number): Promise<void> => {
    await wait(50);
    await clock.advance(ms);
    await wait(50);
  };
  await pass(0);
  const invoke = async (): Promise<void> => {
    await appendFile(kmsgPath, `4,1,1,-;x invoked oom-killer: y\n`);
    await pass(10_100);
  };
  const end = (pid: number): Promise<void> =>
    appendFile(kmsgPath, `4,2,2,-;Out of memory: Killed process ${pid} (java) total-vm:1kB\n`);
  const kill = async (pid: number): Promise<void> => {
    await invoke();
    await end(pid);
  };
  return { watcher, memoryEventsPath, events, pass, invoke, end, kill };
}

test('a hint leads to a look at once, otherwise there is one every ten seconds', async (t) => {
  const { watcher, events, pass, kill } = await watching(t);
  await kill(1);
  await pass(9000);
  assert.deepEqual(events, []);
  watcher.lookSoon();
  await pass(100);
  assert.deepEqual(events, ['System OOM encountered, victim process: java, pid: 1']);
  await kill(2);
  await pass(10_100);
  assert.equal(events.length, 2);
});

test('a look in vain is repeated soon', async (t) => {
  const { watcher, events, pass, invoke, end } = await watching(t);
  await invoke();
  watcher.lookSoon();
  await pass(100);
  await end(1);
  await pass(1000);
  await pass(100);
  assert.equal(events.length, 1);
});

test('the counters above all pods are such a hint', async (t) => {
  const { memoryEventsPath, events, pass, kill } = await watching(t);
  await kill(1);
  await writeFile(memoryEventsPath, 'oom_kill 1\n');
  await pass(0);
  await pass(100);
  assert.equal(events.length, 1);
});

test('a record without its text is empty, one without further fields is whole', () => {
  assert.equal(kmsgText('6,1,2,-'), '');
  assert.equal(kmsgText('6,1,2,-;text'), 'text');
  assert.equal(kmsgText('6,1,2,-;text\n SUBSYSTEM=memory'), 'text');
});
