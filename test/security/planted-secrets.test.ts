// A real node full of marked secrets, and every place where one could show up: logs at the highest level, events, the pages
// of the server, files that others may read.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import type { KubeObject } from '../../src/core/meta.ts';
import type { Pod } from '../../src/core/pod.ts';
import { PODS, type Resource } from '../../src/kube/resources.ts';
import { send } from '../contracts/server/http-client.ts';
import { createNamespace, NAMESPACE, startServerNode, type ServerNode } from '../contracts/server/server-node.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { freePort } from '../harness/ports.ts';
import { until, untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
const MARK = 'planted-4711';
const KUBELET = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
const SECRETS = { base: '/api/v1', plural: 'secrets' } as Resource<KubeObject>;
const EVENTS = { base: '/api/v1', plural: 'events' } as Resource<KubeObject>;

describe('planted secrets', () => {
  let server: ServerNode;

  before(async () => {
    const url = `http://user:${MARK}@127.0.0.1:${await freePort()}/?token=${MARK}`;
    const header = `staticPodURLHeader:\n  X-Token: [${MARK}]\n`;
    server = await startServerNode({
      config: `staticPodURL: ${url}\nhttpCheckFrequency: 1s\n${header}`,
      flags: ['-v=10'],
    });
    await createNamespace(server.node);
    const text = (value: string): string => Buffer.from(value).toString('base64');
    const secret = (name: string, type: string, data: object): Promise<KubeObject> =>
      server.node.client.create(
        SECRETS,
        { namespace: NAMESPACE },
        {
          apiVersion: 'v1',
          kind: 'Secret',
          metadata: { name, namespace: NAMESPACE },
          type,
          data,
        } as unknown as KubeObject,
        never,
      );
    await secret('s', 'Opaque', { password: text(MARK) });
    // Half a file of registry credentials: what is wrong with it must be said without quoting it.
    await secret('pull', 'kubernetes.io/dockercfg', { '.dockercfg': text(`{"r.io":{"auth":"${text(MARK)}"`) });
    await server.node.client.create<Pod>(
      PODS,
      { namespace: NAMESPACE },
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'p', namespace: NAMESPACE },
        spec: {
          nodeName: 'n1',
          terminationGracePeriodSeconds: 0,
          imagePullSecrets: [{ name: 'pull' }],
          volumes: [{ name: 'v', secret: { secretName: 's' } }],
          containers: [
            {
              name: 'c',
              image: BUSYBOX_IMAGE,
              imagePullPolicy: 'IfNotPresent',
              command: ['sh', '-c', 'sleep 1000'],
              env: [{ name: 'P', valueFrom: { secretKeyRef: { name: 's', key: 'password' } } }],
              volumeMounts: [{ name: 'v', mountPath: '/v' }],
              lifecycle: { postStart: { exec: { command: ['sh', '-c', 'echo $P; false'] } } },
            },
            { name: 'd', image: `r.io/none:${MARK.length}`, imagePullPolicy: 'Always' },
          ],
        },
      } as unknown as Pod,
      never,
    );
    await until('its container was started', async () => {
      const pod = await server.node.client.get(PODS, { namespace: NAMESPACE, name: 'p' }, never);
      const status = pod.status?.containerStatuses?.find((s) => s.name === 'c');
      return (
        status?.state.running !== undefined ||
        (status?.restartCount ?? 0) > 0 ||
        status?.lastState?.terminated !== undefined
      );
    });
    await untilSeen(
      'the URL was asked',
      async () => (await send(server.main, 'GET', '/problems')).body,
      (seen) => seen.includes('127.0.0.1'),
    );
  });
  after(() => server?.stop());

  const clean = (where: string, text: string): void => {
    for (const form of [MARK, Buffer.from(MARK).toString('base64')]) {
      const at = text.indexOf(form);
      assert.equal(at, -1, `${where}: ${text.slice(Math.max(0, at - 200), at + 60)}`);
    }
  };

  it('are not in the log, at the highest level', async () => {
    const log = await server.node.log();
    assert.ok(log.length > 1000);
    clean('log', log);
  });

  it('are not in events', async () => {
    const { items } = await server.node.client.list(EVENTS, {}, never);
    assert.ok(items.length > 0);
    clean('events', JSON.stringify(items));
  });

  // Not /pods: what a pod's own hook printed is part of its status, as upstream.
  for (const path of [
    '/problems',
    '/configz',
    '/flagz',
    '/statusz',
    '/metrics',
    '/metrics/cadvisor',
    '/stats/summary',
    '/runningpods/',
    '/debug/waterfalls',
    '/debug/why?output=json',
    '/debug/pprof/cmdline',
    '/debug/pprof/heap?seconds=1',
  ])
    it(`are not on ${path}`, async () => {
      const { status, body } = await send(server.main, 'GET', path);
      assert.equal(status, 200);
      clean(path, body);
    });

  it('are not in a support bundle', async () => {
    const file = join(server.node.dir, 'bundle.tar.gz');
    const args = ['node', 'support-bundle', file, '--root-dir', join(server.node.dir, 'kubelet'), '-o', 'json'];
    const { stdout } = await promisify(execFile)(KUBELET, args);
    const { contents } = JSON.parse(stdout) as { contents: string[] };
    for (const name of ['pods.json', 'why.json', 'events.json', 'configuration.json', 'doctor.json', 'version.txt'])
      assert.ok(contents.includes(name), name);
    clean('bundle', gunzipSync(readFileSync(file)).toString());
  });

  it('no file of the kubelet with a secret in it, and none it may be led by, is open to others', () => {
    const root = join(server.node.dir, 'kubelet');
    const open: string[] = [];
    const walk = (path: string): void => {
      const stat = lstatSync(path);
      if (stat.isSymbolicLink()) return;
      // Only root passes below this: what is there is the pod's own business.
      if (stat.isDirectory() && (stat.mode & 0o077) === 0) return;
      if ((stat.mode & 0o002) !== 0 && (stat.mode & 0o1000) === 0 && !stat.isSocket()) open.push(path);
      if (
        stat.isFile() &&
        /\.(pem|key|crt|kubeconfig)$/.test(path) &&
        (stat.mode & 0o044) !== 0 &&
        /key|pem/.test(path)
      )
        open.push(path);
      if (stat.isDirectory()) for (const name of readdirSync(path)) walk(join(path, name));
    };
    walk(root);
    // Written by containers of any user; their directory is closed to everybody but root.
    assert.deepEqual(
      open.filter((path) => !/\/pods\/[^/]+\/(containers|volumes)\//.test(path)),
      [],
    );
  });
});
