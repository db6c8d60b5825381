// The guest's disk and the small initramfs that finds it.
import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { busyboxArchive, pauseArchive } from '../../src/devcluster/containerd/image.ts';
import { findContainerd, laterRunc, type ContainerdVersion } from '../harness/containerd-binaries.ts';
import { Archive } from '../node/cgroup-v2-guest-image.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const IMAGE = 'localhost/busybox:latest';
const PAUSE = 'localhost/pause:latest';
const DISK_MB = 3072;
const PACKAGES =
  'systemd,systemd-sysv,dbus,libpam-systemd,containerd,containernetworking-plugins,runc,kmod,libatomic1,busybox-static,procps,iptables,udev,linux-image-cloud-amd64';

export type GuestKind = { readonly release: 'bookworm' | 'trixie'; readonly containerd: ContainerdVersion };
export type Guest = { readonly kernel: string; readonly initramfs: string; readonly disk: string };

/** Everything below `work`; takes a few minutes. */
export async function buildGuest(work: string, kind: GuestKind): Promise<Guest> {
  const root = join(work, 'root');
  execFileSync('cp', ['-a', debian(kind.release), root]);
  const [booted] = globSync(join(root, 'boot', 'vmlinuz-*'));
  if (booted === undefined) throw new Error(`no kernel in the userland of ${kind.release}`);
  const kernel = join(work, basename(booted));
  cpSync(booted, kernel);
  rmSync(join(root, 'boot'), { recursive: true });
  writeSystem(root, kind.release);
  await writeRuntime(root, kind.containerd);
  writePods(root);
  installPackages(root, work);
  const disk = join(work, 'disk.img');
  execFileSync('mke2fs', ['-q', '-t', 'ext4', '-d', root, disk, `${DISK_MB}M`]);
  const initramfs = buildInitramfs(work, root, basename(kernel).replace('vmlinuz-', ''));
  rmSync(root, { recursive: true });
  return { kernel, initramfs, disk };
}

