// Reads the machine for the checks. What cannot be read is left out, never a failure of the command.
import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { access, constants, readdir, readFile, stat, statfs } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { openCri, readCgroupDriver, validateCri } from '../../cri/connection.ts';
import { readMountTable } from '../../host/mounts/mount-table.ts';
import { loadKubeconfig } from '../../kube/kubeconfig.ts';
import type { Clock } from '../../lib/clock.ts';
import { messageOf } from '../../lib/errors.ts';
import { withDeadline } from '../../lib/abort.ts';
import type { CertificateFacts, FilesystemFacts, MachineFacts } from './facts.ts';

export type GatherOptions = {
  readonly rootDir: string;
  readonly runtimeEndpoint: string;
  readonly failSwapOn: boolean;
  readonly kubeconfig: string;
  /** Undefined without a kubelet that answers. */
  readonly rotateCertificates: boolean | undefined;
  readonly kubelet: MachineFacts['kubelet'];
};

const CGROUP = '/sys/fs/cgroup';
const SYSCTLS = [
  'net.ipv4.ip_forward',
  'net.bridge.bridge-nf-call-iptables',
  'fs.inotify.max_user_instances',
  'fs.inotify.max_user_watches',
  'user.max_user_namespaces',
  'kernel.pid_max',
  'vm.overcommit_memory',
  'vm.panic_on_oom',
];
const RUNTIME_MS = 10_000;
const LOOKUP_MS = 3000;

export async function gather(clock: Clock, options: GatherOptions, signal: AbortSignal): Promise<MachineFacts> {
  const { rootDir, runtimeEndpoint, failSwapOn, kubelet } = options;
  const [cgroup, filesystems, sysctls, swaps, runtime, cni, synchronized, disks, certificates] = await Promise.all([
    cgroupFacts(),
    text('/proc/filesystems'),
    sysctlFacts(),
    text('/proc/swaps'),
    runtimeFacts(clock, runtimeEndpoint, signal),
    cniFacts(),
    isSynchronized(),
    diskFacts(rootDir),
    certificateFacts(join(rootDir, 'pki')),
  ]);
  return {
    nowMs: clock.now(),
    isRoot: process.getuid?.() === 0,
    cgroup,
    filesystems: (filesystems ?? '').split('\n').flatMap((line) => line.split('\t')[1] ?? []),
    sysctls,
    swap: { devices: lines(swaps).slice(1).map(firstWord), failSwapOn },
    runtime,
    cni,
    clock: { synchronized, notBeforeMs: await installedMs() },
    sharesMounts: await sharesMounts(rootDir),
    disks,
    certificates,
    embedded: await embeddedCertificate(options),
    systemd: await exists('/run/systemd/system'),
    kubelet,
    memory: memoryFacts((await text('/proc/meminfo')) ?? ''),
    openFiles: openFiles(await text('/proc/sys/fs/file-nr')),
    processes: processes(await text('/proc/loadavg'), await text('/proc/sys/kernel/pid_max')),
    hostnameResolves: await resolves(clock, signal),
  };
}

const text = (path: string): Promise<string | undefined> => readFile(path, 'utf8').catch(() => undefined);
const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
const names = (path: string): Promise<readonly string[]> => readdir(path).catch(() => []);
const lines = (content: string | undefined): readonly string[] => (content ?? '').split('\n').filter((l) => l !== '');
const firstWord = (line: string): string => line.split(/\s+/, 1)[0] ?? '';

/** A private one is shared by the kubelet when it starts, unless volumes are mounted there by then. */
const sharesMounts = (path: string): Promise<boolean | undefined> =>
  readMountTable().then(
    (table) => {
      const isInUse = table.beneath(path).some(({ target }) => target !== path);
      return table.holding(path)?.shared === true ? true : isInUse ? false : undefined;
    },
    () => undefined,
  );

async function cgroupFacts(): Promise<MachineFacts['cgroup']> {
  const controllers = await text(join(CGROUP, 'cgroup.controllers'));
  const writable = await access(CGROUP, constants.W_OK).then(
    () => true,
    () => false,
  );
  if (controllers !== undefined) return { version: 2, controllers: controllers.trim().split(/\s+/), writable };
  const folders = await names(CGROUP);
  return { version: folders.includes('memory') ? 1 : undefined, controllers: folders, writable };
}

async function sysctlFacts(): Promise<MachineFacts['sysctls']> {
  const read = async (name: string): Promise<[string, string | undefined]> => [
    name,
    (await text(`/proc/sys/${name.replaceAll('.', '/')}`))?.trim(),
  ];
  return Object.fromEntries(await Promise.all(SYSCTLS.map(read)));
}

async function runtimeFacts(clock: Clock, endpoint: string, signal: AbortSignal): Promise<MachineFacts['runtime']> {
  try {
    const cri = openCri(clock, { runtimeEndpoint: endpoint, imageEndpoint: '', timeoutMs: RUNTIME_MS });
    try {
      const { name, version } = await validateCri(cri, signal);
      const { status } = await cri.runtime.status({}, signal);
      const cgroupDriver = await readCgroupDriver(cri.runtime, () => undefined, signal);
      const of = (type: string) => status?.conditions.find((c) => c.type === type);
      const network = of('NetworkReady');
      return {
        endpoint,
        version: `${name} ${version}`,
        ready: of('RuntimeReady')?.status ?? false,
        networkReady: network?.status ?? false,
        ...(network?.message ? { networkMessage: network.message } : {}),
        ...(cgroupDriver === undefined ? {} : { cgroupDriver }),
      };
    } finally {
      cri.close();
    }
  } catch (err) {
    signal.throwIfAborted();
    return { endpoint, problem: messageOf(err) };
  }
}

