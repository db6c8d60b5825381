// Pods that keep failing, and pods that keep coming and going: what they cost the kubelet and the good pods beside them.
import { setTimeout as sleep } from 'node:timers/promises';
import { LIFE_MS, names } from '../pods.ts';
import { cpuMs, inParallel, median } from '../statistics.ts';
import type { Scenario } from './scenario.ts';

export const storm: Scenario = {
  name: 'storm',
  asks: '50 pods that crash at once: restarts, cost, and a good pod meanwhile',
  async run({ pods, kubelet }, { quick }) {
    const count = quick ? 15 : 50;
    const seconds = quick ? 15 : 40;
    const list = names('crash', count);
    const cpu = cpuMs(kubelet.pid);
    const from = performance.now();
    await Promise.all(list.map((name) => pods.create(name, { container: { command: ['/bin/false'] } })));
    await pods.until(list, (life) => life.restarts > 0, 120_000);
    const firstRestartMs = performance.now() - from;
    await sleep(Math.max(0, seconds * 1000 - firstRestartMs));
    const restarts = list.reduce((sum, name) => sum + pods.lifeOf(name).restarts, 0);
    const busyMs = cpuMs(kubelet.pid) - cpu;
    await pods.create('good-one');
    await pods.ready(['good-one'], 60_000);
    const good = pods.startMs('good-one');
    await pods.remove([...list, 'good-one'], 1);
    return [
      {
        key: `storm-${count}.first`,
        what: `${count} crashing pods: until each was restarted once`,
        value: firstRestartMs / 1000,
        unit: 's',
      },
      {
        key: `storm-${count}.cpu`,
        what: `${count} crashing pods: CPU of the kubelet per container start`,
        value: busyMs / (count + restarts),
        unit: 'ms',
      },
      {
        key: `storm-${count}.good`,
        what: `a good pod beside ${count} crashing ones, created to Ready`,
        value: good,
        unit: 'ms',
      },
    ];
  },
};

export const churn: Scenario = {
  name: 'churn',
  asks: 'pods that come and go, eight at a time: lives per second and their cost',
  async run({ pods, kubelet }, { quick }) {
    const list = names('churn', quick ? 16 : 80);
    const cpu = cpuMs(kubelet.pid);
    const from = performance.now();
    await inParallel(list, 8, async (name) => {
      await pods.create(name);
      await pods.ready([name]);
      await sleep(LIFE_MS);
      await pods.remove([name]);
    });
    const tookMs = performance.now() - from;
    return [
      {
        key: 'churn.rate',
        what: 'churn, 8 at a time: whole lives per second',
        value: (list.length * 1000) / tookMs,
        unit: 'pods/s',
      },
      {
        key: 'churn.cpu',
        what: 'churn: CPU of the kubelet per life',
        value: (cpuMs(kubelet.pid) - cpu) / list.length,
        unit: 'ms',
      },
      {
        key: 'churn.ready',
        what: 'churn: created to Ready p50',
        value: median(list.map((name) => pods.startMs(name))),
        unit: 'ms',
      },
    ];
  },
};
