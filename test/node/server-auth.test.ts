// Who may do what on the main port: every endpoint with every kind of credential, the fine-grained permissions, and that
// no credential ever shows up in the log.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { KubeObject } from '../../src/core/meta.ts';
import { SERVICE_ACCOUNTS, type Resource } from '../../src/kube/resources.ts';
import { openWebSocket, send, TestWebSocket, type Credential, type Target } from '../contracts/server/http-client.ts';
import {
  createNamespace,
  NAMESPACE,
  startPod,
  startServerNode,
  type ServerNode,
} from '../contracts/server/server-node.ts';
import { until, untilSeen } from '../harness/until.ts';

const never = new AbortController().signal;
const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const BAD_TOKEN = 'planted-bad-token-4711';

/** Method, path, and the subresources that are asked about. */
const ENDPOINTS: readonly (readonly [string, string, string])[] = [
  ['GET', '/healthz', 'healthz proxy'],
  ['GET', '/healthz/ping', 'healthz proxy'],
  ['GET', '/healthz/log', 'healthz proxy'],
  ['GET', '/healthz/syncloop', 'healthz proxy'],
  ['GET', '/healthz/device-plugin', 'healthz proxy'],
  ['GET', '/pods', 'pods proxy'],
  ['GET', '/pods/', 'pods proxy'],
  ['GET', '/runningpods/', 'pods proxy'],
  ['GET', '/problems', 'pods proxy'],
  ['GET', '/configz', 'configz proxy'],
  ['GET', '/flagz', 'configz'],
  ['GET', '/statusz', 'statusz'],
  ['GET', '/stats/summary', 'stats'],
  ['POST', '/stats/summary', 'stats'],
  ['GET', '/metrics', 'metrics'],
  ['GET', '/metrics/cadvisor', 'metrics'],
  ['GET', '/metrics/resource', 'metrics'],
  ['GET', '/metrics/probes', 'metrics'],
  ['GET', '/metrics/slis', 'metrics'],
  ['GET', '/logs/', 'log'],
  ['POST', '/checkpoint/golden/none/c', 'checkpoint'],
  ['GET', '/containerLogs/golden/simple/web', 'proxy'],
  ['POST', '/run/golden/simple/web?cmd=true', 'proxy'],
  ['GET', '/exec/golden/simple/web?command=true&output=1', 'proxy'],
  ['POST', '/exec/golden/simple/web?command=true&output=1', 'proxy'],
  ['GET', '/attach/golden/simple/web?output=1', 'proxy'],
  ['POST', '/attach/golden/simple/web?output=1', 'proxy'],
  ['POST', '/portForward/golden/simple', 'proxy'],
  ['GET', '/debug/pprof/cmdline', 'proxy'],
  ['PUT', '/debug/flags/v', 'proxy'],
  ['GET', '/manifests/', 'proxy'],
  ['PUT', '/manifests/golden/none', 'proxy'],
  ['DELETE', '/manifests/golden/none', 'proxy'],
];
const VERBS: Readonly<Record<string, string>> = { GET: 'get', POST: 'create', PUT: 'update', DELETE: 'delete' };

