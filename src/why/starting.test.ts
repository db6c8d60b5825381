// A row for every cause: what is known, and what is said of it.
import { NOW, podOf, eventOf, volume, sandbox, checkRows } from './why.fixture.ts';

checkRows('what a pod waits for before its containers', [
  [
    'RuntimeDown',
    'failing',
    { runtimeProblem: 'container runtime is down' },
    'The pod waits for the container runtime, which does not work.',
  ],
  [
    'Admission',
    'progressing',
    { status: {} },
    'The node has just learned of the pod and is judging whether it can take it.',
  ],
  [
    'PredecessorStopping',
    'waiting',
    {
      pod: podOf({}, { annotations: { 'kubernetes.io/config.source': 'file' } }),
      status: {},
      others: [podOf({}, { uid: 'older' })],
    },
    'The static pod waits for the one of the same name before it (uid older) to stop.',
  ],
  [
    'NetworkNotReady',
    'failing',
    { networkProblem: 'cni plugin not initialized' },
    'The pod waits for the network of the node: no CNI plugin is ready.',
  ],
  [
    'StartQueued',
    'waiting',
    { underWay: [{ name: 'turn', sinceMs: NOW - 4000 }] },
    'The pod waits for its turn to start for 4 s: other pods are starting.',
  ],
  [
    'VolumeSecretMissing',
    'failing',
    volume('MountVolume.SetUp failed for volume "data" : secret "db" not found'),
    'The pod waits for a secret that is not there: volume "data": MountVolume.SetUp failed for volume "data" : secret "db" not found (for 40s).',
  ],
  [
    'VolumeConfigMapMissing',
    'failing',
    volume('MountVolume.SetUp failed for volume "data" : configmap "settings" not found'),
    'The pod waits for a config map that is not there: volume "data": MountVolume.SetUp failed for volume "data" : configmap "settings" not found (for 40s).',
  ],
  [
    'ClaimMissing',
    'failing',
    volume('error processing PVC shop/data: persistentvolumeclaims "data" not found'),
    'The pod waits for a claim that is not there: volume "data": error processing PVC shop/data: persistentvolumeclaims "data" not found (for 40s).',
  ],
  [
    'ClaimNotBound',
    'failing',
    volume('error processing PVC shop/data: PVC is not bound'),
    'The pod waits for a claim that is not bound to a volume: volume "data": error processing PVC shop/data: PVC is not bound (for 40s).',
  ],
  [
    'CsiDriverMissing',
    'failing',
    volume('kubernetes.io/csi: driver name disk.example.com not found in the list of registered CSI drivers'),
    'The pod waits for a CSI driver that is not registered on this node: volume "data": kubernetes.io/csi: driver name disk.example.com not found in the list of registered CSI drivers (for 40s).',
  ],
  [
    'VolumeNotAttached',
    'failing',
    volume('waits for the volume to be attached'),
    'The pod waits for a volume to be attached to this node: volume "data": waits for the volume to be attached (for 40s).',
  ],
  [
    'HostPathMissing',
    'failing',
    volume('hostPath type check failed: /srv/data is not a directory'),
    'The pod waits for a path on the host that is not there, or of another kind: volume "data": hostPath type check failed: /srv/data is not a directory (for 40s).',
  ],
  [
    'VolumeAccessDenied',
    'failing',
    volume('mount.nfs: access denied by server while mounting nas:/srv'),
    'The pod waits for a volume whose server refuses access: volume "data": mount.nfs: access denied by server while mounting nas:/srv (for 40s).',
  ],
  [
    'StorageUnreachable',
    'failing',
    volume('mount.nfs: Connection refused'),
    'The pod waits for a storage server that does not answer: volume "data": mount.nfs: Connection refused (for 40s).',
  ],
  [
    'MountFailed',
    'failing',
    volume('mount failed: exit status 32: wrong fs type, bad option, bad superblock'),
    'The pod waits for a volume that cannot be mounted: volume "data": mount failed: exit status 32: wrong fs type, bad option, bad superblock (for 40s).',
  ],
  [
    'VolumesMounting',
    'progressing',
    volume('is being mounted'),
    'The pod waits for its volumes: volume "data": is being mounted (for 40s).',
  ],
  [
    'VolumesNotMounted',
    'failing',
    {
      ...volume('is being mounted'),
      events: [eventOf('FailedMount', 'Unable to attach or mount volumes: unmounted volumes=[data]')],
    },
    'The pod waits for volumes that cannot be mounted: volume "data": is being mounted (for 40s).',
  ],
  [
    'NoAddressLeft',
    'failing',
    sandbox('plugin type="host-local" failed: no IP addresses available in range set'),
    'The sandbox of the pod cannot be made because the network has no address left for it, next try in 17 s.',
  ],
  [
    'PortTaken',
    'failing',
    sandbox('cannot listen on the TCP port: listen tcp4 :8080: bind: address already in use'),
    'The sandbox of the pod cannot be made because a host port is taken by a process outside of Kubernetes, next try in 17 s.',
  ],
  [
    'RuntimeHandlerMissing',
    'failing',
    sandbox('no runtime for "gvisor" is configured'),
    'The sandbox of the pod cannot be made because the runtime does not know the handler of its runtime class, next try in 17 s.',
  ],
  [
    'SandboxImageMissing',
    'failing',
    sandbox('failed to get sandbox image "registry.k8s.io/pause:3.10"'),
    "The sandbox of the pod cannot be made because the runtime's sandbox (pause) image cannot be pulled, next try in 17 s.",
  ],
  [
    'SandboxNameTaken',
    'failing',
    sandbox('failed to reserve sandbox name "web": name is reserved for "0123"'),
    'The sandbox of the pod cannot be made because the runtime still has a sandbox of this name, next try in 17 s.',
  ],
  [
    'NetworkSetupFailed',
    'failing',
    sandbox('plugin type="bridge" failed (add): network unreachable'),
    'The sandbox of the pod cannot be made because the CNI plugin could not set its network up, next try in 17 s.',
  ],
  [
    'SandboxFailed',
    'failing',
    sandbox('shim exited'),
    'The sandbox of the pod cannot be made because the runtime failed, next try in 17 s.',
  ],
  [
    'CgroupFailed',
    'failing',
    {
      events: [
        eventOf('FailedCreatePodContainer', 'unable to ensure pod container exists: mkdir: read-only file system'),
      ],
    },
    'The cgroup of the pod cannot be made, next try in 17 s.',
  ],
  [
    'Starting',
    'progressing',
    {
      underWay: [{ name: 'runPodSandbox', sinceMs: NOW - 3000 }],
      worker: { phase: 'syncing', busySinceMs: NOW - 3500 },
    },
    'The pod is starting: its sandbox and network are being made for 3 s.',
  ],
  [
    'SyncFailed',
    'failing',
    {
      worker: {
        phase: 'syncing',
        nextRunMs: NOW + 12_000,
        lastError: { message: 'the runtime lists this pod but cannot describe it', atMs: NOW - 2000, attempts: 4 },
      },
    },
    'The pod could not be brought up, next try in 12 s: the runtime lists this pod but cannot describe it.',
  ],
  ['Unknown', 'progressing', {}, 'The pod is Pending, and nothing is known that it waits for.'],
]);
