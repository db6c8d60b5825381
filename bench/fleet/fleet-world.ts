// One API server and many kubelets, each a process of its own with a runtime in memory and a counted way to the server. All
// below one folder in /tmp and one cgroup; `stop()` takes everything away.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CgroupDriver } from '../../src/cri/gen/cri.ts';
import { openCgroups } from '../../src/host/cgroups/open.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { NODES } from '../../src/kube/resources.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { FakeCri } from '../../test/fakes/fake-cri.ts';
import { startTestApiServer, type TestApiServer } from '../../test/harness/api-server.ts';
import { BUSYBOX_IMAGE } from '../../test/harness/containerd.ts';
import { makeNodeFolder, removeNodeFolder } from '../../test/harness/node-folder.ts';
import { configText, connect, Kubelet, type WorldOptions } from '../world.ts';
import { Wire } from './wire.ts';

const { signal } = new AbortController();

export type FleetNode = {
  readonly name: string;
  readonly kubelet: Kubelet;
  readonly wire: Wire;
  readonly cri: FakeCri;
};
export type FleetOptions = WorldOptions & {
  /** Keep what the kubelets ask their runtimes. */
  readonly recordCalls?: boolean;
  /** What is different for the kubelets, in their order. */
  readonly each?: readonly Partial<WorldOptions>[];
  /** Of cgroups; cgroupfs unless told. */
  readonly driver?: 'cgroupfs' | 'systemd';
};

export interface FleetWorld {
  readonly api: TestApiServer;
  readonly client: KubeClient;
  readonly nodes: readonly FleetNode[];
  stop(): Promise<void>;
}

export async function startFleet(count: number, options: FleetOptions): Promise<FleetWorld> {
  const undo: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const step of undo.splice(0).reverse()) await step();
  };
  try {
    return await build(count, options, undo, stop);
  } catch (err) {
    await stop().catch(() => undefined); // the first failure says more
    throw err;
  }
}

async function build(
  count: number,
  options: FleetOptions,
  undo: (() => Promise<unknown>)[],
  stop: () => Promise<void>,
): Promise<FleetWorld> {
  const dir = await makeNodeFolder();
  undo.push(() => removeNodeFolder(dir));
  const cgroups = await openCgroups(systemClock, 'cgroupfs');
  const isSystemd = options.driver === 'systemd';
  const cgroupRoot = isSystemd ? `/ktsfleet${process.pid}` : `/kts-fleet-${process.pid}`;
  const cgroup = isSystemd ? `${cgroupRoot}.slice` : cgroupRoot;
  await cgroups.create(cgroup, {}, signal);
  undo.push(() => cgroups.destroy(cgroup, signal));
  const api = await startTestApiServer(join(dir, 'api'));
  undo.push(() => api.stop());
  const client = await connect(api.adminKubeconfigPath);
  const nodes: FleetNode[] = [];
  for (let i = 0; i < count; i++) {
    const own = { ...options, ...options.each?.[i] };
    nodes.push(await startOne(`fleet-${i}`, { dir, cgroupRoot, api, options: own, undo }));
  }
  for (const { name } of nodes) await ready(client, name, join(dir, name));
  return { api, client, nodes, stop };
}

type Place = {
  readonly dir: string;
  readonly cgroupRoot: string;
  readonly api: TestApiServer;
  readonly options: FleetOptions;
  readonly undo: (() => Promise<unknown>)[];
};

async function startOne(name: string, { dir, cgroupRoot, api, options, undo }: Place): Promise<FleetNode> {
  const home = join(dir, name);
  const manifests = join(home, 'manifests');
  mkdirSync(manifests, { recursive: true });
  const driver = options.driver ?? 'cgroupfs';
  const cgroupDriver = driver === 'systemd' ? CgroupDriver.SYSTEMD : CgroupDriver.CGROUPFS;
  const cri = new FakeCri({ recordCalls: options.recordCalls === true, cgroupDriver });
  cri.state.addImage(BUSYBOX_IMAGE);
  await cri.start();
  undo.push(() => cri.stop());
  const wire = new Wire(api.port);
  await wire.start();
  undo.push(() => wire.cut());
  const kubeconfig = join(home, 'kubeconfig');
  writeFileSync(kubeconfig, api.nodeKubeconfig(name).replaceAll(`:${api.port}`, `:${wire.port}`), { mode: 0o600 });
  // A name of the systemd driver has no dash in it, and all is below the one slice that is there.
  const root = driver === 'systemd' ? cgroupRoot : `${cgroupRoot}/${name}`;
  const config = configText({ dir: home, endpoint: cri.endpoint, manifests, cgroupRoot: root });
  writeFileSync(join(home, 'config.yaml'), `${config}cgroupDriver: ${driver}\n`);
  if (driver === 'cgroupfs') {
    const cgroups = await openCgroups(systemClock, driver);
    await cgroups.create(root, {}, signal);
    undo.push(() => cgroups.destroy(root, signal));
  }
  const kubelet = new Kubelet(home, { ...options, nodeName: name, kubeconfig });
  undo.push(() => kubelet.stop());
  await kubelet.start();
  return { name, kubelet, wire, cri };
}

async function ready(client: KubeClient, name: string, home: string): Promise<void> {
  for (let tries = 0; tries < 1200; tries++) {
    const node = await client.get(NODES, { name }, signal).catch(() => undefined);
    if (node?.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True')) return;
    await sleep(100);
  }
  const log = readFileSync(join(home, 'kubelet.log'), 'utf8');
  throw new Error(`${name} did not become ready: ${log.slice(-2000)}`);
}
