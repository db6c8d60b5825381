// Sysctls a pod may set: those known to be safe on this kernel, and those the operator allowed. A sysctl of a namespace
// that the pod shares with the host is refused in any case.
import type { Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import type { Rejection } from './verdict.ts';

type SysctlNamespace = 'Net' | 'IPC';

/** Safe sysctls with the kernel that made each of them namespaced. */
const SAFE: readonly (readonly [name: string, sinceKernel: readonly number[]])[] = [
  ['kernel.shm_rmid_forced', []],
  ['net.ipv4.ip_local_port_range', []],
  ['net.ipv4.tcp_syncookies', []],
  ['net.ipv4.ping_group_range', []],
  ['net.ipv4.ip_unprivileged_port_start', []],
  ['net.ipv4.ip_local_reserved_ports', [3, 16]],
  ['net.ipv4.tcp_keepalive_time', [4, 5]],
  ['net.ipv4.tcp_fin_timeout', [4, 6]],
  ['net.ipv4.tcp_keepalive_intvl', [4, 5]],
  ['net.ipv4.tcp_keepalive_probes', [4, 5]],
  ['net.ipv4.tcp_rmem', [4, 15]],
  ['net.ipv4.tcp_wmem', [4, 15]],
];

const EXACT: Readonly<Record<string, SysctlNamespace>> = { 'kernel.sem': 'IPC' };
const PREFIXES: readonly (readonly [string, SysctlNamespace])[] = [
  ['kernel.shm', 'IPC'],
  ['kernel.msg', 'IPC'],
  ['fs.mqueue.', 'IPC'],
  ['net.', 'Net'],
];

const namespaceOf = (name: string): SysctlNamespace | undefined =>
  EXACT[name] ?? PREFIXES.find(([prefix]) => name.startsWith(prefix))?.[1];

/** `net/ipv4/tcp_syncookies` and `net.ipv4.tcp_syncookies` are the same; interface names may carry dots. */
const normalized = (name: string): string => {
  const separator = /[./]/.exec(name)?.[0];
  return separator === '/' ? name.replace(/[./]/g, (c) => (c === '/' ? '.' : '/')) : name;
};

export class SysctlAllowlist {
  readonly #names = new Map<string, SysctlNamespace>();
  readonly #prefixes = new Map<string, SysctlNamespace>();

  /** `patterns`: `allowedUnsafeSysctls`, names or prefixes ending in `*`. Throws for what no namespace confines. */
  constructor(patterns: readonly string[], kernelRelease: string) {
    const kernel = versionOf(kernelRelease);
    for (const [name, since] of SAFE) if (isAtLeast(kernel, since)) this.#add(name);
    for (const pattern of patterns) this.#add(pattern);
  }

  #add(pattern: string): void {
    const prefix = pattern.endsWith('*');
    const name = normalized(prefix ? pattern.slice(0, -1) : pattern);
    const namespace = namespaceOf(name);
    if (namespace === undefined)
      throw new KubeletError('invalid', `the sysctls ${JSON.stringify(name)} are not known to be namespaced`);
    (prefix ? this.#prefixes : this.#names).set(name, namespace);
  }

  check(pod: Pod): Rejection | undefined {
    for (const { name } of pod.spec.securityContext?.sysctls ?? []) {
      const wanted = normalized(name);
      const problem = this.#problem(wanted, pod);
      if (problem !== undefined)
        return { reason: 'SysctlForbidden', message: `forbidden sysctl: ${JSON.stringify(wanted)} ${problem}` };
    }
    return undefined;
  }

  #problem(name: string, pod: Pod): string | undefined {
    const namespace = this.#names.get(name) ?? [...this.#prefixes].find(([prefix]) => name.startsWith(prefix))?.[1];
    if (namespace === undefined) return 'not allowlisted';
    const shared = namespace === 'Net' ? pod.spec.hostNetwork === true : pod.spec.hostIPC === true;
    return shared ? `not allowed with host ${namespace} enabled` : undefined;
  }
}

const versionOf = (release: string): readonly number[] =>
  (/^\d+(\.\d+)*/.exec(release)?.[0] ?? '0').split('.').map(Number);

function isAtLeast(version: readonly number[], floor: readonly number[]): boolean {
  for (const [i, part] of floor.entries()) {
    const own = version[i] ?? 0;
    if (own !== part) return own > part;
  }
  return true;
}
