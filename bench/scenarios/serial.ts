// One pod after the other, each next to its floor, so that both see the same machine.
import { setTimeout as sleep } from 'node:timers/promises';
import { LIFE_MS } from '../pods.ts';
import { cpuMs, median, percentile } from '../statistics.ts';
import type { Scenario } from './scenario.ts';

export const serial: Scenario = {
  name: 'serial',
  asks: 'one pod: created to Ready, delete to gone',
  async run({ floor, pods, kubelet }, { quick, say }) {
    const rounds = quick ? 6 : 25;
    const seen = { start: [] as number[], stop: [] as number[], floorStart: [] as number[], floorStop: [] as number[] };
    const cpu = { start: 0, stop: 0 };
    for (let round = -1; round < rounds; round++) {
      const bare = await floor.start();
      await sleep(LIFE_MS);
      const bareStop = await floor.stop(bare.pod);
      await floor.remove(bare.pod);
      const name = `serial-${round + 1}`;
      const before = cpuMs(kubelet.pid);
      await pods.create(name);
      await pods.ready([name]);
      const after = cpuMs(kubelet.pid);
      await sleep(LIFE_MS);
      const stopping = cpuMs(kubelet.pid);
      await pods.remove([name]);
      await sleep(LIFE_MS); // what is left of it goes a moment later
      const gone = cpuMs(kubelet.pid);
      if (round < 0) continue; // the first pod warms everybody up
      cpu.start += after - before;
      cpu.stop += gone - stopping;
      seen.floorStart.push(bare.ms);
      seen.floorStop.push(bareStop);
      seen.start.push(pods.startMs(name));
      seen.stop.push(pods.stopMs(name));
    }
    say(`start ${seen.start.map(Math.round).join(' ')}; floor ${seen.floorStart.map(Math.round).join(' ')}`);
    say(`stop ${seen.stop.map(Math.round).join(' ')}; floor ${seen.floorStop.map(Math.round).join(' ')}`);
    return [
      {
        key: 'serial.ready.p50',
        what: 'one pod, created to Ready, p50',
        value: median(seen.start),
        unit: 'ms',
        floor: median(seen.floorStart),
        wanted: { atMost: 1.5 },
        go: 3.8,
      },
      {
        key: 'serial.gone.p50',
        what: 'one pod, delete to gone, p50',
        value: median(seen.stop),
        unit: 'ms',
        floor: median(seen.floorStop),
        wanted: { atMost: 1.6 },
        go: 6.3,
      },
      {
        key: 'serial.ready.p90',
        what: 'one pod, created to Ready, p90',
        value: percentile(seen.start, 0.9),
        unit: 'ms',
        floor: percentile(seen.floorStart, 0.9),
      },
      {
        key: 'serial.cpu',
        what: 'CPU of the kubelet per pod started, one by one',
        value: cpu.start / rounds,
        unit: 'ms',
        wanted: { atMost: 38 },
        go: 38,
      },
      {
        key: 'serial.cpu.stop',
        what: 'CPU of the kubelet per pod stopped, one by one',
        value: cpu.stop / rounds,
        unit: 'ms',
      },
    ];
  },
};
