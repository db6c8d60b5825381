// The CreateContainer request, from a container's spec and everything that was made ready for it.
import { Signal, type ContainerConfig, type Device, type Mount } from '../cri/gen/cri.ts';
import { containerBudget } from '../core/bounds.ts';
import { absolutePath } from '../core/paths.ts';
import type { Container, Pod } from '../core/pod.ts';
import type { Budget } from '../lib/budget.ts';
import { expand, type Lookup } from '../lib/expansion.ts';
import type { Partially } from '../lib/proto/codec.ts';
import { envBytes } from './env-bytes.ts';
import { containerAnnotations, containerLabels } from './labels.ts';
import { containerResources, type ContainerResourceOptions, type ResourceFacts } from './linux-resources.ts';
import { containerLogPath } from './log-paths.ts';
import { blockDevices, idMappings, type MountedVolumes } from './mounts.ts';
import type { UserNamespaceMapping } from './namespaces.ts';
import {
  containerSecurityContext,
  verifyRunAsNonRoot,
  type ImageUser,
  type SecurityFacts,
} from './security-context.ts';

/** What CPU and memory managers, device plugins and claims add to a container. */
export type ContainerAdditions = ContainerResourceOptions & {
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly mounts?: readonly Partially<Mount>[];
  readonly devices?: readonly Partially<Device>[];
  readonly cdiDevices?: readonly string[];
};

export type ContainerInput = {
  readonly pod: Pod;
  readonly container: Container;
  readonly restartCount: number;
  /** What the runtime calls the image. */
  readonly imageRef: string;
  readonly imageUser: ImageUser;
  readonly env: ReadonlyMap<string, string>;
  readonly volumes: MountedVolumes;
  readonly volumeMounts: readonly Partially<Mount>[];
  /** Host path of the hosts file; undefined when the pod has no address yet. */
  readonly hostsFile: string | undefined;
  readonly terminationLog: string | undefined;
  readonly additions: ContainerAdditions;
  readonly userns: UserNamespaceMapping | undefined;
  /** Runtime id of the container a debug container looks into. */
  readonly targetId?: string;
};
export type ContainerFacts = ResourceFacts &
  SecurityFacts & {
    readonly stopSignals: boolean;
    /** Whether the host enforces SELinux labels, which files of the pod's own then need. */
    readonly selinux: boolean;
  };

const HOSTS_PATH = '/etc/hosts';

/** `budget` is what the environment has left of the container's. */
export function containerConfig(
  input: ContainerInput,
  facts: ContainerFacts,
  budget: Budget = containerBudget(),
): Partially<ContainerConfig> {
  const { pod, container, restartCount, additions } = input;
  verifyRunAsNonRoot(pod, container, input.imageUser);
  const env = new Map([...(additions.env ?? []).map(({ name, value }) => [name, value] as const), ...input.env]);
  const expanded = (words: readonly string[] | undefined, field: string): string[] =>
    (words ?? []).map((word) => expand(word, lookup, { budget, field }));
  const lookup: Lookup = (name) => env.get(name);
  const devices = [...(additions.devices ?? []), ...blockDevices(container, input.volumes)];
  return {
    metadata: { name: container.name, attempt: restartCount },
    image: { image: input.imageRef, userSpecifiedImage: container.image ?? '' },
    command: expanded(container.command, 'command'),
    args: expanded(container.args, 'args'),
    workingDir: container.workingDir ?? '',
    envs: [...env].map(([key, value]) => ({ key, value: envBytes(value) })),
    mounts: mounts(input, facts),
    ...(devices.length === 0 ? {} : { devices }),
    CDIDevices: (additions.cdiDevices ?? []).map((name) => ({ name })),
    labels: containerLabels(pod, container),
    annotations: { ...additions.annotations, ...containerAnnotations(pod, container, restartCount) },
    logPath: containerLogPath(container.name, restartCount),
    stdin: container.stdin === true,
    stdinOnce: container.stdinOnce === true,
    tty: container.tty === true,
    linux: {
      resources: containerResources(pod, container, facts, additions),
      securityContext: containerSecurityContext(
        pod,
        container,
        {
          image: input.imageUser,
          extraGroups: extraGroupsOf(input.volumes),
          userns: input.userns,
          ...(input.targetId === undefined ? {} : { targetId: input.targetId }),
        },
        facts,
      ),
    },
    ...(facts.stopSignals ? { stopSignal: signalOf(container.lifecycle?.stopSignal) } : {}),
  };
}

/** Of two at the same path the later one is seen: the pod's own volumes, not what came with its devices. */
function mounts(input: ContainerInput, { selinux: selinuxRelabel }: ContainerFacts): Partially<Mount>[] {
  const { container, userns, volumeMounts, additions } = input;
  const ofDevices = (additions.mounts ?? []).map((mount) => ({ ...mount, ...idMappings(userns) }));
  const own = [...ofDevices, ...volumeMounts];
  const mountsHosts = volumeMounts.some((mount) => mount.containerPath === HOSTS_PATH);
  if (input.hostsFile !== undefined && !mountsHosts)
    own.push({ containerPath: HOSTS_PATH, hostPath: input.hostsFile, selinuxRelabel, ...idMappings(userns) });
  const path = container.terminationMessagePath;
  if (input.terminationLog !== undefined && path)
    own.push({
      containerPath: absolutePath(path),
      hostPath: input.terminationLog,
      selinuxRelabel,
      ...idMappings(userns),
    });
  return own;
}

/** Groups of all volumes of the pod, each once. */
export function extraGroupsOf(volumes: MountedVolumes): number[] {
  return [...new Set([...volumes.values()].map((v) => v.gid).filter((gid) => gid !== undefined))];
}

/** `SIGRTMIN+1` in the API is `SIGRTMINPLUS1` on the wire. */
const signalOf = (name: string | undefined): Signal =>
  (Signal as Record<string, Signal>)[(name ?? '').replace('+', 'PLUS').replace('-', 'MINUS')] ?? Signal.RUNTIME_DEFAULT;
