// What makes a CRI request one that no runtime may refuse for its form. Every problem by field, none for a legal one.
import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import {
  MountPropagation,
  NamespaceMode,
  ProfileType,
  type ContainerConfig,
  type CreateContainerRequest,
  type LinuxContainerResources,
  type Mount,
  type NamespaceOption,
  type PodSandboxConfig,
  type SecurityProfile,
} from '../../src/cri/gen/cri.ts';

type Problems = (ok: boolean, what: string) => void;

function collect(check: (must: Problems) => void): string[] {
  const problems: string[] = [];
  check((ok, what) => void (ok || problems.push(what)));
  return problems;
}

const within = (value: number, min: number, max: number): boolean =>
  Number.isSafeInteger(value) && value >= min && value <= max;

function checkNamespaces(must: Problems, options: NamespaceOption | undefined): void {
  must(options !== undefined, 'namespace options are missing');
  const userns = options?.usernsOptions;
  must(userns !== undefined, 'user namespace mode is missing');
  must(options?.network !== NamespaceMode.CONTAINER, 'a container has no network of its own');
  must((options?.pid === NamespaceMode.TARGET) === (options?.targetId !== ''), 'a target is named when there is one');
  if (userns?.mode === NamespaceMode.POD) {
    must(userns.uids.length === 1 && userns.gids.length === 1, 'one range of users and groups');
    must(options?.network === NamespaceMode.POD, 'users of its own on the network of the node');
  } else must(userns?.uids.length === 0 && userns.gids.length === 0, 'users of the node are not mapped');
}

function checkProfile(must: Problems, profile: SecurityProfile | undefined, absolute: boolean): void {
  if (profile === undefined) return;
  const local = profile.profileType === ProfileType.Localhost;
  must(local === (profile.localhostRef !== ''), 'a profile of the node is named by type Localhost alone');
  must(!local || !absolute || isAbsolute(profile.localhostRef), 'a profile is named by its full path');
}

function checkResources(must: Problems, r: LinuxContainerResources | undefined): void {
  must(r !== undefined, 'resources are missing');
  if (r === undefined) return;
  must(within(r.cpuShares, 2, 262_144), `cpu shares ${r.cpuShares}`);
  must(r.cpuQuota === 0 || r.cpuQuota === -1 || within(r.cpuQuota, 1000, 2 ** 53 - 1), `cpu quota ${r.cpuQuota}`);
  must(within(r.cpuPeriod, 1000, 1_000_000), `cpu period ${r.cpuPeriod}`);
  must(within(r.memoryLimitInBytes, 0, 2 ** 53 - 1), `memory limit ${r.memoryLimitInBytes}`);
  must(within(r.oomScoreAdj, -998, 1000), `oom score ${r.oomScoreAdj}`);
  must(
    r.memorySwapLimitInBytes === 0 || r.memorySwapLimitInBytes >= r.memoryLimitInBytes,
    'memory and swap together are not less than memory',
  );
  for (const { pageSize, limit } of r.hugepageLimits)
    must(/^\d+(KB|MB|GB)$/.test(pageSize) && within(limit, 0, 2 ** 53 - 1), `huge pages ${pageSize} ${limit}`);
}

function checkMount(must: Problems, mount: Mount): void {
  const at = `mount ${mount.containerPath}`;
  must(isAbsolute(mount.containerPath), `${at}: path`);
  must((mount.image !== undefined) !== isAbsolute(mount.hostPath), `${at}: from the host or from an image`);
  must(mount.image === undefined || mount.image.image !== '', `${at}: image without a name`);
  must(mount.imageSubPath === '' || mount.image !== undefined, `${at}: sub path of an image without one`);
  must(!mount.imageSubPath.split('/').includes('..') && !isAbsolute(mount.imageSubPath), `${at}: sub path`);
  must(
    !mount.recursiveReadOnly || (mount.readonly && mount.propagation === MountPropagation.PROPAGATION_PRIVATE),
    `${at}: recursively read-only`,
  );
}

export function sandboxProblems(config: PodSandboxConfig | undefined): string[] {
  return collect((must) => {
    const meta = config?.metadata;
    must(meta !== undefined && meta.name !== '' && meta.namespace !== '' && meta.uid !== '', 'metadata is incomplete');
    must(isAbsolute(config?.logDirectory ?? ''), 'log directory');
    must((config?.hostname ?? '').length <= 64, 'host name is too long for the kernel');
    const context = config?.linux?.securityContext;
    checkNamespaces(must, context?.namespaceOptions);
    checkProfile(must, context?.seccomp, true);
    const ofNode = context?.namespaceOptions?.network === NamespaceMode.NODE;
    must(!ofNode || config?.hostname === '', 'the host name of the node is changed');
    must((config?.linux?.cgroupParent ?? '') !== '', 'cgroup parent');
    for (const { containerPort, hostPort, hostIp } of config?.portMappings ?? []) {
      must(within(containerPort, 1, 65_535) && within(hostPort, 0, 65_535), `port ${containerPort} ${hostPort}`);
      must(hostIp === '' || isIP(hostIp) !== 0, `host address ${hostIp}`);
    }
    const servers = config?.dnsConfig?.servers ?? [];
    must(servers.length <= 3 && servers.every((s) => isIP(s) !== 0), `DNS servers ${servers.join()}`);
    must((config?.dnsConfig?.searches.join(' ').length ?? 0) <= 2048, 'DNS searches');
    for (const name of Object.keys(config?.linux?.sysctls ?? {})) must(/^[a-z0-9._/-]+$/.test(name), `sysctl ${name}`);
  });
}

function checkIdentity(must: Problems, config: ContainerConfig | undefined): void {
  const context = config?.linux?.securityContext;
  must((config?.metadata?.name ?? '') !== '', 'metadata is incomplete');
  must((config?.image?.image ?? '') !== '', 'image is missing');
  must(config?.logPath !== '' && !isAbsolute(config?.logPath ?? '/'), 'log path is relative to the pod');
  must(
    (context?.runAsUser !== undefined) !== ((context?.runAsUsername ?? '') !== ''),
    'a user by number or by name, not both, not neither',
  );
  must(!(context?.privileged === true && context.noNewPrivs), 'privileged without new privileges');
  checkNamespaces(must, context?.namespaceOptions);
  checkProfile(must, context?.seccomp, true);
  checkProfile(must, context?.apparmor, false);
}

export function containerProblems(request: CreateContainerRequest): string[] {
  const { config } = request;
  return collect((must) => {
    must(request.podSandboxId !== '', 'no sandbox');
    checkIdentity(must, config);
    checkResources(must, config?.linux?.resources);
    for (const mount of config?.mounts ?? []) checkMount(must, mount);
    const paths = (config?.mounts ?? []).map((m) => m.containerPath);
    must(new Set(paths).size === paths.length, `two mounts at one place: ${paths.join()}`);
    for (const { key, value } of config?.envs ?? [])
      must(key !== '' && !key.includes('=') && !Buffer.from(value).includes(0), `variable ${key}`);
    const own = config?.linux?.securityContext?.namespaceOptions?.usernsOptions?.mode;
    const pods = request.sandboxConfig?.linux?.securityContext?.namespaceOptions?.usernsOptions?.mode;
    must(own === pods, 'users of container and sandbox differ');
    if (own === NamespaceMode.POD)
      for (const m of config?.mounts ?? []) must(m.uidMappings.length === 1, `mount ${m.containerPath} is not mapped`);
  });
}
