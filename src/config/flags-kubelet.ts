// Flags that stand on their own: no configuration field carries them. The last group is ours alone.
import type { FlagDef, FlagType } from './flag-types.ts';

type Extra = { deprecated?: string };

const flag =
  (group: FlagDef['group']) =>
  (name: string, type: FlagType, fallback: unknown, help: string, extra: Extra = {}): FlagDef => ({
    name,
    type,
    default: fallback,
    group,
    help,
    ...extra,
  });

const kubelet = flag('Kubelet');
const cadvisor = flag('cAdvisor');
const own = flag('Own');
const misc = flag('Misc');

const GOING = { deprecated: 'it will be removed in a future version.' };
const USE_EVICTION = {
  deprecated: 'use --eviction-hard or --eviction-soft instead. It will be removed in a future version.',
};
const CADVISOR = {
  deprecated: 'it belongs to cAdvisor, was exposed by mistake and will go with the usual deprecation policy.',
};

export const KUBELET_FLAGS: readonly FlagDef[] = [
  kubelet(
    'config',
    'string',
    '',
    'File with the KubeletConfiguration. Relative paths start at the working directory. Without it the built-in defaults hold. Flags override what the file says.',
  ),
  kubelet(
    'config-dir',
    'string',
    '',
    'Directory of drop-in files (*.conf) that are merged over --config in lexical order.',
  ),
  kubelet(
    'kubeconfig',
    'string',
    '',
    'File that says how to reach the API server. Without it the kubelet runs standalone.',
  ),
  kubelet(
    'bootstrap-kubeconfig',
    'string',
    '',
    'File with the credentials used to ask for a client certificate when --kubeconfig does not exist yet. The result is written to --kubeconfig.',
  ),
  kubelet('hostname-override', 'string', '', 'Name of this node, instead of the host name.'),
  kubelet(
    'node-ip',
    'string',
    '',
    'Address (or a pair, one of each family, comma separated) of this node. Without it the kubelet finds one; 0.0.0.0 or :: chooses a family.',
  ),
  kubelet(
    'cert-dir',
    'string',
    '/var/lib/kubelet/pki',
    'Directory of the serving and client certificates. Not used for serving when --tls-cert-file and --tls-private-key-file are given.',
  ),
  kubelet(
    'cloud-provider',
    'string',
    '',
    'Empty, or "external" when a cloud controller manager initialises this node.',
  ),
  kubelet('root-dir', 'string', '/var/lib/kubelet', "Directory of the kubelet's own files: pods, volumes, plugins."),
  kubelet(
    'seccomp-default',
    'bool',
    false,
    'Give the RuntimeDefault seccomp profile to every workload that names none.',
  ),
  kubelet(
    'node-labels',
    'labels',
    {},
    'Labels to register this node with, key=value pairs separated by commas. Labels of kubernetes.io must be of the allowed kind.',
  ),
  kubelet('lock-file', 'string', '', 'File to lock for as long as this kubelet runs.'),
  kubelet(
    'exit-on-lock-contention',
    'bool',
    false,
    'Exit as soon as somebody else opens the lock file. Needs --lock-file.',
  ),
  kubelet('runtime-cgroups', 'string', '', 'Absolute cgroup in which the container runtime runs.'),
  kubelet(
    'image-credential-provider-config',
    'string',
    '',
    'File or directory with the configuration of the image credential provider plugins.',
  ),
  kubelet('image-credential-provider-bin-dir', 'string', '', 'Directory of the image credential provider plugins.'),
  kubelet(
    'minimum-container-ttl-duration',
    'duration',
    0,
    'How long a finished container stays before it may be collected.',
    USE_EVICTION,
  ),
  kubelet(
    'maximum-dead-containers-per-container',
    'int32',
    1,
    'How many old instances of one container stay. Each takes disk space.',
    USE_EVICTION,
  ),
  kubelet(
    'maximum-dead-containers',
    'int32',
    -1,
    'How many old container instances stay on the whole node; negative for no limit.',
    USE_EVICTION,
  ),
  kubelet(
    'experimental-mounter-path',
    'string',
    '',
    "Program to run for mounting. Empty for the mount system call's usual tool.",
    { deprecated: 'it has no replacement and will be removed in a future version.' },
  ),
  kubelet(
    'experimental-allocatable-ignore-eviction',
    'bool',
    false,
    "Leave the hard eviction thresholds out of the node's allocatable.",
    GOING,
  ),
];

