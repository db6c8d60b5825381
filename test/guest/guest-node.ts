// In the guest: an API server in this process, and the packaged kubelet as the unit systemd runs, joined to it.
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Pod, PodSpec } from '../../src/core/pod.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { NODES, PODS } from '../../src/kube/resources.ts';
import { startTestApiServer, type TestApiServer } from '../harness/api-server.ts';
import { connectClient } from '../harness/connect-client.ts';
import { until } from '../harness/until.ts';

const run = promisify(execFile);
const never = new AbortController().signal;

export const NODE_NAME = 'n1';
export const IMAGE = 'localhost/busybox:latest';
/** Under emulation a container takes seconds to start. */
export const PATIENT_MS = 240_000;
const CONFIG = '/etc/kubernetes/kubelet.yaml';
const KUBECONFIG = '/etc/kubernetes/kubelet.conf';
const DROP_IN = '/etc/systemd/system/kubelet.service.d/40-cluster.conf';

export const command = async (...argv: readonly [string, ...string[]]): Promise<string> =>
  (await run(argv[0], argv.slice(1))).stdout.trim();

/** A property of a unit, as systemd has it. */
export const property = (unit: string, name: string): Promise<string> =>
  command('systemctl', 'show', '-p', name, '--value', unit);

export class GuestNode {
  readonly api: TestApiServer;
  readonly client: KubeClient;

  private constructor(api: TestApiServer, client: KubeClient) {
    this.api = api;
    this.client = client;
  }

  static async open(dir: string): Promise<GuestNode> {
    const api = await startTestApiServer(dir);
    await writeFile(KUBECONFIG, api.nodeKubeconfig(NODE_NAME), { mode: 0o600 });
    return new GuestNode(api, await connectClient(api.adminKubeconfigPath));
  }

  /** The unit with these lines in its configuration and these flags, Ready at the API server. */
  async restart(lines: string, flags = ''): Promise<void> {
    const all = `--config=${CONFIG} --kubeconfig=${KUBECONFIG} --hostname-override=${NODE_NAME} -v=2 ${flags}`.trim();
    await writeFile(DROP_IN, `[Service]\nEnvironment="KUBELET_EXTRA_ARGS=${all}"\n`);
    await run('systemctl', ['daemon-reload']);
    await writeFile(CONFIG, `${COMMON}${lines}\n`);
    const begun = Date.now();
    await run('systemctl', ['restart', 'kubelet']);
    await until(
      'the node is ready',
      async () => {
        const { status } = await this.client.get(NODES, { name: NODE_NAME }, never);
        const ready = status?.conditions?.find((c) => c.type === 'Ready');
        // Written by the new process.
        return ready?.status === 'True' && Date.parse(ready.lastHeartbeatTime ?? '') > begun;
      },
      PATIENT_MS,
    );
  }

  async create(name: string, spec: PodSpec): Promise<Pod> {
    const usual = { nodeName: NODE_NAME, terminationGracePeriodSeconds: 1, automountServiceAccountToken: false };
    const metadata = { name, namespace: 'default' };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: { hostNetwork: true, ...usual, ...spec } } as Pod;
    return until(`${name} may be made`, () => this.client.create(PODS, { namespace: 'default' }, pod, never));
  }

  pod(name: string): Promise<Pod> {
    return this.client.get(PODS, { namespace: 'default', name }, never);
  }

  async comesTo(name: string, what: string, check: (pod: Pod) => boolean): Promise<Pod> {
    let last: Pod | undefined;
    return until(
      `${name} ${what}`,
      async () => {
        last = await this.pod(name);
        return check(last) && last;
      },
      PATIENT_MS,
    ).catch((err: unknown) => {
      throw new Error(`${String(err)}\n${JSON.stringify(last?.status)}`);
    });
  }

  ready(name: string): Promise<Pod> {
    return this.comesTo(name, 'is ready', ({ status }) =>
      (status?.conditions ?? []).some((c) => c.type === 'Ready' && c.status === 'True'),
    );
  }

  async remove(name: string): Promise<void> {
    await this.client.delete(PODS, { namespace: 'default', name }, {}, never);
    const gone = (): Promise<boolean> =>
      this.pod(name).then(
        () => false,
        () => true,
      );
    await until(`${name} is gone`, gone, PATIENT_MS);
  }
}

const COMMON = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: systemd
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}}
address: 127.0.0.1
readOnlyPort: 10255
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
makeIPTablesUtilChains: false
failSwapOn: false
evictionPressureTransitionPeriod: 5s
`;

/** The cgroup of a container, as systemd's hierarchy has it: the slice of its pod and its own scope. */
export async function cgroupOf(pod: Pod, container: string): Promise<{ slice: string; scope: string }> {
  const all = [...(pod.status?.containerStatuses ?? []), ...(pod.status?.initContainerStatuses ?? [])];
  const id = all.find((c) => c.name === container)?.containerID?.split('//')[1] ?? '';
  const info = JSON.parse(await command('ctr', '-n', 'k8s.io', 'tasks', 'ls').then(pidsOf)) as Record<string, number>;
  const line = await readFile(`/proc/${info[id] ?? 0}/cgroup`, 'utf8');
  const scope = join('/sys/fs/cgroup', line.trim().replace(/^0::/, ''));
  return { slice: join(scope, '..'), scope };
}

const pidsOf = (table: string): string =>
  JSON.stringify(
    Object.fromEntries(
      table
        .split('\n')
        .slice(1)
        .map((row) => row.trim().split(/\s+/))
        .map(([id, pid]) => [id, Number(pid)]),
    ),
  );

/** A file of a cgroup. */
export const value = async (dir: string, file: string): Promise<string> =>
  (await readFile(join(dir, file), 'utf8')).trim();
