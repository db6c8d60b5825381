// The floor: the pod of the benchmark by bare CRI calls, as fast as the runtime goes, with the requests that a kubelet
// sends for it (a seccomp profile for the sandbox, masked paths, the mounts): the runtime's work is the same. No status,
// no watching, no cleanup in the measured time.
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NamespaceMode, ProfileType } from '../src/cri/gen/cri.ts';
import type { CriRuntime } from '../src/cri/services.ts';
import { MASKED_PATHS, READONLY_PATHS } from '../src/runtime/security-context.ts';
import { BUSYBOX_IMAGE } from '../test/harness/containerd.ts';
import { COMMAND, LIFE_MS } from './pods.ts';
import { busyMs, inParallel } from './statistics.ts';

const { signal } = new AbortController();

export type FloorBurst = { readonly startMs: number; readonly stopMs: number; readonly startBusyMs: number };
export type FloorPod = { readonly sandboxId: string; readonly containerId: string };

export class Floor {
  readonly #runtime: CriRuntime;
  readonly #dir: string;
  readonly #cgroupParent: string;

  constructor(runtime: CriRuntime, dir: string, cgroupParent: string) {
    this.#runtime = runtime;
    this.#dir = join(dir, 'floor');
    this.#cgroupParent = cgroupParent;
  }

  /** RunPodSandbox, CreateContainer, StartContainer; what the mounts need is there before. */
  async start(): Promise<{ pod: FloorPod; ms: number }> {
    const uid = randomUUID();
    const dir = join(this.#dir, uid);
    mkdirSync(join(dir, 'token'), { recursive: true });
    for (const name of ['token/token', 'etc-hosts', 'termination-log']) writeFileSync(join(dir, name), 'x');
    const name = `floor-${uid.slice(0, 8)}`;
    const labels = {
      'io.kubernetes.pod.name': name,
      'io.kubernetes.pod.namespace': 'floor',
      'io.kubernetes.pod.uid': uid,
    };
    const namespaceOptions = { pid: NamespaceMode.CONTAINER };
    const confined = { namespaceOptions, seccomp: { profileType: ProfileType.RuntimeDefault } };
    const masked = {
      namespaceOptions,
      seccomp: { profileType: ProfileType.Unconfined },
      maskedPaths: [...MASKED_PATHS],
      readonlyPaths: [...READONLY_PATHS],
    };
    const sandboxConfig = {
      metadata: { name, namespace: 'floor', uid, attempt: 0 },
      hostname: name,
      logDirectory: join(dir, 'logs'),
      dnsConfig: { servers: ['10.96.0.10'], searches: ['cluster.local'], options: ['ndots:5'] },
      labels,
      linux: { cgroupParent: `${this.#cgroupParent}/floor/${uid}`, securityContext: confined },
    };
    const mounts = [
      { containerPath: '/var/run/secrets/kubernetes.io/serviceaccount', hostPath: join(dir, 'token'), readonly: true },
      { containerPath: '/etc/hosts', hostPath: join(dir, 'etc-hosts') },
      { containerPath: '/dev/termination-log', hostPath: join(dir, 'termination-log') },
    ];
    const config = {
      metadata: { name: 'main', attempt: 0 },
      image: { image: BUSYBOX_IMAGE },
      command: COMMAND,
      mounts,
      labels: { ...labels, 'io.kubernetes.container.name': 'main' },
      logPath: 'main.log',
      linux: { resources: { cpuShares: 2, oomScoreAdj: 1000 }, securityContext: masked },
    };
    const from = performance.now();
    const { podSandboxId } = await this.#runtime.runPodSandbox({ config: sandboxConfig }, signal);
    const { containerId } = await this.#runtime.createContainer({ podSandboxId, sandboxConfig, config }, signal);
    await this.#runtime.startContainer({ containerId }, signal);
    return { pod: { sandboxId: podSandboxId, containerId }, ms: performance.now() - from };
  }

  /** StopContainer, StopPodSandbox. */
  async stop({ containerId, sandboxId }: FloorPod): Promise<number> {
    const from = performance.now();
    await this.#runtime.stopContainer({ containerId, timeout: 30 }, signal);
    await this.#runtime.stopPodSandbox({ podSandboxId: sandboxId }, signal);
    return performance.now() - from;
  }

  async remove({ sandboxId }: FloorPod): Promise<void> {
    await this.#runtime.removePodSandbox({ podSandboxId: sandboxId }, signal);
  }

  /** Many pods, `limit` at a time; says how long all of it took, and how much processor time of the machine the starts. */
  async burst(count: number, limit: number): Promise<FloorBurst> {
    const pods: FloorPod[] = [];
    const busyBefore = busyMs();
    const from = performance.now();
    await inParallel(
      Array.from({ length: count }, (_, i) => i),
      limit,
      async () => void pods.push((await this.start()).pod),
    );
    const startMs = performance.now() - from;
    const startBusyMs = busyMs() - busyBefore;
    await sleep(LIFE_MS);
    const stopFrom = performance.now();
    await inParallel(pods, limit, async (pod) => void (await this.stop(pod)));
    const stopMs = performance.now() - stopFrom;
    await inParallel(pods, limit, (pod) => this.remove(pod));
    return { startMs, stopMs, startBusyMs };
  }
}