export const CADVISOR_FLAGS: readonly FlagDef[] = [
  cadvisor('housekeeping-interval', 'duration', 10_000, 'How often container statistics are refreshed.'),
  cadvisor('application-metrics-count-limit', 'int', 100, 'Most application metrics kept per container.', CADVISOR),
  cadvisor(
    'boot-id-file',
    'string',
    '/proc/sys/kernel/random/boot_id',
    'Files to look for the boot id in, comma separated; the first that exists counts.',
    CADVISOR,
  ),
  cadvisor('container-hints', 'string', '/etc/cadvisor/container_hints.json', 'File with container hints.', CADVISOR),
  cadvisor('containerd', 'string', '/run/containerd/containerd.sock', 'Socket of containerd.', CADVISOR),
  cadvisor('containerd-namespace', 'string', 'k8s.io', 'Namespace of containerd.', CADVISOR),
  cadvisor('enable-load-reader', 'bool', false, 'Read the CPU load of containers.', CADVISOR),
  cadvisor(
    'event-storage-age-limit',
    'string',
    'default=0',
    'How long container events are kept, type=duration pairs.',
    CADVISOR,
  ),
  cadvisor(
    'event-storage-event-limit',
    'string',
    'default=0',
    'How many container events are kept, type=count pairs.',
    CADVISOR,
  ),
  cadvisor(
    'global-housekeeping-interval',
    'duration',
    60_000,
    'How often the list of containers is refreshed.',
    CADVISOR,
  ),
  cadvisor('log-cadvisor-usage', 'bool', false, 'Log the resource use of the statistics collection itself.', CADVISOR),
  cadvisor(
    'machine-id-file',
    'string',
    '/etc/machine-id,/var/lib/dbus/machine-id',
    'Files to look for the machine id in, comma separated; the first that exists counts.',
    CADVISOR,
  ),
  cadvisor('storage-driver-user', 'string', 'root', 'User of the statistics database.', CADVISOR),
  cadvisor('storage-driver-password', 'string', 'root', 'Password of the statistics database.', CADVISOR),
  cadvisor('storage-driver-host', 'string', 'localhost:8086', 'Host and port of the statistics database.', CADVISOR),
  cadvisor('storage-driver-db', 'string', 'cadvisor', 'Name of the statistics database.', CADVISOR),
  cadvisor('storage-driver-table', 'string', 'stats', 'Table in the statistics database.', CADVISOR),
  cadvisor('storage-driver-secure', 'bool', false, 'Encrypt the connection to the statistics database.', CADVISOR),
  cadvisor(
    'storage-driver-buffer-duration',
    'duration',
    60_000,
    'How long statistics are gathered before they are written out together.',
    CADVISOR,
  ),
];

export const OWN_FLAGS: readonly FlagDef[] = [
  own(
    'enable-manifest-api',
    'bool',
    false,
    'Serve /manifests on the main port: pods put there run like static pods and survive a restart of the kubelet.',
  ),
  own(
    'image-pull-progress',
    'bool',
    true,
    'Tell how far a long image pull is: in the waiting message of its container every ten seconds, and by events at 25, 50 and 75 % once it has taken half a minute.',
  ),
  own(
    'node-page-address',
    'string',
    '127.0.0.1',
    'The address of the node page. Beyond loopback it is served with TLS, by the certificate of the main port, and also takes client certificates.',
  ),
  own('node-page-port', 'int', 4194, 'The port of the node page; 0 switches the port off.'),
  own(
    'node-page-write',
    'bool',
    false,
    'Let who may see the node page also run commands in containers and end the back-offs of pods there. The page under /page/ on the main port stays read-only.',
  ),
  own(
    'not-ready-condition',
    'bool',
    true,
    'Say in the condition kubelet-ts/WhyNotReady of a pod why it is not ready, once that has lasted for half a minute.',
  ),
  own(
    'pod-checkpoint',
    'bool',
    false,
    'Keep the last known pods of the API server with what they need (secrets and tokens too, for root only) on disk, and start them after a reboot even while the API server cannot be reached.',
  ),
  own(
    'strict-stream-authorization',
    'bool',
    false,
    'Ask for the verb create on nodes/proxy before exec, attach, port-forward and run, whatever the HTTP method. Without it who may get nodes/proxy may run commands in every container, as upstream. Always on without an API server.',
  ),
];

export const MISC_FLAGS: readonly FlagDef[] = [
  { name: 'help', shorthand: 'h', type: 'bool', default: false, group: 'Misc', help: 'Show this text.' },
  misc('version', 'version', 'false', '--version, --version=raw: print the version and exit.'),
];
