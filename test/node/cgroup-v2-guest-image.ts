// Builds what a QEMU guest needs to run our tests on a machine with nothing but cgroup v2: the distribution's cloud
// kernel, and an initramfs of busybox, Node, the bundled tests and (for the systemd driver) the host's systemd and dbus.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { buildSync } from 'esbuild';

const CACHE = join(homedir(), '.cache', 'kubelet-ts');
const DIRECTORY = 0o040755;
const FILE = 0o100755;
const LINK = 0o120777;

/** The newest cloud kernel of this distribution, downloaded once and kept in the cache. */
export function cloudKernel(): string {
  const name = cloudKernelPackage();
  const kernel = join(CACHE, name, 'boot', name.replace('linux-image-', 'vmlinuz-'));
  if (existsSync(kernel)) return kernel;
  mkdirSync(CACHE, { recursive: true });
  const work = mkdtempSync(join(CACHE, 'download-'));
  try {
    execFileSync('apt-get', ['download', name], { cwd: work, stdio: 'ignore' });
    const [deb] = globSync(join(work, `${name}_*.deb`));
    if (deb === undefined) throw new Error(`apt-get download ${name} brought no package`);
    execFileSync('dpkg-deb', ['-x', deb, join(work, 'unpacked')]);
    if (existsSync(kernel)) return kernel;
    rmSync(join(CACHE, name), { recursive: true, force: true });
    // Complete or not there at all: a download that is cut off leaves nothing that looks like a kernel.
    renameSync(join(work, 'unpacked'), join(CACHE, name));
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  return kernel;
}

function cloudKernelPackage(): string {
  const listed = (): string | undefined => {
    const depends = spawnSync('apt-cache', ['depends', 'linux-image-cloud-amd64'], { encoding: 'utf8' });
    return /Depends: (linux-image-\S+)/.exec(depends.stdout)?.[1];
  };
  const known = listed();
  if (known !== undefined) return known;
  execFileSync('apt-get', ['-qq', 'update'], { stdio: 'ignore' });
  const name = listed();
  if (name === undefined) throw new Error('linux-image-cloud-amd64 is not in the package lists');
  return name;
}

/** An archive in the "newc" format the kernel unpacks into its root. */
export class Archive {
  readonly #fd: number;
  readonly #made = new Set<string>();
  #inode = 1;

  constructor(path: string) {
    this.#fd = openSync(path, 'w');
    for (const dir of ['bin', 'sbin', 'lib', 'lib64']) this.link(dir, `usr/${dir}`);
  }

  file(path: string, data: string | Buffer): void {
    this.#parents(path);
    this.#entry(path, FILE, Buffer.from(data));
  }

  copy(from: string, to = from): void {
    this.file(merged(to), readFileSync(from));
  }

  link(path: string, target: string): void {
    this.#parents(path);
    this.#entry(path, LINK, Buffer.from(target));
  }

  directory(path: string): void {
    this.#parents(join(path, 'x'));
  }

  /** A program with all libraries it is linked to. */
  program(from: string, to = from): void {
    this.copy(from, to);
    const listed = execFileSync('ldd', [from], { encoding: 'utf8' });
    for (const [, library] of listed.matchAll(/(\/\S+) \(0x/g)) if (library !== undefined) this.copy(library);
  }

  close(): void {
    this.#entry('TRAILER!!!', 0, Buffer.alloc(0));
    closeSync(this.#fd);
  }

  #parents(path: string): void {
    const parts = path.split('/').filter(Boolean).slice(0, -1);
    for (const [i] of parts.entries()) this.#entry(parts.slice(0, i + 1).join('/'), DIRECTORY, Buffer.alloc(0));
  }

  #entry(path: string, mode: number, data: Buffer): void {
    const name = path.replace(/^\//, '');
    if (this.#made.has(name)) return;
    this.#made.add(name);
    const fields = [this.#inode++, mode, 0, 0, 1, 0, data.length, 0, 0, 0, 0, name.length + 1, 0];
    const header = `070701${fields.map((n) => n.toString(16).padStart(8, '0')).join('')}${name}\0`;
    writeSync(this.#fd, padded(Buffer.from(header)));
    writeSync(this.#fd, padded(data));
  }
}

const padded = (data: Buffer): Buffer => Buffer.concat([data, Buffer.alloc((4 - (data.length % 4)) % 4)]);
/** /lib and the like are links into /usr in the guest. */
const merged = (path: string): string => path.replace(/^\/(bin|sbin|lib|lib64)\//, '/usr/$1/');

const TESTS = ['resources', 'resources-oom', 'stats-cgroup'];
/**
 * Without a compiler: under emulation compiling JavaScript costs more than running it, and now and then crashes. In one
 * process: each start of Node takes seconds there.
 */
const RUN_TESTS =
  'cd /tests && NODE_OPTIONS=--jitless node --test --test-isolation=none --test-force-exit --test-reporter=tap *.test.mjs';
const END = 'echo "guest: tests ended with $?"; echo o > /proc/sysrq-trigger; sleep 10';

/** Runs the resource and statistics tests as the machine's first process would start them; prints TAP on the console. */
export function buildImage(driver: 'cgroupfs' | 'systemd', folder: string): string {
  const path = join(folder, `${driver}.cpio`);
  const archive = new Archive(path);
  archive.copy('/bin/busybox', '/usr/bin/busybox');
  for (const name of ['sh', 'mount', 'sleep', 'echo', 'cat', 'dd', 'mkdir', 'ls'])
    archive.link(`usr/bin/${name}`, 'busybox');
  archive.program(process.execPath, '/usr/bin/node');
  for (const { path: file, text } of bundledTests()) archive.file(`tests/${file}`, text);
  for (const dir of ['proc', 'sys', 'dev', 'tmp', 'run', 'var/lib']) archive.directory(dir);
  if (driver === 'systemd') addSystemd(archive);
  else archive.file('init', PLAIN_INIT);
  archive.close();
  return path;
}

/** As few files as possible, without types. */
const bundledTests = (): readonly { readonly path: string; readonly text: string }[] =>
  buildSync({
    entryPoints: TESTS.map((name) => join(import.meta.dirname, `${name}.test.ts`)),
    outdir: '/',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: true,
    platform: 'node',
    format: 'esm',
    target: `node${process.versions.node}`,
    write: false,
  }).outputFiles;

const PLAIN_INIT = `#!/bin/sh
export PATH=/usr/bin HOME=/tmp GUEST=1
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t cgroup2 cgroup2 /sys/fs/cgroup
${RUN_TESTS}
${END}
`;

const SYSTEMD = '/usr/lib/systemd/systemd';
export const hasSystemd = (): boolean =>
  [SYSTEMD, '/usr/bin/dbus-daemon', '/usr/share/dbus-1/system.conf'].every((f) => existsSync(f));

function addSystemd(archive: Archive): void {
  archive.program(SYSTEMD);
  archive.program('/usr/bin/dbus-daemon');
  archive.link('init', SYSTEMD);
  for (const file of globSync('/usr/share/dbus-1/{system.conf,system.d/*}')) archive.copy(file);
  const unit = (name: string, text: string): void => archive.file(`etc/systemd/system/${name}`, text);
  archive.file('etc/passwd', 'root:x:0:0::/:/bin/sh\nmessagebus:x:100:100::/:/bin/sh\n');
  archive.file('etc/group', 'root:x:0:\nmessagebus:x:100:\n');
  archive.file('etc/os-release', 'ID=guest\n');
  archive.file('etc/machine-id', '0123456789abcdef0123456789abcdef\n');
  unit('default.target', '[Unit]\nDefaultDependencies=no\nWants=tests.service\n');
  unit('dbus.socket', '[Unit]\nDefaultDependencies=no\n[Socket]\nListenStream=/run/dbus/system_bus_socket\n');
  unit(
    'dbus.service',
    '[Unit]\nDefaultDependencies=no\nRequires=dbus.socket\n[Service]\nExecStart=/usr/bin/dbus-daemon --system --address=systemd: --nofork --nopidfile\n',
  );
  unit(
    'tests.service',
    '[Unit]\nDefaultDependencies=no\nRequires=dbus.service\nAfter=dbus.service\n[Service]\nType=oneshot\nTimeoutStartSec=infinity\nExecStart=/bin/sh /run-tests\nEnvironment=PATH=/usr/bin HOME=/tmp GUEST=1 CGROUP_DRIVER=systemd\nStandardOutput=tty\nStandardError=tty\nTTYPath=/dev/ttyS0\n',
  );
  archive.file('run-tests', `#!/bin/sh\n${RUN_TESTS}\n${END}\n`);
}
