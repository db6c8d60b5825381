// A real node and pods that mean harm. After each attack the node is up, the same process, and starts pods as before.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { Container, Pod } from '../../src/core/pod.ts';
import { PODS } from '../../src/kube/resources.ts';
import { send } from '../contracts/server/http-client.ts';
import {
  createNamespace,
  LOOP,
  NAMESPACE,
  startPod,
  startServerNode,
  type ServerNode,
} from '../contracts/server/server-node.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { until, untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
/** Answers every connection on port 8080 with the same bytes. */
const answering = (bytes: string): string =>
  `trap 'kill 0' TERM; printf '${bytes}' > /answer; while :; do nc -l -p 8080 < /answer > /dev/null; done & wait`;
const UPGRADE = 'HTTP/1.1 101 Switching Protocols\\r\\nConnection: Upgrade\\r\\nUpgrade: x\\r\\n\\r\\n';

describe('a node with hostile pods', () => {
  let server: ServerNode;
  let pid = 0;

  before(async () => {
    server = await startServerNode();
    await createNamespace(server.node);
    pid = server.node.kubelet.pid ?? 0;
  });
  after(() => server?.stop());

  const get = (name: string): Promise<Pod> => server.node.client.get(PODS, { namespace: NAMESPACE, name }, never);
  const create = (name: string, container: Partial<Container>, spec: object = {}): Promise<Pod> =>
    server.node.client.create<Pod>(
      PODS,
      { namespace: NAMESPACE },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: NAMESPACE },
        spec: {
          nodeName: 'n1',
          terminationGracePeriodSeconds: 2,
          automountServiceAccountToken: false,
          containers: [{ name: 'c', image: BUSYBOX_IMAGE, imagePullPolicy: 'IfNotPresent', ...container }],
          ...spec,
        },
      } as Pod,
      never,
    );

  /** Up, never restarted, and of use to others. */
  async function isWell(tag: string): Promise<void> {
    assert.equal(server.node.kubelet.pid, pid);
    assert.equal((await send(server.health, 'GET', '/healthz')).status, 200);
    await startPod(server.node, `well-${tag}`, LOOP);
  }

  it('probes and hooks with headers and paths that HTTP forbids', async () => {
    const odd = ['€', '\u0001', 'a\r\nX: y', '\u007f', 'ü'];
    const header = (value: string) => [{ name: 'X-Odd', value }];
    for (const [i, value] of odd.entries())
      await create(`odd-${i}`, {
        command: ['sh', '-c', 'sleep 1000'],
        readinessProbe: { httpGet: { port: 80, httpHeaders: header(value) }, periodSeconds: 1, timeoutSeconds: 1 },
        lifecycle: { preStop: { httpGet: { port: 80, path: '/\ud800', httpHeaders: header(value) } } },
      });
    for (const i of odd.keys())
      await untilSeen(
        `odd-${i} runs`,
        async () => (await get(`odd-${i}`)).status?.phase,
        (seen) => seen === 'Running',
      );
    await until('their probes failed more than once', async () => {
      const { body } = await send(server.main, 'GET', '/metrics/probes');
      return (body.match(/^prober_probe_total\{[^}]*pod="odd-\d"[^}]*result="failed"[^}]*\} [2-9]/gm) ?? []).length > 0;
    });
    await isWell('headers');
    for (const i of odd.keys())
      await server.node.client.delete(PODS, { namespace: NAMESPACE, name: `odd-${i}` }, {}, never);
    await until('they can be removed', async () => {
      const pods = (await server.node.client.list(PODS, { namespace: NAMESPACE }, never)).items;
      return !pods.some((pod) => pod.metadata.name.startsWith('odd-'));
    });
  });

  it('a container that answers its hooks and probes with 101 can be stopped', async () => {
    await create('switching', {
      command: ['sh', '-c', answering(UPGRADE)],
      lifecycle: { preStop: { httpGet: { port: 8080 } } },
      livenessProbe: { httpGet: { port: 8080 }, periodSeconds: 1, timeoutSeconds: 1, failureThreshold: 100 },
    });
    await untilSeen(
      'it runs',
      async () => (await get('switching')).status?.phase,
      (seen) => seen === 'Running',
    );
    await server.node.client.delete(PODS, { namespace: NAMESPACE, name: 'switching' }, {}, never);
    await untilSeen(
      'it is gone',
      () => get('switching').catch(() => undefined),
      (seen) => seen === undefined,
    );
    await isWell('switching');
  });

  it('pipes in a log directory that a pod can write to hold nobody up', async () => {
    const logs =
      /podLogsDir: *(\S+)/.exec(readFileSync(`${server.node.dir}/config.yaml`, 'utf8'))?.[1] ?? '/var/log/pods';
    const script = `
      cd /logs/${NAMESPACE}_pipes_*/c && for i in 1 2 3 4 5 6 7 8 9; do mkfifo $i.log; done
      mv 0.log kept; mkfifo 0.log; exit 1`;
    await create(
      'pipes',
      {
        command: ['sh', '-c', script],
        terminationMessagePolicy: 'FallbackToLogsOnError',
        volumeMounts: [{ name: 'logs', mountPath: '/logs' }],
      },
      { restartPolicy: 'Never', volumes: [{ name: 'logs', hostPath: { path: logs } }] },
    );
    await untilSeen(
      'it failed',
      async () => (await get('pipes')).status?.phase,
      (seen) => seen === 'Failed',
    );
    const asked = Array.from({ length: 8 }, () => send(server.main, 'GET', `/containerLogs/${NAMESPACE}/pipes/c`));
    for (const { body } of await Promise.all(asked)) assert.match(body, /^failed to open log file /);
    await isWell('pipes');
  });

  it('CVE-2019-11248: the health port has /healthz and nothing else', async () => {
    for (const path of [
      '/debug/pprof/',
      '/debug/pprof/cmdline',
      '/metrics',
      '/pods',
      '/configz',
      '/',
      '/healthz/../pods',
    ])
      assert.equal((await send(server.health, 'GET', path)).status, 404, path);
  });

  it('CVE-2025-0426: on the read-only port nothing changes anything', async () => {
    const paths = [
      '/checkpoint/golden/well-pipes/web',
      '/run/golden/well-pipes/web?cmd=id',
      '/manifests/golden/x',
      '/exec/golden/well-pipes/web?command=id',
    ];
    for (const path of paths)
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH'])
        assert.ok([404, 405].includes((await send(server.readOnly, method, path)).status), `${method} ${path}`);
    for (const path of ['/configz', '/logs/', '/debug/pprof/heap', '/flagz'])
      assert.ok([404, 405].includes((await send(server.readOnly, 'GET', path)).status), path);
  });

  it('CVE-2020-8558: the loopback network is not opened to neighbours', () => {
    assert.equal(readFileSync('/proc/sys/net/ipv4/conf/all/route_localnet', 'utf8').trim(), '0');
  });

  it('CVE-2022-3294: the node shows no address that is not its own', async () => {
    const { body } = await send(server.main, 'GET', '/stats/summary');
    assert.ok(body.includes('"nodeName": "n1"') || body.includes('"nodeName":"n1"'));
    const node = await server.node.client.get({ base: '/api/v1', plural: 'nodes' } as never, { name: 'n1' }, never);
    const addresses =
      (node as { status?: { addresses?: { type: string; address: string }[] } }).status?.addresses ?? [];
    const { networkInterfaces } = await import('node:os');
    const own = Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map((i) => i.address));
    for (const { type, address } of addresses) if (type === 'InternalIP') assert.ok(own.includes(address), address);
  });
});