/** The userland with its kernel, once; then copies of it. */
function debian(release: GuestKind['release']): string {
  const kept = join(homedir(), '.cache', 'kubelet-ts', `systemd-guest-${release}`);
  if (existsSync(kept)) return kept;
  const work = `${kept}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  const args = ['--variant=minbase', `--include=${PACKAGES}`, release, work];
  execFileSync('debootstrap', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  for (const folder of ['var/cache/apt', 'var/lib/apt/lists'])
    rmSync(join(work, folder), { recursive: true, force: true });
  renameSync(work, kept);
  return kept;
}

function writeSystem(root: string, release: string): void {
  const write = (path: string, text: string | Buffer, mode = 0o644): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text, { mode });
  };
  const unit = (name: string, text: string): void => {
    write(`etc/systemd/system/${name}`, text);
    const wants = join(root, 'etc/systemd/system/multi-user.target.wants');
    mkdirSync(wants, { recursive: true });
    symlinkSync(`../${name}`, join(wants, name));
  };
  // The console belongs to the suite.
  symlinkSync('/dev/null', join(root, 'etc/systemd/system/serial-getty@ttyS0.service'));
  write('etc/hostname', 'guest\n');
  write('etc/fstab', '/dev/vda / ext4 rw 0 1\n');
  write('etc/machine-id', '0123456789abcdef0123456789abcdef\n');
  write('etc/modules-load.d/guest.conf', 'overlay\nbridge\nveth\n');
  write('root/release', release);
  write('root/busybox.tar', busyboxArchive({ ref: IMAGE }));
  write('root/pause.tar', pauseArchive(PAUSE));
  for (const script of ['wait.sh', 'prepare.sh'])
    write(`root/${script}`, readFileSync(join(import.meta.dirname, script)), 0o755);
  const images =
    '[ -e /var/imported ] || for f in busybox pause; do ctr -n k8s.io images import /root/$f.tar; done; touch /var/imported';
  unit('images.service', oneshot('containerd.service', 'kubelet.service', `/bin/sh -c '${images}'`));
  unit('suite.service', oneshot('images.service kubelet.service', '', '/root/wait.sh'));
  const config = readFileSync(join(ROOT, 'packaging', 'config.yaml'), 'utf8');
  write(
    'etc/kubernetes/kubelet.yaml',
    `${config}readOnlyPort: 10255\nshutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 30s\n`,
  );
  // Emulation is slow: the watchdog is patient. `Type=notify` lets the suite see when the agent has its pods.
  write(
    'etc/systemd/system/kubelet.service.d/30-guest.conf',
    '[Service]\nType=notify\nTimeoutStartSec=300\nEnvironment="KUBELET_EXTRA_ARGS=--config=/etc/kubernetes/kubelet.yaml -v=2"\nExecStartPre=/root/prepare.sh\nWatchdogSec=60\nRestartSec=1\nTimeoutStopSec=60\n',
  );
}

/** containerd in this version, with a runc that can map the owners of mounts, and a small pod network. */
async function writeRuntime(root: string, version: ContainerdVersion): Promise<void> {
  const { binDir } = await findContainerd(version);
  for (const name of ['containerd', 'containerd-shim-runc-v2', 'ctr'])
    cpSync(join(binDir, name), join(root, 'usr/bin', name));
  const runc = await laterRunc();
  mkdirSync(dirname(join(root, runc.home)), { recursive: true });
  execFileSync('cp', ['-a', runc.home, join(root, runc.home)]);
  const plugin = version.startsWith('1.') ? 'io.containerd.grpc.v1.cri' : 'io.containerd.cri.v1.runtime';
  const lines = [
    `version = ${version.startsWith('1.') ? 2 : 3}`,
    ...(version.startsWith('1.')
      ? [`[plugins."${plugin}"]`, `  sandbox_image = "${PAUSE}"`]
      : ['[plugins."io.containerd.cri.v1.images".pinned_images]', `  sandbox = "${PAUSE}"`]),
    `[plugins."${plugin}".cni]`,
    version.startsWith('1.') ? '  bin_dir = "/usr/lib/cni"' : '  bin_dirs = ["/usr/lib/cni"]',
    `[plugins."${plugin}".containerd.runtimes.runc]`,
    '  runtime_type = "io.containerd.runc.v2"',
    `[plugins."${plugin}".containerd.runtimes.runc.options]`,
    '  SystemdCgroup = true',
    `  BinaryName = "${runc.program}"`,
  ];
  mkdirSync(join(root, 'etc/containerd'), { recursive: true });
  writeFileSync(join(root, 'etc/containerd/config.toml'), `${lines.join('\n')}\n`);
  const ipam = { type: 'host-local', ranges: [[{ subnet: '10.88.0.0/24' }]], routes: [{ dst: '0.0.0.0/0' }] };
  const network = {
    cniVersion: '0.4.0',
    name: 'guest',
    plugins: [
      { type: 'bridge', bridge: 'cni0', isGateway: true, hairpinMode: true, ipam },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  };
  mkdirSync(join(root, 'etc/cni/net.d'), { recursive: true });
  writeFileSync(join(root, 'etc/cni/net.d/10-guest.conflist'), JSON.stringify(network));
}

const oneshot = (after: string, before: string, command: string): string =>
  `[Unit]\nAfter=${after}\n${before === '' ? '' : `Before=${before}\n`}[Service]\nType=oneshot\nTimeoutStartSec=infinity\nRemainAfterExit=yes\nExecStart=${command}\n`;

function writePods(root: string): void {
  mkdirSync(join(root, 'var/ends'), { recursive: true });
  for (const [name, priority] of [
    ['ordinary', 5],
    ['critical', 2_000_001_000],
    ['leaving', 5],
  ] as const) {
    const end = `echo ${name} asked >> /ends/log; sleep 1; echo ${name} ended >> /ends/log; exit 0`;
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: {
        priority,
        hostNetwork: true,
        volumes: [{ name: 'v', hostPath: { path: name === 'leaving' ? '/var/tmp' : '/var/ends' } }],
        containers: [
          {
            name: 'c',
            image: IMAGE,
            imagePullPolicy: 'Never',
            command: ['sh', '-c', `: ${name}; trap '${end}' TERM; while :; do sleep 1000 & wait $!; done`],
            // What starts the containers is throttled too: under emulation it needs its time.
            resources: { requests: { cpu: '10m' }, limits: { cpu: '800m', memory: '64Mi' } },
            volumeMounts: [{ name: 'v', mountPath: '/ends' }],
          },
        ],
      },
    };
    const dir = join(root, 'root/manifests');
    mkdirSync(dir, { recursive: true });
    writeFileSync(join(dir, `${name}.yaml`), JSON.stringify(pod));
  }
}

function installPackages(root: string, work: string): void {
  const build = (version: string): string => {
    const out = join(work, version);
    const args = [join(ROOT, 'scripts', 'package.ts'), '--out', out, '--arch', 'x64', '--package-version', version];
    execFileSync(process.execPath, args, { stdio: ['ignore', 'ignore', 'inherit'] });
    return out;
  };
  const debs = globSync(join(build('0.1.0'), '*.deb'));
  for (const deb of debs) cpSync(deb, join(root, 'root', basename(deb)));
  execFileSync('chroot', [root, 'dpkg', '--install', ...debs.map((deb) => `/root/${basename(deb)}`)], {
    stdio: 'ignore',
  });
  for (const deb of debs) rmSync(join(root, 'root', basename(deb)));
  mkdirSync(join(root, 'etc/kubernetes/manifests'), { recursive: true });
  mkdirSync(join(root, 'root/new'));
  for (const deb of globSync(join(build('0.1.1'), '*.deb'))) cpSync(deb, join(root, 'root/new', basename(deb)));
}

/** Loads what the disk needs, and hands over to systemd. */
function buildInitramfs(work: string, root: string, release: string): string {
  const path = join(work, 'initramfs');
  const archive = new Archive(path);
  archive.copy('/bin/busybox', '/usr/bin/busybox');
  for (const name of ['sh', 'mount', 'insmod', 'switch_root', 'sleep', 'mkdir'])
    archive.link(`usr/bin/${name}`, 'busybox');
  const show = ['-S', release, '--show-depends', '-a', 'virtio_pci', 'virtio_blk'];
  const listed = execFileSync('chroot', [root, 'modprobe', ...show], { encoding: 'utf8' });
  const files = [...listed.matchAll(/^insmod (\S+)/gm)].map(([, file]) => file ?? '');
  for (const file of files) archive.file(`modules/${basename(file)}`, readFileSync(join(root, file)));
  for (const dir of ['proc', 'sys', 'dev', 'new']) archive.directory(dir);
  const load = files.map((file) => `insmod /modules/${basename(file)}`).join('\n');
  archive.file(
    'init',
    `#!/bin/sh\nexport PATH=/usr/bin\nmount -t devtmpfs dev /dev\n${load}\nuntil [ -b /dev/vda ]; do sleep 1; done\nmount -t ext4 /dev/vda /new\nexec switch_root /new /lib/systemd/systemd\n`,
  );
  archive.close();
  return path;
}
