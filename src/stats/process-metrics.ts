// This process as every Prometheus client shows itself. Read when asked; /proc/self never makes one wait.
import { readdirSync, readFileSync } from 'node:fs';
import type { Registry } from '../lib/metrics.ts';

/** What an unlimited address space is shown as: the largest 64-bit number. */
const UNLIMITED = 2 ** 64;

export function registerProcessMetrics(registry: Registry, startMs: number): void {
  const show = (type: 'counter' | 'gauge', name: string, help: string, read: () => number | undefined): void =>
    registry.collected(`process_${name}`, help, type, () => {
      const value = read();
      return value === undefined ? [] : [[{}, value]];
    });
  show('counter', 'cpu_seconds_total', 'Total user and system CPU time spent in seconds.', () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  show('gauge', 'max_fds', 'Maximum number of open file descriptors.', () =>
    limitIn(textOf('limits'), 'Max open files'),
  );
  show('gauge', 'open_fds', 'Number of open file descriptors.', () => readdirSync('/proc/self/fd').length);
  show('gauge', 'resident_memory_bytes', 'Resident memory size in bytes.', () => process.memoryUsage.rss());
  show('gauge', 'virtual_memory_bytes', 'Virtual memory size in bytes.', () => virtualBytesIn(textOf('stat')));
  show('gauge', 'virtual_memory_max_bytes', 'Maximum amount of virtual memory available in bytes.', () =>
    limitIn(textOf('limits'), 'Max address space'),
  );
  show('counter', 'network_receive_bytes_total', 'Number of bytes received by the process over the network.', () =>
    octetsIn(textOf('net/netstat'), 'InOctets'),
  );
  show('counter', 'network_transmit_bytes_total', 'Number of bytes sent by the process over the network.', () =>
    octetsIn(textOf('net/netstat'), 'OutOctets'),
  );
  show('gauge', 'start_time_seconds', 'Start time of the process since unix epoch in seconds.', () => startMs / 1000);
}

const START_TIME = 'process_start_time_seconds';

/** The only one that the probes' page shows, with a text of its own. */
export function registerProcessStart(registry: Registry, startMs: number): void {
  registry.collected(START_TIME, '[ALPHA] Start time of the process since unix epoch in seconds.', 'gauge', () => [
    [{}, startMs / 1000],
  ]);
}

const textOf = (file: string): string => readFileSync(`/proc/self/${file}`, 'utf8');

function limitIn(limits: string, name: string): number | undefined {
  const soft = new RegExp(`^${name}\\s+(\\S+)`, 'm').exec(limits)?.[1];
  if (soft === undefined) return undefined;
  return soft === 'unlimited' ? UNLIMITED : Number(soft);
}

/** Field 23 of /proc/<pid>/stat, counted behind the command, which may hold anything. */
function virtualBytesIn(stat: string): number | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const value = Number(fields[20]);
  return Number.isNaN(value) ? undefined : value;
}

/** /proc/<pid>/net/netstat has a line of names and a line of values per protocol. */
function octetsIn(netstat: string, name: string): number | undefined {
  const [names, values] = netstat
    .split('\n')
    .filter((line) => line.startsWith('IpExt:'))
    .map((line) => line.split(' '));
  const at = names?.indexOf(name) ?? -1;
  const value = at < 0 ? Number.NaN : Number(values?.[at]);
  return Number.isNaN(value) ? undefined : value;
}
