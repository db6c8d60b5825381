// The disk of a QEMU guest that is a whole node: containerd, the built kubelet and two pods. What the guest does is in its
// init script; it tells on its console what the kernel lets the containers use.
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, globSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { containerdConfig, SANDBOX_IMAGE, type Layout } from '../../src/devcluster/containerd/config.ts';
import { busyboxArchive, pauseArchive } from '../../src/devcluster/containerd/image.ts';
import { findContainerd } from '../harness/containerd-binaries.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';

const PROJECT = join(import.meta.dirname, '..', '..');
const DISK_MIB = 1200;
const TOOLS = 'sh mount sleep echo cat mkdir insmod wget grep sync kill cut tr pidof rm mv ip tail';
const DIRECTORIES = 'usr/bin usr/sbin usr/lib usr/lib64 proc sys dev tmp run var/lib var/log root';
const RUNC = ['/usr/sbin/runc', '/usr/bin/runc'];
const LAYOUT: Layout = {
  root: '/ctd',
  socketPath: '/run/containerd.sock',
  // Its pods use the network of the machine.
  network: { name: 'guest', bridge: 'kt0', subnet: '10.98.0.0/24', gateway: '10.98.0.1' },
  snapshotter: 'overlayfs',
};

/** The guest's root filesystem, in a file. */
export async function buildNumaDisk(kernel: string, folder: string): Promise<string> {
  const root = new Root(join(folder, 'root'));
  addSystem(root, kernel);
  await addRuntime(root);
  addKubelet(root);
  root.file('init', INIT);
  const disk = join(folder, 'disk.img');
  execFileSync('mkfs.ext4', ['-q', '-m', '0', '-d', root.path, disk, `${DISK_MIB}M`], { stdio: 'pipe' });
  return disk;
}

class Root {
  readonly path: string;

  constructor(path: string) {
    this.path = path;
  }

  directory(path: string): void {
    mkdirSync(join(this.path, path), { recursive: true });
  }

  file(path: string, data: string | Buffer): void {
    this.directory(dirname(path));
    writeFileSync(join(this.path, path), data, { mode: 0o755 });
  }

  link(path: string, target: string): void {
    symlinkSync(target, join(this.path, path));
  }

  copy(from: string, to: string): void {
    this.directory(dirname(to));
    copyFileSync(from, join(this.path, to));
    chmodSync(join(this.path, to), 0o755);
  }

