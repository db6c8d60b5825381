// The configuration files of one private containerd: its config.toml and its own small pod network.
import { execFileSync } from 'node:child_process';

export const SANDBOX_IMAGE = 'localhost/pause:latest';

export type Layout = {
  readonly root: string;
  readonly socketPath: string;
  readonly network: PodNetwork;
  readonly snapshotter: 'overlayfs' | 'native';
  /** Where the CNI plugins are; Debian's place by default. */
  readonly cniPlugins?: string;
};

const cniPlugins = (layout: Layout): string => layout.cniPlugins ?? '/usr/lib/cni';

export type PodNetwork = {
  /** Names the network in CNI results and in the comments of iptables rules. */
  readonly name: string;
  readonly bridge: string;
  readonly subnet: string;
  readonly gateway: string;
  /** Pods reach the outside through the node's address. */
  readonly masquerade?: boolean;
};

/** A bridge name and a /24 that nothing on this machine uses. */
export function choosePodNetwork(random: () => number, prefix = 'kt'): PodNetwork {
  const routes = execFileSync('ip', ['-4', 'route'], { encoding: 'utf8' });
  for (;;) {
    const a = 128 + Math.floor(random() * 120);
    const b = Math.floor(random() * 250) + 1;
    if (routes.includes(`10.${a}.${b}.`)) continue;
    const id = `${a}x${b}`;
    return {
      name: `${prefix}s-${id}`,
      bridge: `${prefix}${id}`,
      subnet: `10.${a}.${b}.0/24`,
      gateway: `10.${a}.${b}.1`,
    };
  }
}

export function cniConfig({ root, network }: Layout): string {
  return JSON.stringify({
    cniVersion: '0.4.0',
    name: network.name,
    plugins: [
      {
        type: 'bridge',
        bridge: network.bridge,
        isGateway: true,
        ipMasq: network.masquerade === true,
        hairpinMode: true,
        ipam: {
          type: 'host-local',
          dataDir: `${root}/cni-ipam`,
          ranges: [[{ subnet: network.subnet, gateway: network.gateway }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  });
}

/** The network that `cniConfig` wrote down; undefined for any other text. */
export function networkOf(text: string): PodNetwork | undefined {
  const words = (name: string): string => new RegExp(`"${name}":\\s*"([^"]+)"`).exec(text)?.[1] ?? '';
  const network = { name: words('name'), bridge: words('bridge'), subnet: words('subnet'), gateway: words('gateway') };
  return Object.values(network).includes('') ? undefined : network;
}

/** `version` is containerd's own: 1.x and 2.x have different configuration files. */
export function containerdConfig(version: string, layout: Layout): string {
  return (version.startsWith('1.') ? configV2 : configV3)(layout);
}

const DISABLED = [
  'io.containerd.snapshotter.v1.aufs',
  'io.containerd.snapshotter.v1.btrfs',
  'io.containerd.snapshotter.v1.devmapper',
  'io.containerd.snapshotter.v1.zfs',
  'io.containerd.snapshotter.v1.blockfile',
  'io.containerd.snapshotter.v1.erofs',
  'io.containerd.internal.v1.tracing',
  'io.containerd.tracing.processor.v1.otlp',
  'io.containerd.internal.v1.restart',
  'io.containerd.monitor.container.v1.restart',
];

const head = (tomlVersion: number, { root, socketPath }: Layout): string => `version = ${tomlVersion}
root = "${root}/lib"
state = "${root}/run"
disabled_plugins = [${DISABLED.map((p) => `"${p}"`).join(', ')}]

[grpc]
  address = "${socketPath}"
  max_recv_message_size = 134217728
  max_send_message_size = 134217728

[plugins."io.containerd.internal.v1.opt"]
  path = "${root}/opt"

[plugins."io.containerd.nri.v1.nri"]
  disable = true
`;

const configV2 = (layout: Layout): string => `${head(2, layout)}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "${SANDBOX_IMAGE}"
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  stats_collect_period = 2
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "${cniPlugins(layout)}"
    conf_dir = "${layout.root}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "${layout.snapshotter}"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        Root = "${layout.root}/runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.other]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.other.options]
        Root = "${layout.root}/runc-other"
  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "${layout.root}/registry"
`;

const configV3 = (layout: Layout): string => `${head(3, layout)}
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "${layout.snapshotter}"
  stats_collect_period = 2
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "${SANDBOX_IMAGE}"
  [plugins."io.containerd.cri.v1.images".registry]
    config_path = "${layout.root}/registry"

[plugins."io.containerd.cri.v1.runtime"]
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["${cniPlugins(layout)}"]
    conf_dir = "${layout.root}/cni"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    sandboxer = "podsandbox"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
      Root = "${layout.root}/runc"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.other]
    runtime_type = "io.containerd.runc.v2"
    sandboxer = "podsandbox"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.other.options]
      Root = "${layout.root}/runc-other"
`;
