import assert from 'node:assert/strict';
import { test } from 'node:test';
import { statisticsV1 } from '../host/cgroups/statistics-v1.ts';
import { statisticsV2 } from '../host/cgroups/statistics-v2.ts';
import type { ContainerReading, MachineFilesystem } from './cadvisor-families.ts';
import { cadvisorMetricsText, type MachineReading } from './cadvisor-metrics.ts';

const AT = 1794720760757;
const labels = { id: '/kubepods/podx/c1', name: 'c1', image: 'img:1', pod: 'p', namespace: 'ns', container: 'web' };
const v1 = (files: Record<string, string>): ContainerReading => ({
  labels,
  atMs: AT,
  startMs: 1_794_720_000_900,
  stats: statisticsV1((controller, file) => files[`${controller}/${file}`]),
});
const v2 = (files: Record<string, string>): ContainerReading => ({
  ...v1({}),
  stats: statisticsV2((_, file) => files[file]),
});
const machine: MachineReading = {
  facts: { cpus: 4, memoryBytes: 1024, swapBytes: 0, kernelRelease: '6.18' },
  topology: { cores: 2, sockets: 1 },
  machineId: 'm',
  systemUuid: 'u',
  bootId: 'b',
  osImage: 'An "OS"\\with\nlines',
};
const page = (...containers: ContainerReading[]): string =>
  cadvisorMetricsText({ containers, machine, device: (major, minor) => (major === 254 ? '/dev/vda' : `${minor}?`) });
const line = (text: string, start: string): string => text.split('\n').find((l) => l.startsWith(start)) ?? '';
const has = (text: string, family: string): boolean => text.includes(`\n# TYPE ${family} `);

const CPU = {
  'cpuacct/cpuacct.usage': '2500000000\n',
  'cpu/cpu.stat': 'nr_periods 3\nnr_throttled 2\nthrottled_time 5\n',
};
const MEMORY = { 'memory/memory.usage_in_bytes': '500\n', 'memory/memory.limit_in_bytes': '9223372036854771712\n' };

test('a sample carries all labels and the moment it was measured', () => {
  assert.equal(
    line(page(v1(CPU)), 'container_cpu_usage_seconds_total'),
    `container_cpu_usage_seconds_total{container="web",cpu="total",id="/kubepods/podx/c1",image="img:1",name="c1",namespace="ns",pod="p"} 2.5 ${AT}`,
  );
});

test('facts carry no moment', () => {
  const text = page(v1({ ...CPU, ...MEMORY }));
  assert.match(line(text, 'container_start_time_seconds'), / 1794720000$/);
  assert.match(line(text, 'container_spec_memory_limit_bytes'), /\} 0$/, 'no limit is shown as zero');
});

test('throttling is shown where there is a quota to be throttled by', () => {
  assert.ok(!has(page(v1(CPU)), 'container_cpu_cfs_throttled_periods_total'));
  assert.ok(!has(page(v1(CPU)), 'container_spec_cpu_quota'));
  const limited = page(v1({ ...CPU, 'cpu/cpu.cfs_quota_us': '20000\n' }));
  assert.match(line(limited, 'container_cpu_cfs_throttled_periods_total'), new RegExp(` 2 ${AT}$`));
  assert.match(line(limited, 'container_spec_cpu_quota'), / 20000$/);
});

test('families nobody has a sample of are left out', () => {
  const text = page(v1({ ...CPU, ...MEMORY }));
  for (const family of [
    'container_fs_reads_bytes_total',
    'container_blkio_device_usage_total',
    'container_fs_io_cost_usage_seconds_total',
    'container_pressure_cpu_waiting_seconds_total',
    'container_network_receive_bytes_total',
    'container_fs_limit_bytes',
    'container_processes',
  ])
    assert.ok(!has(text, family), family);
});