  /** With all libraries it is linked to. */
  program(from: string, to: string): void {
    this.copy(from, to);
    const listed = spawnSync('ldd', [from], { encoding: 'utf8' }).stdout;
    for (const [, library = ''] of listed.matchAll(/(\/\S+) \(0x/g)) this.copy(library, merged(library));
  }
}

function addSystem(root: Root, kernel: string): void {
  for (const dir of DIRECTORIES.split(' ')) root.directory(dir);
  for (const dir of ['bin', 'sbin', 'lib', 'lib64']) root.link(dir, `usr/${dir}`);
  root.program('/bin/busybox', 'usr/bin/busybox');
  for (const tool of TOOLS.split(' ')) root.link(`usr/bin/${tool}`, 'busybox');
  const [overlay] = globSync(join(dirname(dirname(kernel)), '{usr/,}lib/modules/*/kernel/fs/overlayfs/overlay.ko'));
  if (overlay === undefined) throw new Error(`no overlayfs beside ${kernel}`);
  root.copy(overlay, 'overlay.ko');
  root.file('etc/passwd', 'root:x:0:0::/root:/bin/sh\n');
  root.file('etc/group', 'root:x:0:\n');
  root.file('etc/hosts', '127.0.0.1 localhost\n');
  root.file('etc/resolv.conf', 'nameserver 127.0.0.1\n');
  root.file('etc/os-release', 'ID=guest\nPRETTY_NAME=guest\n');
  root.file('etc/machine-id', '0123456789abcdef0123456789abcdef\n');
}

async function addRuntime(root: Root): Promise<void> {
  const runc = RUNC.find((path) => existsSync(path));
  if (runc === undefined) throw new Error('runc is not installed');
  root.program(runc, 'usr/sbin/runc');
  const { binDir } = await findContainerd('2.1');
  for (const name of ['containerd', 'containerd-shim-runc-v2', 'ctr'])
    root.program(join(binDir, name), `usr/bin/${name}`);
  root.file('images/pause.tar', pauseArchive(SANDBOX_IMAGE));
  root.file('images/busybox.tar', busyboxArchive({ ref: BUSYBOX_IMAGE }));
  for (const dir of ['lib', 'run', 'runc', 'cni', 'opt', 'registry', 'tmp']) root.directory(`ctd/${dir}`);
  root.file('ctd/config.toml', containerdConfig('2.1', LAYOUT));
}

function addKubelet(root: Root): void {
  root.program(process.execPath, 'kubelet/node');
  const build = ['scripts/build.ts', '--out', join(root.path, 'kubelet/dist'), '--no-executable'];
  execFileSync(process.execPath, build, { cwd: PROJECT, stdio: 'pipe' });
  root.file('kubelet/config.yaml', CONFIG);
  root.directory('manifests');
  root.file('pods/shared.json', manifestOf('shared', { cpu: '100m', memory: '16Mi' }, { cpu: '4', memory: '64Mi' }));
  root.file('pods/witness.json', manifestOf('witness', {}, {}));
  root.file('pods/pinned.json', manifestOf('pinned', { cpu: '2', memory: '32Mi' }, { cpu: '2', memory: '32Mi' }));
}

/** /lib and the like are links into /usr in the guest. */
const merged = (path: string): string => path.replace(/^\/(bin|sbin|lib|lib64)\//, 'usr/$1/').replace(/^\//, '');

const CONFIG = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix:///run/containerd.sock
staticPodPath: /manifests
cgroupDriver: cgroupfs
enableServer: false
cpuManagerPolicy: static
cpuManagerReconcilePeriod: 1s
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
memoryManagerPolicy: Static
topologyManagerPolicy: single-numa-node
systemReserved: {cpu: 500m, memory: 15Mi}
reservedMemory: [{numaNode: 0, limits: {memory: 16Mi}}]
evictionHard: {memory.available: 1Mi}
featureGates: {MemoryQoS: true}
memoryReservationPolicy: TieredReservation
memoryThrottlingFactor: 0.5
`;

/** Their processes are found by this. */
const SLEEPS: Readonly<Record<string, string>> = { shared: '11111', pinned: '22222', witness: '33333' };

type Amounts = Readonly<Record<string, string>>;

const manifestOf = (name: string, requests: Amounts, limits: Amounts): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', uid: `uid-${name}` },
    spec: {
      hostNetwork: true,
      terminationGracePeriodSeconds: 0,
      containers: [
        {
          name: 'c',
          image: BUSYBOX_IMAGE,
          imagePullPolicy: 'Never',
          command: ['sleep', SLEEPS[name] ?? ''],
          resources: { requests, limits },
        },
      ],
    },
  });

/** Every wait is for something to happen; a guest that waits longer than this in all gives up. */
const STALLED_S = 720;

const INIT = `#!/bin/sh
export PATH=/usr/bin:/usr/sbin HOME=/root TMPDIR=/tmp
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t tmpfs tmpfs /ctd/run
mount -t tmpfs tmpfs /ctd/runc
mount -t cgroup2 cgroup2 /sys/fs/cgroup
insmod /overlay.ko
ip link set lo up
ip addr add 10.99.0.1/24 dev lo

say() { echo "guest: $* ($(cut -d' ' -f1 /proc/uptime) s)"; }
pid_of() { for p in $(pidof sleep); do case "$(tr '\\0' ' ' < /proc/$p/cmdline 2> /dev/null)" in "sleep $1 ") echo $p; return 0 ;; esac; done; return 1; }
wait_pid() { while ! pid_of $1 > /dev/null; do sleep 1; done; }
gone_pid() { while pid_of $1 > /dev/null; do sleep 1; done; }
field() { grep "^$2_allowed_list" /proc/$1/status | cut -f2; }
tell() {
  p=$(pid_of $3)
  c=/sys/fs/cgroup$(cut -d: -f3 /proc/$p/cgroup)
  echo "guest-fact: $1 $2 {\\"pid\\":$p,\\"cpus\\":\\"$(field $p Cpus)\\",\\"mems\\":\\"$(field $p Mems)\\",\\"min\\":\\"$(cat $c/memory.min)\\",\\"low\\":\\"$(cat $c/memory.low)\\",\\"high\\":\\"$(cat $c/memory.high)\\",\\"max\\":\\"$(cat $c/memory.max)\\",\\"cpuMax\\":\\"$(cat $c/cpu.max)\\"}"
}
state() {
  echo "guest-cpu-state: $1 $(cat /var/lib/kubelet/cpu_manager_state)"
  echo "guest-memory-state: $1 $(cat /var/lib/kubelet/memory_manager_state)"
}
# Until the process may run on all CPUs that nobody owns.
wait_shared() { while [ "$(field $(pid_of $1) Cpus)" != "$(cut -d'"' -f8 /var/lib/kubelet/cpu_manager_state)" ]; do sleep 1; done; }
start_kubelet() {
  NODE_COMPILE_CACHE=/kubelet/cache /kubelet/node --disable-warning=ExperimentalWarning /kubelet/dist/kubelet.mjs --config /kubelet/config.yaml --node-ip 10.99.0.1 --hostname-override n1 >> /kubelet.log 2>&1 &
  kubelet=$!
  while ! wget -q -O /dev/null http://127.0.0.1:10248/healthz 2>/dev/null; do
    if [ ! -d /proc/$kubelet ]; then cat /kubelet.log; say "the kubelet has ended"; echo o > /proc/sysrq-trigger; fi
    sleep 1
  done
  say "the kubelet is healthy"
}
# Tells what the parts said last, if the guest gets nowhere.
watch_over() {
  sleep ${STALLED_S}
  say "stalled"
  tail -n 60 /kubelet.log
  tail -n 20 /containerd.log
  echo o > /proc/sysrq-trigger
}
watch_over &
containerd --config /ctd/config.toml > /containerd.log 2>&1 &
while [ ! -S /run/containerd.sock ]; do sleep 1; done
say "containerd listens"
if [ ! -e /second ]; then
  for image in pause busybox; do
    while ! ctr -a /run/containerd.sock -n k8s.io images import /images/$image.tar > /dev/null 2>&1; do sleep 1; done
  done
  say "images are there"
  start_kubelet
  mv /pods/shared.json /manifests/
  wait_pid 11111
  tell alone shared 11111
  say "the first pod runs"
  mv /pods/pinned.json /manifests/
  wait_pid 22222
  wait_shared 11111
  tell pinned pinned 22222
  tell pinned shared 11111
  state pinned
  kill -9 $kubelet
  say "the kubelet was killed"
  start_kubelet
  # A pod that starts tells that the kubelet has taken up its work again.
  mv /pods/witness.json /manifests/
  wait_pid 33333
  tell restarted pinned 22222
  tell restarted shared 11111
  state restarted
  echo > /second
else
  start_kubelet
  wait_pid 11111
  say "the first pod runs again"
  wait_pid 22222
  say "the pinned pod runs again"
  wait_shared 11111
  tell rebooted pinned 22222
  tell rebooted shared 11111
  state rebooted
  rm /manifests/pinned.json
  gone_pid 22222
  while [ "$(field $(pid_of 11111) Cpus)" != 0-7 ]; do sleep 1; done
  # The file follows.
  while grep -q uid-pinned /var/lib/kubelet/cpu_manager_state; do sleep 1; done
  tell freed shared 11111
  state freed
fi
say "done"
kill $kubelet
sync
mount -o remount,ro / 2>/dev/null
echo s > /proc/sysrq-trigger
echo o > /proc/sysrq-trigger
sleep 60
`;
