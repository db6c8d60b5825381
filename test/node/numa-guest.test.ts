// The managers on a NUMA machine: a QEMU guest with two sockets, two NUMA nodes, two threads a core and cgroup v2 runs
// containerd and the kubelet, is switched off and booted again. Software emulation is enough, but slow: it takes minutes,
// so this runs only where `NUMA_GUEST=1` asks for it.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { formatCpuSet, tryParseCpuSet, type CpuSet } from '../../src/core/cpuset.ts';
import { parseCpuState } from '../../src/resources/cpu/cpu-state-file.ts';
import { parseMemoryState } from '../../src/resources/memory/memory-state-file.ts';
import { bootGuest, noQemu } from '../harness/guest.ts';
import { cloudKernel } from './cgroup-v2-guest-image.ts';
import { buildNumaDisk } from './numa-guest-image.ts';

const GIVE_UP_MS = 15 * 60_000;

const numaNode = (id: number): string =>
  `-object memory-backend-ram,id=m${id},size=768M -numa node,nodeid=${id},cpus=${id * 4}-${id * 4 + 3},memdev=m${id}`;

/** One thread for all CPUs: with several, compiled JavaScript now and then crashes under emulation. */
const MACHINE =
  '-accel tcg,thread=single -cpu max,vendor=GenuineIntel -no-reboot ' +
  `-smp 8,sockets=2,cores=2,threads=2 -m 1536 ${numaNode(0)} ${numaNode(1)} -device nvme,drive=d,serial=d`;
const APPEND = 'console=ttyS0 panic=-1 loglevel=3 root=/dev/nvme0n1 rw init=/init';

const boot = (kernel: string, disk: string): Promise<string> =>
  bootGuest(
    [
      '-drive',
      `file=${disk},if=none,id=d,format=raw,cache=unsafe`,
      ...MACHINE.split(' '),
      '-kernel',
      kernel,
      '-append',
      APPEND,
    ],
    GIVE_UP_MS,
  );

type Fact = Readonly<Record<'cpus' | 'mems' | 'min' | 'low' | 'high' | 'max' | 'cpuMax', string>> & {
  readonly pid: number;
};

/** What the guest told about a pod at some moment. */
class Told {
  readonly #output: string;

  constructor(output: string) {
    this.#output = output;
    assert.match(output, /^guest: done /m, output.slice(-8000));
  }

  fact(moment: string, pod: string): Fact {
    const text = new RegExp(`^guest-fact: ${moment} ${pod} (.*?)\\r?$`, 'm').exec(this.#output)?.[1];
    assert.ok(text !== undefined, `nothing was told about ${pod} when ${moment}`);
    return JSON.parse(text) as Fact;
  }

  /** By what was on disk: the CPUs of the pinned container, and those that are left. */
  cpus(moment: string): { readonly own: CpuSet; readonly shared: CpuSet } {
    const { entries, shared } = parseCpuState(this.#state('cpu', moment), 'static', false);
    return { own: [...entries.values()][0]?.get('c') ?? new Set(), shared };
  }

  memoryNodes(moment: string): string {
    const { entries } = parseMemoryState(this.#state('memory', moment), 'Static', false);
    const blocks = [...entries.values()].flatMap((containers) => [...containers.values()].flat());
    return blocks.flatMap(({ numaNodes }) => numaNodes).join();
  }

  #state(manager: string, moment: string): string {
    return new RegExp(`^guest-${manager}-state: ${moment} (.*?)\\r?$`, 'm').exec(this.#output)?.[1] ?? '';
  }
}

const ALL = '0-7';
const nodeOf = (cpu: number): number => (cpu < 4 ? 0 : 1);
const MIB = 2 ** 20;

/** Both threads of one core, and memory beside them; nobody else may use those CPUs. */
function checkPinned(told: Told, moment: string): void {
  const { own, shared } = told.cpus(moment);
  const [first = -1, second = -1] = [...own].sort((a, b) => a - b);
  assert.equal(own.size, 2, moment);
  assert.ok(first % 2 === 0 && second === first + 1, `${formatCpuSet(own)} are the threads of one core`);
  const pinned = told.fact(moment, 'pinned');
  assert.equal(pinned.cpus, formatCpuSet(own), moment);
  assert.equal(pinned.mems, String(nodeOf(first)), moment);
  assert.equal(told.memoryNodes(moment), String(nodeOf(first)), moment);
  const beside = told.fact(moment, 'shared');
  assert.equal(beside.cpus, formatCpuSet(shared), moment);
  assert.equal(beside.cpus, formatCpuSet((tryParseCpuSet(ALL) ?? new Set()).difference(own)), moment);
}

const missing = process.env['NUMA_GUEST'] !== '1' ? 'takes minutes; NUMA_GUEST=1 runs it' : noQemu();

test(
  'pinned containers keep their CPUs and memory on a NUMA guest, over a restart of the kubelet and a reboot',
  { skip: missing, timeout: 2 * GIVE_UP_MS + 60_000 },
  async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'kubelet-ts-numa-'));
    try {
      const kernel = cloudKernel();
      const disk = await buildNumaDisk(kernel, folder);
      const start = performance.now();
      const first = new Told(await boot(kernel, disk));
      t.diagnostic(`the first boot took ${((performance.now() - start) / 1000).toFixed(0)} s`);
      assert.equal(first.fact('alone', 'shared').cpus, ALL, 'nobody owns any CPU yet');
      checkPinned(first, 'pinned');
      checkPinned(first, 'restarted');
      for (const pod of ['pinned', 'shared'])
        assert.deepEqual(first.fact('restarted', pod), first.fact('pinned', pod), `${pod} went on as it was`);
      // Memory QoS: what reclaim leaves alone, and where throttling begins (half way to the limit).
      const { min, low, high, max, cpuMax } = first.fact('pinned', 'pinned');
      assert.deepEqual({ min, low, high, max }, { min: `${32 * MIB}`, low: '0', high: 'max', max: `${32 * MIB}` });
      assert.equal(cpuMax, 'max 100000', 'a container with CPUs of its own is not throttled');
      const burstable = first.fact('pinned', 'shared');
      assert.deepEqual(
        { min: burstable.min, low: burstable.low, high: burstable.high, max: burstable.max },
        { min: '0', low: `${16 * MIB}`, high: `${40 * MIB}`, max: `${64 * MIB}` },
      );
      const second = new Told(await boot(kernel, disk));
      t.diagnostic(`both boots took ${((performance.now() - start) / 1000).toFixed(0)} s`);
      checkPinned(second, 'rebooted');
      assert.deepEqual(second.cpus('rebooted'), first.cpus('pinned'), 'the same CPUs as before the reboot');
      assert.equal(second.fact('freed', 'shared').cpus, ALL, 'the CPUs of a pod that is gone are shared again');
      assert.equal(second.cpus('freed').own.size, 0);
    } finally {
      rmSync(folder, { recursive: true });
    }
  },
);