test('pressure and device traffic of v2', () => {
  const text = page(
    v2({
      'cpu.stat': 'usage_usec 5\n',
      'cpu.pressure':
        'some avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n',
      'io.stat': '254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0 cost.usage=1500000\n',
    }),
  );
  assert.match(line(text, 'container_pressure_cpu_waiting_seconds_total'), new RegExp(` 2.5 ${AT}$`));
  assert.match(line(text, 'container_pressure_cpu_stalled_seconds_total'), new RegExp(` 0.000001 ${AT}$`));
  assert.ok(!has(text, 'container_pressure_memory_waiting_seconds_total'));
  assert.match(line(text, 'container_fs_reads_bytes_total'), /device="\/dev\/vda".* 4096 /);
  assert.match(line(text, 'container_fs_reads_total'), /device="\/dev\/vda".* 1 /);
  assert.match(line(text, 'container_fs_writes_total'), /device="\/dev\/vda".* 2 /);
  assert.match(line(text, 'container_fs_io_cost_usage_seconds_total'), / 1.5 /);
  assert.match(
    line(text, 'container_blkio_device_usage_total'),
    /device="\/dev\/vda".*major="254",minor="0",name="c1",namespace="ns",operation="Read"/,
  );
});

test('a kill for memory counts once: with the container, not with what is above it', () => {
  const files = {
    'memory.current': '500\n',
    'memory.events': 'max 3\noom_kill 2\n',
    'memory.events.local': 'max 0\noom_kill 0\n',
  };
  const oneBelow = v2(files);
  const pod = { ...oneBelow, labels: { ...labels, id: '/kubepods/podx', name: '', image: '', container: '' } };
  const shown = [...page(oneBelow, pod).matchAll(/^container_oom_events_total\{container="(.*?)".*\} (\d+) /gm)];
  assert.deepEqual(Object.fromEntries(shown.map(([, container, count]) => [container, count])), { web: '2', '': '0' });
});

test('requests are shown of the disks that the cgroup used, and of the filesystems of the machine', () => {
  const capacity = { atMs: AT, capacityBytes: 9, availableBytes: 9, freeBytes: 9, inodes: 9, inodesFree: 9 };
  const disk = { reads: 70, writes: 80 } as NonNullable<MachineFilesystem['disk']>;
  const filesystems = ['/dev/vda', '/dev/vdb1'].map((device) => ({ device, capacity, disk }));
  const files = { 'cpu.stat': 'usage_usec 5\n', 'io.stat': '254:0 rbytes=4096 wbytes=8192 rios=1 wios=2\n' };
  const text = page({ ...v2(files), filesystems });
  const shown = (family: string): string[] =>
    [...text.matchAll(new RegExp(`^${family}\\{.*device="([^"]*)".*\\} (\\d+) `, 'gm'))].map(([, d, n]) => `${d} ${n}`);
  assert.deepEqual(shown('container_fs_reads_total'), ['/dev/vda 1', '/dev/vdb1 70']);
  assert.deepEqual(shown('container_fs_writes_total'), ['/dev/vda 2', '/dev/vdb1 80']);
});

test('every family comes once, sorted, with its header', () => {
  const text = page(v1({ ...CPU, ...MEMORY }), { ...v1(CPU), labels: { ...labels, id: '/' } });
  const names = [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name);
  assert.deepEqual(names, [...names].sort());
  assert.equal(new Set(names).size, names.length);
  assert.equal([...text.matchAll(/^# HELP /gm)].length, names.length);
});

test('machine facts; odd texts are escaped', () => {
  const text = page();
  assert.equal(line(text, 'machine_cpu_cores'), 'machine_cpu_cores{boot_id="b",machine_id="m",system_uuid="u"} 4');
  assert.match(line(text, 'machine_cpu_books'), / 0$/);
  assert.match(line(text, 'machine_cpu_drawers'), / 0$/);
  assert.match(line(text, 'cadvisor_version_info'), /osVersion="An \\"OS\\"\\\\with\\nlines"\} 1$/);
});

test('what could not be read is said, and the rest is shown', () => {
  const text = cadvisorMetricsText({ containers: undefined, machine: undefined, device: () => '' });
  assert.match(text, /^container_scrape_error 1$/m);
  assert.match(text, /^machine_scrape_error 1$/m);
  assert.match(page(), /^container_scrape_error 0$/m);
});
