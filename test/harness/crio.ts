// A private CRI-O for tests, of programs that `CRIO_BINARIES` names: no distribution here has a package of it. Its own storage,
// socket, CNI network and images, all below one fresh folder in /tmp; images come from a registry in this process, as
// CRI-O has no other way to get them. `stop()` takes away everything it made.
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { choosePodNetwork, cniConfig, SANDBOX_IMAGE, type Layout } from '../../src/devcluster/containerd/config.ts';
import { sweepDeadRuns } from '../../src/devcluster/containerd/cleanup.ts';
import { busyboxImage, pauseImage, type BuiltImage, type ImageVariant } from '../../src/devcluster/containerd/image.ts';
import { BUSYBOX_IMAGE, type PrivateRuntime } from './containerd.ts';
import { TestRegistry } from './registry.ts';
import { RuntimeDaemon } from './runtime-daemon.ts';

const ROOT_PREFIX = '/tmp/kts-crio-';
const PROGRAMS = ['crio', 'conmon', 'pinns'] as const;

/** The folder with CRI-O's programs; undefined where nobody names one. One that lacks a program is an error. */
export function crioBinaries(): string | undefined {
  const dir = process.env['CRIO_BINARIES'];
  if (dir === undefined || dir === '') return undefined;
  for (const program of PROGRAMS)
    if (!existsSync(join(dir, program))) throw new Error(`CRIO_BINARIES=${dir}: there is no ${program} in it`);
  return dir;
}

export async function startCrio(binaries: string): Promise<PrivateRuntime> {
  await sweepDeadRuns(ROOT_PREFIX);
  const root = await mkdtemp(ROOT_PREFIX);
  await chmod(root, 0o711);
  const network = choosePodNetwork(Math.random);
  const layout: Layout = { root, socketPath: join(root, 'c.sock'), network, snapshotter: 'overlayfs' };
  for (const dir of ['lib', 'run', 'cni', 'exits', 'tmp', 'bin']) await mkdir(join(root, dir));
  await writeFile(join(root, 'owner.json'), JSON.stringify({ pid: process.pid, network }));
  await writeFile(join(root, 'cni', '10-test.conflist'), cniConfig(layout));
  await writeFile(join(root, 'policy.json'), '{"default":[{"type":"insecureAcceptAnything"}]}');
  await writeFile(join(root, 'bin', 'runc'), RUNC, { mode: 0o755 });
  const registry = new TestRegistry();
  await registry.start();
  await writeFile(join(root, 'registries.conf'), registriesConf(registry.host));
  await writeFile(join(root, 'crio.conf'), crioConf(layout, binaries));
  const daemon = new Daemon(binaries, layout, registry);
  try {
    await daemon.start();
    await daemon.pull(SANDBOX_IMAGE, pauseImage(SANDBOX_IMAGE));
    await daemon.importImage(BUSYBOX_IMAGE);
    return daemon;
  } catch (err) {
    const log = await daemon.log();
    await daemon.stop().catch(() => undefined);
    throw new Error(`CRI-O did not start: ${log.slice(-3000)}`, { cause: err });
  }
}

/**
 * Negative values of oomScoreAdj and containers with all capabilities need CAP_SYS_RESOURCE, limits of huge pages their
 * controller. A machine that runs tests may lack them; containerd makes do without, by its settings or by itself.
 */
const RUNC = `#!/bin/sh
bundle=$(printf '%s\\n' "$@" | sed -n '/^--bundle$/{n;p;}')
if [ -n "$bundle" ]; then
  sed -zi 's/"oomScoreAdj": *-[0-9]*/"oomScoreAdj": 0/
    s/"hugepageLimits": *\\[[^]]*\\]/"hugepageLimits": []/
    s/"CAP_SYS_RESOURCE",//g' "$bundle/config.json"
fi
exec runc "$@"
`;

const registriesConf = (host: string): string => `unqualified-search-registries = []
[[registry]]
prefix = "localhost"
location = "${host}"
insecure = true
[[registry]]
location = "127.0.0.1"
insecure = true
`;

const crioConf = ({ root, socketPath }: Layout, binaries: string): string => `[crio]
root = "${root}/lib"
runroot = "${root}/run"
storage_driver = "overlay"
log_dir = "${root}/log"
log_level = "warn"
version_file = "${root}/run/version"
version_file_persist = ""
clean_shutdown_file = ""
[crio.api]
listen = "${socketPath}"
stream_address = "127.0.0.1"
stream_port = "0"
grpc_max_send_msg_size = 134217728
grpc_max_recv_msg_size = 134217728
[crio.runtime]
cgroup_manager = "cgroupfs"
conmon_cgroup = "pod"
default_runtime = "runc"
pinns_path = "${binaries}/pinns"
namespaces_dir = "${root}/ns"
container_exits_dir = "${root}/exits"
container_attach_socket_dir = "${root}/run/attach"
hooks_dir = []
enable_pod_events = true
[crio.runtime.runtimes.runc]
runtime_path = "${root}/bin/runc"
runtime_root = "${root}/runc"
monitor_path = "${binaries}/conmon"
monitor_cgroup = "pod"
[crio.runtime.runtimes.other]
runtime_path = "${root}/bin/runc"
runtime_root = "${root}/runc-other"
monitor_path = "${binaries}/conmon"
monitor_cgroup = "pod"
[crio.image]
pause_image = "${SANDBOX_IMAGE}"
pause_command = ""
signature_policy = "${root}/policy.json"
[crio.network]
network_dir = "${root}/cni"
plugin_dirs = ["/usr/lib/cni"]
[crio.nri]
enable_nri = false
`;

class Daemon extends RuntimeDaemon implements PrivateRuntime {
  readonly version = 'cri-o';
  readonly #registry: TestRegistry;

  constructor(binaries: string, layout: Layout, registry: TestRegistry) {
    const { root } = layout;
    const registries = ['--registries-conf', join(root, 'registries.conf'), '--registries-conf-dir', root];
    const args = ['--config', join(root, 'crio.conf'), '--config-dir', '', ...registries];
    const env = { CONTAINERS_STORAGE_CONF: '/dev/null' };
    super('crio', { program: join(binaries, 'crio'), args, path: [], env }, layout);
    this.#registry = registry;
  }

  importImage(image: string | ImageVariant): Promise<void> {
    const variant = typeof image === 'string' ? { ref: image } : image;
    return this.pull(variant.ref, busyboxImage(variant));
  }

  async pull(ref: string, image: BuiltImage): Promise<void> {
    const [, path] = /^localhost\/(.+:[^:]+)$/.exec(ref) ?? [];
    if (path === undefined) throw new Error(`${ref}: images of CRI-O are named localhost/name:tag here`);
    this.#registry.serve(path, image);
    await this.images.pullImage({ image: { image: ref } }, new AbortController().signal);
  }

  cgroupOf(containerId: string): string {
    return `crio-${containerId}`;
  }

  pinImage(): Promise<void> {
    return Promise.reject(new Error('CRI-O pins images by its configuration only'));
  }

  override async stop(): Promise<void> {
    await this.#registry.stop();
    await super.stop();
  }
}
