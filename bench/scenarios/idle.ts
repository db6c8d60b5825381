// What the kubelet costs while nothing happens, and how it comes back with pods running.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pod } from '../../src/core/pod.ts';
import { NODES, PODS } from '../../src/kube/resources.ts';
import { NAMESPACE, names, NODE_NAME } from '../pods.ts';
import type { Row } from '../rows.ts';
import { cpuMs, residentMb } from '../statistics.ts';
import { removeSandboxes, type World } from '../world.ts';
import type { Scenario } from './scenario.ts';

const { signal } = new AbortController();
const WANTED: Readonly<Record<number, { cpu?: number; goCpu?: number; mb: number }>> = {
  0: { mb: 86 },
  50: { cpu: 1, goCpu: 3.5, mb: 110 },
  100: { cpu: 1.5, goCpu: 5.8, mb: 129 },
};

/**
 * Longer than the kubelet waits before it tidies up its memory, and as long as the longest pause between two looks of its
 * at the same pod: a shorter window catches a part of them, and which one is chance.
 */
const [SETTLE_MS, WINDOW_MS] = [15_000, 90_000];
const [QUICK_SETTLE_MS, QUICK_WINDOW_MS] = [12_000, 6000];

async function quietRows({ kubelet }: World, count: number, quick: boolean): Promise<Row[]> {
  const [settleMs, windowMs] = quick ? [QUICK_SETTLE_MS, QUICK_WINDOW_MS] : [SETTLE_MS, WINDOW_MS];
  await sleep(settleMs);
  const before = cpuMs(kubelet.pid);
  const from = performance.now();
  await sleep(windowMs);
  const percent = ((cpuMs(kubelet.pid) - before) / (performance.now() - from)) * 100;
  const wanted = WANTED[count];
  return [
    {
      key: `idle-${count}.cpu`,
      what: `idle with ${count} pods: CPU (of one core)`,
      value: percent,
      unit: '%',
      ...(wanted?.cpu === undefined ? {} : { wanted: { atMost: wanted.cpu } }),
      ...(wanted?.goCpu === undefined ? {} : { go: wanted.goCpu }),
    },
    {
      key: `idle-${count}.memory`,
      what: `idle with ${count} pods: resident memory`,
      value: residentMb(kubelet.pid),
      unit: 'MB',
      ...(wanted === undefined ? {} : { wanted: { atMost: wanted.mb }, go: wanted.mb }),
    },
  ];
}

export const idle: Scenario = {
  name: 'idle',
  asks: 'CPU and memory with 0, 50 and 100 pods; restart of the kubelet with 100',
  async run(world, { quick, say }) {
    // A fresh one: what earlier scenarios left in its memory is not the question here.
    await world.kubelet.stop();
    // A kubelet that clears away what they left in the runtime is not idle.
    await removeSandboxes(world);
    await world.kubelet.start();
    const steps = quick ? [0, 20] : [0, 50, 100];
    const rows: Row[] = [];
    const running: string[] = [];
    for (const count of steps) {
      const more = names('idle', count).slice(running.length);
      await Promise.all(more.map((name) => world.pods.create(name)));
      await world.pods.ready(more, 300_000);
      running.push(...more);
      rows.push(...(await quietRows(world, count, quick)));
      say(`${count} pods measured`);
    }
    rows.push(...(await restartRows(world, running)));
    await world.pods.remove(running);
    return rows;
  },
};

/** The kubelet goes and comes back; no container may be touched, and a new pod says when it is of use again. */
async function restartRows(world: World, running: readonly string[]): Promise<Row[]> {
  const before = await containerIds(world);
  await world.kubelet.stop();
  const from = performance.now();
  await world.kubelet.start();
  await world.pods.create('after-restart');
  const ready = await world.pods.ready(['after-restart'], 60_000);
  const usableMs = performance.now() - from;
  await sleep(3000);
  const cpu = cpuMs(world.kubelet.pid);
  const after = await containerIds(world);
  const touched = running.filter((name) => before.get(name) !== after.get(name));
  const node = await world.client.get(NODES, { name: NODE_NAME }, signal);
  const isReady = node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') === true;
  await world.pods.remove(['after-restart']);
  const note = [
    touched.length > 0 ? `${touched.length} containers were restarted` : 'no container touched',
    ...(ready ? [] : ['the new pod did not become Ready']),
    ...(isReady ? [] : ['the node is not Ready']),
  ].join(', ');
  const what = `restart with ${running.length} pods`;
  return [
    {
      key: `restart-${running.length}.usable`,
      what: `${what}: exec to a new pod Ready`,
      value: usableMs,
      unit: 'ms',
      note,
    },
    { key: `restart-${running.length}.cpu`, what: `${what}: CPU until quiet`, value: cpu, unit: 'ms' },
  ];
}

async function containerIds({ client }: World): Promise<Map<string, string>> {
  const list = await client.list<Pod>(PODS, { namespace: NAMESPACE }, signal);
  return new Map(
    list.items.map((pod) => {
      const status = pod.status?.containerStatuses?.[0];
      return [pod.metadata.name, `${status?.containerID} ${status?.restartCount} ${status?.ready}`];
    }),
  );
}

export const full: Scenario = {
  name: 'full-node',
  asks: '250 pods on one node',
  async run(world, { quick, say }) {
    const count = quick ? 40 : 250;
    const list = names('full', count);
    const cpu = cpuMs(world.kubelet.pid);
    const from = performance.now();
    await Promise.all(list.map((name) => world.pods.create(name)));
    const all = await world.pods.ready(list, 180_000);
    const tookMs = performance.now() - from;
    const up = list.filter((name) => world.pods.lifeOf(name).readyMs !== undefined).length;
    const perPod = (cpuMs(world.kubelet.pid) - cpu) / Math.max(1, up);
    say(`${up} of ${list.length} Ready after ${Math.round(tookMs / 1000)} s`);
    const quiet = await quietRows(world, count, quick);
    await world.pods.remove(list, 1);
    const note = all ? {} : { note: `only ${up} of ${count} became Ready in time: this machine is the limit` };
    return [
      {
        key: `full-${count}.rate`,
        what: `${count} pods on one node: pods/s`,
        value: (up * 1000) / tookMs,
        unit: 'pods/s',
        ...note,
      },
      {
        key: `full-${count}.cpu`,
        what: `${count} pods on one node: CPU of the kubelet per pod started`,
        value: perPod,
        unit: 'ms',
      },
      ...quiet,
    ];
  },
};
