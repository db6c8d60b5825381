// The pod's sandbox: its config, its creation and what it came up with.
import { mkdir } from 'node:fs/promises';
import type { PodSandboxConfig, PodSandboxStatus } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import type { EventRecorder } from '../core/events.ts';
import { uidOf, type Pod } from '../core/pod.ts';
import { isIP } from 'node:net';
import { KubeletError } from '../lib/errors.ts';
import type { Partially } from '../lib/proto/codec.ts';
import { extraGroupsOf } from './container-config.ts';
import { dnsEvents, podDns } from './dns.ts';
import type { RuntimeFacts } from './facts.ts';
import { podLogDir } from './log-paths.ts';
import { withFreeSandboxName } from './name-conflict.ts';
import type { UserNamespaceMapping } from './namespaces.ts';
import type { ClusterView, Infra, ResourceManager, VolumeProvider } from './needs.ts';
import { readResolvConf } from './resolv-conf-check.ts';
import { sandboxConfig } from './sandbox-config.ts';
import type { UserNamespaces } from './user-namespaces.ts';

export type SandboxDeps = {
  readonly cri: CriRuntime;
  readonly volumes: VolumeProvider;
  readonly resources: ResourceManager;
  readonly cluster: ClusterView;
  readonly userns: UserNamespaces;
  readonly events: EventRecorder;
  readonly infra: Infra;
};
export type SandboxSetting = {
  readonly config: Partially<PodSandboxConfig>;
  readonly runtimeHandler: string;
  readonly userns: UserNamespaceMapping | undefined;
};

/** Pods that start together read the node's resolver file once. */
const RESOLV_CONF_MS = 1000;

export class Sandboxes {
  readonly #deps: SandboxDeps;
  readonly #facts: RuntimeFacts;
  #resolvConf: { readonly text: Promise<string>; readonly atMs: number } | undefined;

  constructor(deps: SandboxDeps, facts: RuntimeFacts) {
    this.#deps = deps;
    this.#facts = facts;
  }

  /** The config of the pod's sandbox: for its creation, and again for every container made in it. */
  async setting(pod: Pod, attempt: number, signal: AbortSignal): Promise<SandboxSetting> {
    const { cluster, resources, volumes, userns } = this.#deps;
    const [runtimeHandler, hostResolvConf] = await Promise.all([this.#handlerOf(pod, signal), this.#hostResolvConf()]);
    const { userNamespaces } = cluster.handlerFeatures(runtimeHandler);
    const mapping = await userns.mappingOf(pod, userNamespaces, runtimeHandler);
    const dns = podDns(pod, {
      clusterDns: this.#facts.clusterDns,
      clusterDomain: this.#facts.clusterDomain,
      hostResolvConf,
      nodeIps: cluster.nodeIps(),
    });
    this.#warn(pod, dns.warnings);
    const config = sandboxConfig(
      {
        pod,
        attempt,
        dns: dns.config,
        cgroupParent: resources.cgroupParentOf(pod),
        extraGroups: extraGroupsOf(volumes.mountsOf(uidOf(pod))),
        userns: mapping,
        exclusiveCpus: resources.hooks?.hasExclusiveCpus(pod) ?? false,
      },
      this.#facts,
    );
    return { config, runtimeHandler, userns: mapping };
  }

  async #hostResolvConf(): Promise<string | undefined> {
    const path = this.#facts.resolvConf;
    if (path === '') return undefined;
    const now = this.#deps.infra.clock.monotonic();
    if (this.#resolvConf === undefined || now - this.#resolvConf.atMs > RESOLV_CONF_MS) {
      const text = readResolvConf(path);
      this.#resolvConf = { text, atMs: now };
      text.catch(() => {
        // The next pod asks again.
        if (this.#resolvConf?.text === text) this.#resolvConf = undefined;
      });
    }
    return this.#resolvConf.text;
  }

  /** Creates the sandbox and returns its id. */
  async create(pod: Pod, setting: SandboxSetting, signal: AbortSignal): Promise<string> {
    const { cri, infra } = this.#deps;
    const { config, runtimeHandler } = setting;
    await mkdir(podLogDir(this.#facts.podLogsDir, pod), { recursive: true, mode: 0o755 });
    const from = infra.clock.monotonic();
    const owner = { uid: pod.metadata.uid ?? '', attempt: config.metadata?.attempt ?? 0 };
    try {
      const done = await withFreeSandboxName(
        cri,
        owner,
        () => cri.runPodSandbox({ config, runtimeHandler }, signal),
        signal,
      );
      infra.metrics.sandboxRan(runtimeHandler, (infra.clock.monotonic() - from) / 1000);
      return done.podSandboxId;
    } catch (err) {
      infra.metrics.sandboxFailed(runtimeHandler);
      throw err;
    }
  }

  /** How a sandbox came up, and its addresses; none for pods on the host's network. */
  async read(sandboxId: string, signal: AbortSignal): Promise<{ status: PodSandboxStatus; ips: readonly string[] }> {
    const { status } = await this.#deps.cri.podSandboxStatus({ podSandboxId: sandboxId }, signal);
    if (status === undefined) throw new KubeletError('internal', 'pod sandbox status is nil');
    return { status: { ...status, id: sandboxId }, ips: addressesOf(status) };
  }

  #handlerOf(pod: Pod, signal: AbortSignal): Promise<string> {
    const name = pod.spec.runtimeClassName;
    return name ? this.#deps.cluster.runtimeHandler(name, signal) : Promise.resolve('');
  }

  #warn(pod: Pod, warnings: ReturnType<typeof podDns>['warnings']): void {
    for (const warning of warnings)
      for (const { about, message } of dnsEvents(pod, warning))
        if (about === 'node') this.#deps.events.node('Warning', warning.reason, message);
        else this.#deps.events.pod(pod, 'Warning', warning.reason, message);
  }
}

/** One bad address and the runtime's whole answer is not to be trusted. */
function addressesOf(status: PodSandboxStatus): readonly string[] {
  const all = [status.network?.ip ?? '', ...(status.network?.additionalIps ?? []).map((a) => a.ip)];
  if (all[0] === '') return [];
  return all.every((ip) => isIP(ip) !== 0) ? all : [];
}
