// What tests and benchmarks need from the distribution. On Debian and its relatives missing pieces are installed, said in one line;
// elsewhere they are named.
import { existsSync } from 'node:fs';
import { canInstall, installPackages } from '../src/devcluster/cli/packages.ts';

/** A file that each package brings. */
const NEEDED: Readonly<Record<string, readonly string[]>> = {
  containerd: ['/usr/bin/containerd', '/usr/local/bin/containerd'],
  runc: ['/usr/sbin/runc', '/usr/bin/runc', '/usr/local/sbin/runc'],
  'containernetworking-plugins': ['/usr/lib/cni/bridge', '/opt/cni/bin/bridge'],
  'busybox-static': ['/bin/busybox', '/usr/bin/busybox'],
  iptables: ['/usr/sbin/iptables', '/sbin/iptables'],
  iproute2: ['/usr/sbin/ip', '/sbin/ip', '/usr/bin/ip', '/bin/ip'],
  e2fsprogs: ['/usr/sbin/mkfs.ext4', '/sbin/mkfs.ext4'],
  'kubernetes-client': ['/usr/bin/kubectl', '/usr/local/bin/kubectl'],
  'qemu-system-x86': ['/usr/bin/qemu-system-x86_64'],
  systemd: ['/usr/lib/systemd/systemd', '/lib/systemd/systemd'],
  'dbus-daemon': ['/usr/bin/dbus-daemon'],
  'dbus-system-bus-common': ['/usr/share/dbus-1/system.conf'],
  chromium: ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'],
  patchelf: ['/usr/bin/patchelf'],
  strace: ['/usr/bin/strace'],
  curl: ['/usr/bin/curl', '/usr/local/bin/curl'],
  'golang-go': ['/usr/bin/go'],
  'golang-google-grpc-dev': ['/usr/share/gocode/src/google.golang.org/grpc'],
  python3: ['/usr/bin/python3', '/usr/local/bin/python3'],
};

/** What pods on a private containerd take. */
export const RUNTIME_PACKAGES: readonly string[] = [
  'containerd',
  'runc',
  'containernetworking-plugins',
  'busybox-static',
  'iptables',
  'iproute2',
];

const isMissing = (name: string): boolean => !(NEEDED[name] ?? []).some((path) => existsSync(path));

/** One package at a time that fails is told and left to the tests that need it; they say so when they are skipped. */
export async function ensurePackages(wanted: readonly string[] = Object.keys(NEEDED)): Promise<void> {
  const missing = wanted.filter(isMissing);
  if (missing.length === 0) return;
  if (!canInstall()) {
    console.error(`kubelet-ts: missing here: ${missing.join(' ')}; on Debian: apt-get install ${missing.join(' ')}`);
    return;
  }
  const tell = (line: string): void => console.error(`kubelet-ts: ${line}`);
  const never = new AbortController().signal;
  try {
    await installPackages(missing, tell, never);
  } catch {
    // One of them does not fit this machine: the others are still wanted.
    for (const name of missing)
      await installPackages([name], tell, never).catch((err: unknown) => tell(`${name}: ${String(err)}`));
  }
}
