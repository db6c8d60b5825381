// A row for every cause: what is known, and what is said of it.
import { ago, podOf, withApp, refused, port, checkRows } from './why.fixture.ts';

checkRows('why a pod ended', [
  [
    'OutOfResource',
    'failed',
    refused('OutOfcpu', "Node didn't have enough resource: cpu, requested: 4000, used: 1500, capacity: 4000"),
    'The node did not take the pod: not enough cpu is left (asked for 4000m, 1500m of 4000m are taken).',
  ],
  [
    'PortTaken',
    'failed',
    { ...refused('NodePorts'), pod: port('web', 'uid-web'), others: [port('front', 'uid-front')] },
    'The node did not take the pod: host port 8080 is taken by pod "shop/front".',
  ],
  [
    'PortTaken',
    'failed',
    { ...refused('NodePorts'), pod: port('web', 'uid-web') },
    'The node did not take the pod: host port 8080 was taken by another pod.',
  ],
  [
    'NodeAffinity',
    'failed',
    refused('NodeAffinity'),
    "The node did not take the pod: the node's labels do not match the pod's nodeSelector or node affinity.",
  ],
  [
    'NodeName',
    'failed',
    refused('NodeName'),
    'The node did not take the pod: the pod is meant for a node of another name.',
  ],
  [
    'Taint',
    'failed',
    refused('TaintToleration'),
    'The node did not take the pod: the node has a taint that the pod does not tolerate.',
  ],
  [
    'SysctlForbidden',
    'failed',
    refused('SysctlForbidden'),
    'The node did not take the pod: the pod asks for a sysctl that this node does not allow.',
  ],
  [
    'VolumeUnsupported',
    'failed',
    refused('UnsupportedVolume'),
    'The node did not take the pod: one of its volumes is of a kind that cannot be had on this node.',
  ],
  [
    'AppArmor',
    'failed',
    refused('AppArmor'),
    'The node did not take the pod: AppArmor cannot be enforced on this node.',
  ],
  [
    'TopologyAffinity',
    'failed',
    refused('TopologyAffinityError'),
    'The node did not take the pod: its CPUs, memory and devices cannot be aligned on this node.',
  ],
  [
    'WholeCores',
    'failed',
    refused('SMTAlignmentError'),
    'The node did not take the pod: it asks for a number of CPUs that is not a whole number of cores.',
  ],
  [
    'NodeUnknown',
    'failed',
    refused('InvalidNodeInfo'),
    'The node did not take the pod: the node did not know itself yet.',
  ],
  [
    'WrongOS',
    'failed',
    refused('PodOSNotSupported'),
    'The node did not take the pod: it is for another operating system.',
  ],
  [
    'GroupsPolicyUnsupported',
    'failed',
    refused('SupplementalGroupsPolicyNotSupported'),
    'The node did not take the pod: the runtime does not support its supplementalGroupsPolicy.',
  ],
  [
    'PodResourcesUnsupported',
    'failed',
    refused('PodLevelResourcesNotSupported'),
    'The node did not take the pod: pod level resources are turned off on this node.',
  ],
  [
    'FeatureUnsupported',
    'failed',
    refused('PodFeatureUnsupported'),
    'The node did not take the pod: it needs a feature that is off on this node.',
  ],
  ['NodeShutdown', 'failed', refused('NodeShutdown'), 'The node did not take the pod: the node is shutting down.'],
  [
    'AdmissionFailed',
    'failed',
    refused('UnexpectedAdmissionError'),
    'The node did not take the pod: its resources could not be allocated.',
  ],
  [
    'RefusedUnderPressure',
    'failed',
    refused('Evicted', 'The node had condition: [MemoryPressure]. '),
    'The node did not take the pod: it is under pressure (MemoryPressure).',
  ],
  [
    'EvictedUnderPressure',
    'failed',
    refused('Evicted', 'The node was low on resource: ephemeral-storage. Threshold quantity: 1, available: 0. '),
    'The pod was evicted: the node ran low on ephemeral-storage.',
  ],
  [
    'EvictedForStorage',
    'failed',
    refused('Evicted', 'Usage of EmptyDir volume "scratch" exceeds the limit "1Gi". '),
    'The pod was evicted: it used more local storage than its limit.',
  ],
  [
    'Preempted',
    'failed',
    refused('Preempting', 'Preempted in order to admit critical pod'),
    'The pod had to make room for a critical pod.',
  ],
  [
    'DeadlineExceeded',
    'failed',
    {
      ...refused('DeadlineExceeded', 'Pod was active on the node longer than the specified deadline'),
      pod: podOf({ activeDeadlineSeconds: 60 }),
    },
    'The pod was stopped: it ran longer than its activeDeadlineSeconds (60 s).',
  ],
  [
    'NodeShutdown',
    'failed',
    refused('Terminated', 'Pod was terminated in response to imminent node shutdown.'),
    'The pod was stopped because the node was shut down.',
  ],
  [
    'ExitedWithError',
    'failed',
    {
      pod: podOf({ restartPolicy: 'Never' }),
      status: withApp({ terminated: { exitCode: 3, startedAt: ago(9), finishedAt: ago(1) } }, {}, { phase: 'Failed' }),
    },
    'The pod failed: container "app" ends with exit code 3 and is not restarted.',
  ],
  ['SomethingNew', 'failed', refused('SomethingNew', 'nobody knows'), 'The pod failed (SomethingNew): nobody knows.'],
  [
    'Completed',
    'ended',
    { status: { phase: 'Succeeded' } },
    'The pod is done: all its containers ended without an error.',
  ],
]);
