// What is soaked: the kubelet as a process with the probe inside, the embedded API server, and as runtime the fake (in
// this process) or a private containerd. All below one folder in /tmp and one cgroup; `stop()` takes everything away.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { PodSandboxState } from '../../src/cri/gen/cri.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FakeCri } from '../../test/fakes/fake-cri.ts';
import { BUSYBOX_IMAGE, startContainerd } from '../../test/harness/containerd.ts';
import { makeNodeFolder, removeNodeFolder } from '../../test/harness/node-folder.ts';
import { PodWatch } from '../pods.ts';
import { configText, connect, ended, Kubelet, nodeReady, startApi } from '../world.ts';

const { signal } = new AbortController();

export type Runtime = 'fake' | 'containerd';

export type SoakWorldOptions = {
  readonly runtime: Runtime;
  readonly command: string;
  readonly env: NodeJS.ProcessEnv;
  readonly nodeOptions?: readonly string[];
};

export interface SoakWorld {
  readonly dir: string;
  readonly client: KubeClient;
  readonly pods: PodWatch;
  readonly kubelet: Kubelet;
  readonly apiPid: number;
  /** Sandboxes and containers the runtime has. */
  leftInRuntime(): Promise<number>;
  /** Takes stopped sandboxes away, as an administrator may; the kubelet's own collection comes round once a minute. */
  tidyRuntime(): Promise<void>;
  stop(): Promise<void>;
}

export async function startSoakWorld(options: SoakWorldOptions): Promise<SoakWorld> {
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await build(options, undo, stop);
  } catch (err) {
    await stop().catch(() => undefined); // the first failure says more
    throw err;
  }
}

async function build(
  { runtime, command, env, nodeOptions = [] }: SoakWorldOptions,
  undo: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<SoakWorld> {
  const dir = await makeNodeFolder();
  undo.push(() => removeNodeFolder(dir));
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const cgroupRoot = `/kts-soak-${process.pid}`;
  await cgroups.create(cgroupRoot, {}, signal);
  undo.push(() => cgroups.destroy(cgroupRoot, signal));
  const cri = runtime === 'fake' ? await startFake() : await startContainerd({ version: '2.1' });
  undo.push(() => cri.stop());
  const api = await startApi(join(dir, 'api'));
  undo.push(() => ended(api, 'SIGTERM'));
  const client = await connect(join(dir, 'api', 'admin.kubeconfig'));
  const manifests = join(dir, 'manifests');
  mkdirSync(manifests);
  const config = configText({ dir, endpoint: cri.endpoint, manifests, cgroupRoot });
  writeFileSync(join(dir, 'config.yaml'), `${config}kubeAPIQPS: 1000\nkubeAPIBurst: 1000\n`);
  const probe = `--import=${join(import.meta.dirname, 'vitals-probe.ts')}`;
  const kubelet = new Kubelet(dir, { command, env, nodeOptions: [probe, ...nodeOptions], channel: true });
  undo.push(() => kubelet.stop());
  await kubelet.start();
  await nodeReady(client, dir);
  const pods = new PodWatch(client);
  await pods.start();
  undo.push(() => pods.stop());
  const leftInRuntime = async (): Promise<number> => {
    const { items } = await cri.runtime.listPodSandbox({}, signal);
    const { containers } = await cri.runtime.listContainers({}, signal);
    return items.length + containers.length;
  };
  const tidyRuntime = async (): Promise<void> => {
    const { items } = await cri.runtime.listPodSandbox({}, signal);
    const stopped = items.filter((s) => s.state === PodSandboxState.SANDBOX_NOTREADY);
    await Promise.all(stopped.map(({ id }) => cri.runtime.removePodSandbox({ podSandboxId: id }, signal)));
  };
  return { dir, client, pods, kubelet, apiPid: api.pid ?? 0, leftInRuntime, tidyRuntime, stop };
}

async function startFake(): Promise<FakeCri> {
  const fake = new FakeCri({ recordCalls: false });
  fake.state.addImage(BUSYBOX_IMAGE);
  await fake.start();
  return fake;
}