async function cniFacts(): Promise<MachineFacts['cni']> {
  const found = (await names('/etc/cni/net.d')).filter((name) => /\.(conf|conflist|json)$/.test(name));
  return { configurations: [...found].sort(), plugins: (await names('/opt/cni/bin')).length };
}

/** Those who keep clocks leave a sign; where none is known of, nothing can be said. */
async function isSynchronized(): Promise<boolean | undefined> {
  if (await exists('/run/systemd/timesync/synchronized')) return true;
  if ((await exists('/run/chrony/chronyd.pid')) || (await exists('/run/chronyd.pid'))) return true;
  if ((await exists('/run/ntpd.pid')) || (await exists('/var/run/ntpd.pid'))) return true;
  return (await exists('/run/systemd/system')) ? false : undefined;
}

const installedMs = (): Promise<number> =>
  stat(process.execPath).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );

async function diskFacts(rootDir: string): Promise<readonly FilesystemFacts[]> {
  const places = [
    ['kubelet', rootDir],
    ['images', '/var/lib/containerd'],
    ['logs', '/var/log'],
  ] as const;
  const found: FilesystemFacts[] = [];
  const devices = new Set<number>();
  for (const [what, path] of places) {
    const at = await stat(path).catch(() => undefined);
    if (at === undefined || devices.has(at.dev)) continue;
    devices.add(at.dev);
    const { bsize, blocks, bavail, files, ffree } = await statfs(path);
    found.push({
      what,
      path,
      freePercent: blocks === 0 ? 100 : (bavail / blocks) * 100,
      freeBytes: bavail * bsize,
      freeInodesPercent: files === 0 ? undefined : (ffree / files) * 100,
    });
  }
  return found;
}

const CERTIFICATES = [
  ['the client certificate', 'kubelet-client-current.pem'],
  ['the serving certificate', 'kubelet-server-current.pem'],
  ['the serving certificate', 'kubelet.crt'],
] as const;

async function certificateFacts(dir: string): Promise<readonly CertificateFacts[]> {
  const found: CertificateFacts[] = [];
  for (const [what, file] of CERTIFICATES) {
    const pem = await text(join(dir, file));
    const block = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/.exec(pem ?? '')?.[0];
    if (block === undefined || found.some((c) => c.what === what)) continue;
    try {
      const { validFrom, validTo } = new X509Certificate(block);
      found.push({ what, path: join(dir, file), notBeforeMs: Date.parse(validFrom), notAfterMs: Date.parse(validTo) });
    } catch {
      // Not a certificate: whoever uses it says so in clearer words.
    }
  }
  return found;
}

/** A certificate inside the kubeconfig, where certificates are rotated. */
export async function embeddedCertificate({
  kubeconfig,
  rootDir,
  rotateCertificates,
}: Pick<GatherOptions, 'kubeconfig' | 'rootDir' | 'rotateCertificates'>): Promise<MachineFacts['embedded']> {
  const isRotated =
    rotateCertificates ?? /^rotateCertificates: {0,8}true\b/m.test((await text(join(rootDir, 'config.yaml'))) ?? '');
  const access = isRotated ? await loadKubeconfig(kubeconfig).catch(() => undefined) : undefined;
  const pem = access?.auth.certData;
  if (pem === undefined) return undefined;
  const storedPath = join(rootDir, 'pki', 'kubelet-client-current.pem');
  try {
    return { kubeconfig, storedPath, notAfterMs: Date.parse(new X509Certificate(pem).validTo) };
  } catch {
    return { kubeconfig, storedPath, notAfterMs: undefined }; // no certificate: its reader reports it in clearer words
  }
}

function memoryFacts(meminfo: string): MachineFacts['memory'] {
  const of = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(meminfo)?.[1] ?? 0) * 1024;
  return { totalBytes: of('MemTotal'), availableBytes: of('MemAvailable') };
}

function openFiles(fileNr: string | undefined): MachineFacts['openFiles'] {
  const [used, , max] = (fileNr ?? '').trim().split(/\s+/).map(Number);
  return used === undefined || max === undefined ? undefined : { used, max };
}

/** The fourth word of loadavg: runnable and all. */
function processes(loadavg: string | undefined, pidMax: string | undefined): MachineFacts['processes'] {
  const used = Number(/\/(\d+)/.exec(loadavg ?? '')?.[1]);
  const max = Number(pidMax);
  return Number.isNaN(used) || Number.isNaN(max) ? undefined : { used, max };
}

const resolves = (clock: Clock, signal: AbortSignal): Promise<boolean> =>
  withDeadline(clock, signal, LOOKUP_MS, () => lookup(hostname())).then(
    () => true,
    () => false,
  );