describe('authentication and authorization', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  let anybody: Target;
  let allowed: Credential;
  let denied: Credential;

  async function account(name: string, resources: readonly string[], verbs: readonly string[]): Promise<Credential> {
    const { client } = server.node;
    const make = (base: string, plural: string, namespace: string | undefined, object: object): Promise<KubeObject> =>
      client.create<KubeObject>(
        { base, plural } as Resource<KubeObject>,
        namespace === undefined ? {} : { namespace },
        object as KubeObject,
        never,
      );
    const metadata = { name };
    const kind = 'ServiceAccount';
    await make('/api/v1', 'serviceaccounts', NAMESPACE, {
      apiVersion: 'v1',
      kind,
      metadata: { name, namespace: NAMESPACE },
    });
    if (resources.length > 0) {
      const rules = [{ apiGroups: [''], resources, verbs }];
      await make(RBAC, 'clusterroles', undefined, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRole',
        metadata,
        rules,
      });
      await make(RBAC, 'clusterrolebindings', undefined, {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata,
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name },
        subjects: [{ kind, name, namespace: NAMESPACE }],
      });
    }
    const where = { namespace: NAMESPACE, name, subresource: 'token' };
    const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } };
    const { status } = await client.create(SERVICE_ACCOUNTS, where, asked as never, never);
    return { token: status?.token ?? '' };
  }

  const as = (credential: Credential): Target => ({ ...anybody, as: credential });

  before(async () => {
    server = await startServerNode({ flags: ['-v=10', '--enable-manifest-api'] });
    const { as: _, ...rest } = server.main;
    anybody = rest;
    await createNamespace(server.node);
    await startPod(server.node, 'simple');
    denied = await account('denied', [], []);
    const all = ['proxy', 'pods', 'healthz', 'configz', 'stats', 'metrics', 'log', 'checkpoint', 'statusz'];
    allowed = await account(
      'allowed',
      all.map((s) => `nodes/${s}`),
      ['get', 'create', 'update', 'delete'],
    );
  });
  after(() => server.stop());

  for (const [method, path, subresources] of ENDPOINTS)
    it(`${method} ${path}`, async () => {
      const unauthorized = { status: 401, body: 'Unauthorized' };
      const pick = async (target: Target): Promise<{ status: number; body: string }> => {
        const { status, body } = await send(target, method, path, method === 'PUT' ? { body: '4' } : {});
        return { status, body };
      };
      assert.deepEqual(await pick(anybody), unauthorized);
      assert.deepEqual(await pick(as({ token: BAD_TOKEN })), unauthorized);
      const user = `system:serviceaccount:${NAMESPACE}:denied`;
      const names = `subresource(s)=[${subresources}]`;
      assert.deepEqual(await pick(as(denied)), {
        status: 403,
        body: `Forbidden (user=${user}, verb=${VERBS[method]}, resource=nodes, ${names})\n`,
      });
      for (const target of [as(allowed), server.main]) {
        const { status, body } = await pick(target);
        assert.ok(status !== 401 && status !== 403, `${status} ${body}`);
      }
    });

  it('unknown paths are unknown to everybody', async () => {
    for (const target of [anybody, as({ token: BAD_TOKEN }), as(denied), server.main])
      for (const path of ['/', '/nosuch', '/metrics/nosuch', '/healthz/nosuch', '/spec/', '/livez'])
        assert.equal((await send(target, 'GET', path)).status, 404, path);
  });

  it('fine-grained permissions open their own paths only, and the read verbs read only', async () => {
    const pods = as(await account('pods-reader', ['nodes/pods'], ['get']));
    assert.equal((await send(pods, 'GET', '/pods')).status, 200);
    assert.equal((await send(pods, 'GET', '/runningpods/')).status, 200);
    for (const path of ['/healthz', '/configz', '/metrics', '/containerLogs/golden/simple/web', '/logs/'])
      assert.equal((await send(pods, 'GET', path)).status, 403, path);
    const metrics = as(await account('metrics-reader', ['nodes/metrics', 'nodes/stats'], ['get']));
    for (const path of ['/metrics', '/metrics/probes', '/stats/summary'])
      assert.notEqual((await send(metrics, 'GET', path)).status, 403, path);
    assert.equal((await send(metrics, 'POST', '/stats/summary')).status, 403);
    const reader = as(await account('proxy-reader', ['nodes/proxy'], ['get']));
    assert.equal((await send(reader, 'GET', '/pods')).status, 200);
    assert.equal((await send(reader, 'POST', '/run/golden/simple/web?cmd=true')).status, 403);
    assert.equal((await send(reader, 'GET', '/metrics')).status, 403, 'proxy does not stand in for metrics');
  });

  it('a token may come as a WebSocket protocol', async () => {
    const token = `base64url.bearer.authorization.k8s.io.${Buffer.from(allowed.token ?? '').toString('base64url')}`;
    const path = '/exec/golden/simple/web?command=echo&command=hi&output=1';
    const opened = await openWebSocket(anybody, path, [token, 'v5.channel.k8s.io']);
    assert.ok(opened instanceof TestWebSocket);
    assert.equal(opened.protocol, 'v5.channel.k8s.io');
    await opened.closed;
    assert.equal(opened.text(1), 'hi\n');
    const refused = await openWebSocket(anybody, path, ['v5.channel.k8s.io']);
    assert.equal((refused as { status: number }).status, 401);
  });

  it('a certificate of somebody else is a bad credential', async () => {
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'];
    const pem = execFileSync('openssl', [...args, '-subj', '/CN=kubernetes-admin/O=system:masters', '-keyout', '-'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    assert.equal((await send(as({ cert: pem, key: pem }), 'GET', '/pods')).status, 401);
    const both = { cert: pem, key: pem, ...allowed };
    assert.equal((await send(as(both), 'GET', '/pods')).status, 200, 'another credential may still be good');
  });

  it('no credential is ever logged', async () => {
    await send(as({ token: BAD_TOKEN }), 'GET', `/exec/golden/simple/web?command=${BAD_TOKEN}-query`);
    const log = await server.node.log();
    for (const secret of [BAD_TOKEN, allowed.token ?? '?', denied.token ?? '?', 'PRIVATE KEY'])
      assert.ok(!log.includes(secret), `the log has ${secret.slice(0, 20)}`);
  });

  it('reviews and certificates are counted', async () => {
    const { body } = await send(server.main, 'GET', '/metrics');
    assert.match(body, /^apiserver_delegated_authn_request_total\{code="201"\} [1-9]/m);
    assert.match(body, /^apiserver_delegated_authz_request_total\{code="201"\} [1-9]/m);
    assert.match(body, /^apiserver_client_certificate_expiration_seconds_count [1-9]/m);
  });

  it('random paths leave the metric labels as they are', async () => {
    const series = async (): Promise<string[]> =>
      (await send(server.main, 'GET', '/metrics')).body
        .split('\n')
        .filter((line) => line.startsWith('kubelet_http_requests_total'))
        .map((line) => line.split('}')[0] ?? '');
    await send(server.main, 'GET', '/random');
    await send(server.main, 'GET', '/metrics/random');
    await series();
    const first = await series();
    for (let i = 0; i < 200; i++)
      await Promise.all(
        ['', '/metrics', '/healthz', '/pods', '/debug'].map((root) => send(anybody, 'GET', `${root}/x${i}`)),
      );
    assert.deepEqual(
      (await series()).filter((s) => !first.includes(s)).filter((s) => !/path="(pods|debug)"/.test(s)),
      [],
    );
  });

  it('a new client CA is taken up without a restart', async () => {
    assert.equal((await send(server.main, 'GET', '/pods')).status, 200);
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'];
    const other = execFileSync('openssl', [...args, '-subj', '/CN=other-ca', '-keyout', '-'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    await writeFile(server.node.api.caPath, other);
    await untilSeen(
      'the old certificate is refused',
      async () => (await send(server.main, 'GET', '/pods')).status,
      (seen) => seen === 401,
    );
    await writeFile(server.node.api.caPath, server.node.api.caPem);
    await untilSeen(
      'the old certificate is good again',
      async () => (await send(server.main, 'GET', '/pods')).status,
      (seen) => seen === 200,
    );
  });
});

describe('a node without an API server', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  before(async () => {
    server = await startServerNode({ cluster: false, flags: ['--enable-manifest-api'] });
  });
  after(() => server.node.stop());

  it('lets in root of this machine and certificates, and no token', async () => {
    const { as: _, ...anybody } = server.main;
    assert.equal((await send(anybody, 'GET', '/pods')).status, 200, 'root over loopback');
    assert.equal((await send(server.main, 'GET', '/pods')).status, 200, 'certificate');
    const status = asNobody(server.node.port);
    assert.equal(status, '401', 'another user of this machine');
    const contained = execFileSync('unshare', ['--mount', ...curl(server.node.port)], { encoding: 'utf8' });
    assert.equal(contained, '401', 'root in a container that shares the network of the machine');
  });

  it('takes, shows and gives up manifests', async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'given', namespace: 'default' },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [
          { name: 'c', image: 'localhost/busybox:latest', imagePullPolicy: 'IfNotPresent', command: ['sleep', '1000'] },
        ],
      },
    };
    const put = await send(server.main, 'PUT', '/manifests/default/given', { body: JSON.stringify(pod) });
    assert.equal(put.status, 201, put.body);
    await until('the pod runs', async () => {
      const { items } = JSON.parse((await send(server.main, 'GET', '/pods')).body) as {
        items: null | { metadata: { name: string }; status: { phase: string } }[];
      };
      return items?.some((p) => p.metadata.name === 'given-n1' && p.status.phase === 'Running');
    });
    const bad = await send(server.main, 'PUT', '/manifests/default/other', { body: JSON.stringify(pod) });
    assert.equal(bad.status, 422);
    assert.equal((await send(server.main, 'GET', '/manifests/default/given')).body, JSON.stringify(pod));
    assert.equal((await send(server.main, 'DELETE', '/manifests/default/given')).status, 200);
    assert.equal((await send(server.main, 'DELETE', '/manifests/default/given')).status, 404);
    await until('the pod is gone', async () => {
      const { items } = JSON.parse((await send(server.main, 'GET', '/pods')).body) as { items: null };
      return items === null;
    });
  });

  it('shows what is wrong with manifests', async () => {
    await writeFile(`${server.node.manifests}/bad.yaml`, 'apiVersion: v1\nkind: Pod\nmetadata: {name: UPPER}\n');
    const problems = await until('the problem is listed', async () => {
      const found = JSON.parse((await send(server.main, 'GET', '/problems')).body) as { problems: { where: string }[] };
      return found.problems.length > 0 && found.problems;
    });
    assert.match(problems[0]?.where ?? '', /bad\.yaml/);
  });
});

const curl = (port: number): string[] =>
  `curl -sk -o /dev/null -w %{http_code} https://127.0.0.1:${port}/pods`.split(' ');

/** The status an unprivileged user of this machine gets. */
function asNobody(port: number): string {
  const [command = '', ...args] = curl(port);
  return execFileSync(command, args, { encoding: 'utf8', uid: 65534, gid: 65534 });
}
