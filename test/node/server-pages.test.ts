// The server's other pages on a real node: configuration, profiles, node logs, pod resources, certificates, and what is
// left when handlers are switched off.
// runs: gate
// shows: `/logs`, node log query, `/checkpoint`, `/configz`, `/flagz`, `/statusz`, log level, profiles
// shows: pod resources API
import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, statSync } from 'node:fs';
import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import type { Finding } from '../../src/cli/doctor/checks.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { GrpcChannel } from '../../src/lib/grpc/channel.ts';
import { GrpcError } from '../../src/lib/grpc/status.ts';
import { PodResourcesLister } from '../../src/server/gen/pod-resources.ts';
import { send, type Target } from '../contracts/server/http-client.ts';
import { createNamespace, startPod, startServerNode, type ServerNode } from '../contracts/server/server-node.ts';
import { untilSeen } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const never = new AbortController().signal;
const KUBELET = join(import.meta.dirname, '..', '..', 'bin', 'kubelet');
const CONFIGZ = join(import.meta.dirname, '..', 'golden', 'http', 'configz.json');

/** A certificate for the server, with its own name so that it can be told apart. */
async function writePair(dir: string, name: string): Promise<void> {
  const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1'];
  const pem = execFileSync('openssl', [...args, '-subj', `/CN=${name}`, '-keyout', '-'], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [key = ''] = /-----BEGIN PRIVATE KEY-----[^]*?-----END PRIVATE KEY-----\n/.exec(pem) ?? [];
  await writeFile(join(dir, 'key.pem'), key, { mode: 0o600 });
  await writeFile(join(dir, 'cert.pem'), pem.replace(key, ''));
}

/** The name in the certificate the server shows, and the protocol it agreed on. */
const shown = ({ host, port }: Target, more: object = {}): Promise<{ name: string; alpn: string | false | null }> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host, port, rejectUnauthorized: false, ...more }, () => {
      resolve({ name: String(socket.getPeerCertificate().subject.CN), alpn: socket.alpnProtocol });
      socket.destroy();
    });
    socket.once('error', reject);
  });

describe('pages of the server', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  let dir: string;
  before(async () => {
    dir = temporaryFolder('kts-pages-');
    await writePair(dir, 'first');
    const tls = `tlsCertFile: ${dir}/cert.pem\ntlsPrivateKeyFile: ${dir}/key.pem\ntlsMinVersion: VersionTLS13\n`;
    server = await startServerNode({ config: `${tls}enableSystemLogQuery: true\n` });
    await createNamespace(server.node);
    await startPod(server.node, 'simple');
  });
  after(() => server?.stop());
  const get = (path: string, headers: Record<string, string> = {}) => send(server.main, 'GET', path, { headers });

  // A new certificate is looked for now and then: the other pages are read meanwhile.
  describe('side by side', { concurrency: true }, () => {
    it('TLS as configured, HTTP/1.1 only, a new certificate without a restart', async () => {
      assert.deepEqual(await shown(server.main, { ALPNProtocols: ['h2', 'http/1.1'] }), {
        name: 'first',
        alpn: 'http/1.1',
      });
      await assert.rejects(shown(server.main, { maxVersion: 'TLSv1.2' }));
      await writePair(dir, 'second');
      await untilSeen(
        'the new certificate is shown',
        async () => (await shown(server.main)).name,
        (seen) => seen === 'second',
      );
    });

    describe('one after the other', { concurrency: 1 }, () => {
      it('configz: the fields of the recording, no more and no fewer but for what is set here', async () => {
        const { kubeletconfig } = JSON.parse((await get('/configz')).body) as {
          kubeletconfig: Record<string, unknown>;
        };
        const want = (JSON.parse(readFileSync(CONFIGZ, 'utf8')) as { kubeletconfig: Record<string, unknown> })
          .kubeletconfig;
        const ours = new Set([
          'cgroupRoot',
          'featureGates',
          'enableSystemLogQuery',
          'readOnlyPort',
          'tlsMinVersion',
          'makeIPTablesUtilChains',
        ]);
        const keys = (o: Record<string, unknown>): string[] =>
          Object.keys(o)
            .filter((k) => !ours.has(k))
            .sort();
        assert.deepEqual(keys(kubeletconfig), keys(want));
        assert.equal(kubeletconfig['kind'], 'KubeletConfiguration');
      });

      it('flagz and statusz, for people and for programs', async () => {
        const flagz = await get('/flagz');
        assert.match(flagz.body, /^\nkubelet flagz\nWarning: .*\naddress[^]*\nconfig[:= ]+\//);
        const accept = (kind: string) => ({ accept: `application/json;as=${kind};v=v1beta1;g=config.k8s.io` });
        const flags = JSON.parse((await get('/flagz', accept('Flagz'))).body) as { kind: string; flags: object };
        assert.equal(flags.kind, 'Flagz');
        assert.ok('kubeconfig' in flags.flags);
        const statusz = await get('/statusz');
        assert.match(statusz.body, /\nPaths[:= ]+.*\/configz/);
        const status = JSON.parse((await get('/statusz', accept('Statusz'))).body) as { paths: string[] };
        assert.ok(status.paths.includes('/metrics') && !status.paths.includes('/metrics/cadvisor'));
      });

      it('profiles in the formats of Node', async () => {
        const profile = JSON.parse((await get('/debug/pprof/profile?seconds=1')).body) as { nodes: unknown[] };
        assert.ok(profile.nodes.length > 0);
        const heap = JSON.parse((await get('/debug/pprof/heap?seconds=1')).body) as { head: object; strings?: unknown };
        assert.ok('callFrame' in heap.head);
        assert.ok(!('strings' in heap), 'no values of the heap');
        assert.match((await get('/debug/pprof/cmdline')).body, /main\.ts/);
        assert.equal(
          readFileSync(`/proc/${server.node.kubelet.pid}/comm`, 'utf8'),
          'kubelet\n',
          'as `pidof` looks for it',
        );
        assert.equal((await get('/debug/pprof/nosuch')).status, 404);
        assert.equal((await get('/debug/pprof/profile?seconds=x')).status, 400);
      });

      it('what the start of a pod waited for, drawn and as JSON', async () => {
        const drawing = await get('/debug/waterfalls/golden/simple');
        assert.match(drawing.body, /^start of golden\/simple: [\d.]+ ms\n[^]*\nrunPodSandbox +\| *=+ *\| [\d.]+ ms\n/);
        const { body } = await get('/debug/waterfalls', { accept: 'application/json' });
        const { waterfalls } = JSON.parse(body) as { waterfalls: { name: string; spans: { name: string }[] }[] };
        const names = waterfalls.find((w) => w.name === 'simple')?.spans.map((span) => span.name);
        for (const name of ['cgroup', 'volumes', 'runPodSandbox', 'createContainer', 'startContainer', 'status'])
          assert.ok(names?.includes(name), name);
        assert.equal((await get('/debug/waterfalls/golden/nobody')).status, 404);
      });

      it('why a pod is not running', async () => {
        assert.match((await get('/debug/why/golden/simple')).body, /^The pod is ready\.\n/);
        const { body } = await get('/debug/why/golden/simple', { accept: 'application/json' });
        assert.deepEqual((JSON.parse(body) as { why: { cause: string } }).why.cause, 'Ready');
        assert.equal((await get('/debug/why/golden/nobody')).status, 404);
      });

      it('the command line of the node, over its socket', async () => {
        const root = join(server.node.dir, 'kubelet');
        const node = async (...args: string[]): Promise<{ code: number; out: string }> => {
          const done = promisify(execFile)(KUBELET, ['node', ...args, '--root-dir', root]);
          return done.then(
            ({ stdout }) => ({ code: 0, out: stdout }),
            (err: { code: number; stdout: string; stderr: string }) => ({
              code: err.code,
              out: err.stdout + err.stderr,
            }),
          );
        };
        assert.equal(statSync(join(root, 'node', 'kubelet.sock')).mode & 0o777, 0o600);
        assert.deepEqual(await node('why', 'golden/simple'), { code: 0, out: 'golden/simple: The pod is ready.\n' });
        assert.equal((await node('why', 'golden/nobody')).code, 4);
        const top = await node('top');
        assert.equal(top.code, 0, top.out);
        assert.match(
          top.out,
          /^n1 {2}Ready {2}v1\.[^]*\nNAMESPACE +POD +STATE [^]*\ngolden +simple +Running +1\/1 +0 /,
        );
        assert.match((await node('events', 'golden/simple')).out, / Normal +Started +pod\/golden\/simple +/);
        assert.deepEqual(await node('pulls', '-o', 'json'), { code: 0, out: '{"pulls":[]}\n' });
        const { findings } = JSON.parse((await node('doctor', '-o', 'json')).out) as { findings: Finding[] };
        const levelOf = (subject: string): string | undefined => findings.find((f) => f.subject === subject)?.level;
        assert.deepEqual(['kubelet', 'runtime', 'network'].map(levelOf), ['ok', 'ok', 'ok']);
      });

      it('the command line draws anew on a terminal until it is interrupted, and gives the screen back', async () => {
        // In place of the shell: a shell that waits (dash) would die of the key that the kubelet handles, with a code of its own.
        const command = `exec ${KUBELET} node top --root-dir ${join(server.node.dir, 'kubelet')}`;
        // A terminal of its own, with keys typed through its input.
        const env = { ...process.env, SHELL: '/bin/sh' };
        const terminal = spawn('script', ['-qefc', command, '/dev/null'], { stdio: ['pipe', 'pipe', 'ignore'], env });
        let drawn = '';
        terminal.stdout.setEncoding('utf8').on('data', (text: string) => (drawn += text));
        const ended = once(terminal, 'close');
        try {
          const drawings = (): number => drawn.split('\u001B[J').length - 1;
          await untilSeen('it was drawn twice', drawings, (seen) => seen >= 2);
          assert.ok(drawn.startsWith('\u001B[?1049h\u001B[?25l\u001B[Hn1  Ready'), drawn);
          terminal.stdin.write('\u0003');
          const [code] = (await ended) as [number];
          assert.equal(code, 0, drawn);
          assert.ok(drawn.lastIndexOf('\u001B[?25h\u001B[?1049l') > drawn.lastIndexOf('\u001B[J'), drawn);
        } finally {
          terminal.kill('SIGKILL');
        }
      });

      it('metrics, packed where asked for', async () => {
        const { body, headers } = await get('/metrics/slis');
        assert.match(String(headers['process-start-time-unix']), /^\d+$/);
        await get('/healthz');
        assert.match(
          (await get('/metrics/slis')).body + body,
          /kubernetes_healthcheck\{name="ping",type="healthz"\} 1/,
        );
        const admin = join(dir, 'admin.pem');
        await writeFile(admin, server.admin.cert ?? '', { mode: 0o600 });
        const url = `https://127.0.0.1:${server.node.port}/metrics`;
        const curl = ['-sk', '--cert', admin, '-H', 'Accept-Encoding: gzip', url];
        const packed = await promisify(execFile)('curl', curl, { encoding: 'buffer', maxBuffer: 1 << 24 });
        assert.match(gunzipSync(packed.stdout).toString(), /^# HELP /);
        const accept = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited';
        for (const path of ['/metrics', '/metrics/cadvisor', '/metrics/resource', '/metrics/probes']) {
          const families = await send(server.main, 'GET', path, { headers: { accept } });
          assert.equal(
            families.headers['content-type'],
            'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=underscores',
          );
          assert.ok(families.body.length > 0 && !families.body.includes('# HELP'), path);
        }
      });

      it('files of /var/log: whole, in part, and nothing outside', async () => {
        const name = `kts-pages-${process.pid}.log`;
        const path = join('/var/log', name);
        const escape = `${path}.escape`;
        await writeFile(path, '0123456789');
        await symlink('/etc/passwd', escape);
        try {
          const whole = await get(`/logs/${name}`);
          assert.deepEqual([whole.status, whole.body], [200, '0123456789']);
          assert.equal(whole.headers['content-type'], 'text/plain; charset=utf-8');
          const part = await get(`/logs/${name}`, { range: 'bytes=2-4' });
          assert.deepEqual([part.status, part.body, part.headers['content-range']], [206, '234', 'bytes 2-4/10']);
          assert.equal((await get(`/logs/${name}`, { range: 'bytes=20-' })).status, 416);
          for (const outside of [`${name}.escape`, '%2e%2e/%2e%2e/etc/passwd', '..%2f..%2fetc/passwd', '%00'])
            assert.equal((await get(`/logs/${outside}`)).status, 404, outside);
          const asked = await get(`/logs/?query=/${name}`);
          assert.deepEqual([asked.status, asked.body], [200, '0123456789']);
          assert.equal((await get(`/logs/?query=/${name}.escape`)).body.includes('root:'), false);
          assert.match((await get('/logs/?query=no-such-service')).body, /log not found for no-such-service/);
          assert.equal((await get('/logs/?query=a;reboot')).status, 406);
          const missing = await get('/logs/?query=/no-such-file');
          assert.deepEqual(
            [missing.status, missing.body],
            [406, 'query: Invalid value: ["/no-such-file"]: stat /var/log/no-such-file: no such file or directory\n'],
          );
          assert.equal((await get(`/logs/${name}?other=1`)).body, '0123456789');
          assert.equal((await get(`/logs/${name}?query=kubelet`)).status, 406);
        } finally {
          await rm(path);
          await rm(escape);
        }
      });

      it('checkpoint fails in words where the runtime cannot', async () => {
        const { status, body } = await send(server.main, 'POST', '/checkpoint/golden/simple/web');
        if (status === 200)
          return assert.match(body, /^\{"items":\["\/.*\/checkpoints\/checkpoint-simple_golden-web-.*\.tar"\]\}$/);
        assert.equal(status, 500);
        assert.match(body, /^checkpointing of golden\/simple\/web failed \(rpc error: code = /);
        assert.equal((await send(server.main, 'POST', '/checkpoint/golden/simple/web?timeout=x')).status, 404);
      });

      it('pod resources, within the limit', async () => {
        const path = join(server.node.dir, 'kubelet', 'pod-resources', 'kubelet.sock');
        const channel = new GrpcChannel(systemClock, {
          target: { socketPath: path },
          maxReceiveBytes: 1 << 20,
          connectTimeoutMs: 2000,
        });
        try {
          const { podResources } = await channel.unary(PodResourcesLister.list, {}, { signal: never });
          assert.deepEqual(
            podResources.map((p) => [p.namespace, p.name, p.containers.map((c) => c.name)]),
            [['golden', 'simple', ['web']]],
          );
          const one = { podName: 'simple', podNamespace: 'golden' };
          const got = await channel.unary(PodResourcesLister.get, one, { signal: never });
          assert.equal(got.podResources?.name, 'simple');
          await assert.rejects(
            channel.unary(PodResourcesLister.get, { podName: 'no', podNamespace: 'x' }, { signal: never }),
          );
          const burst = await Promise.allSettled(
            Array.from({ length: 60 }, () => channel.unary(PodResourcesLister.list, {}, { signal: never })),
          );
          const refused = burst.filter((r) => r.status === 'rejected').map((r) => r.reason as GrpcError);
          assert.ok(refused.length > 20, `${refused.length} refused`);
          assert.ok(
            refused.every((err) => err.codeName === 'ResourceExhausted' && err.message === 'rejected by rate limit'),
          );
        } finally {
          channel.close();
        }
      });
    });
  });
});

describe('a server with its handlers switched off', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  before(async () => {
    server = await startServerNode({ config: 'enableDebuggingHandlers: false\n' });
  });
  after(() => server.stop());

  it('says so, and hides the rest', async () => {
    for (const root of [
      'run',
      'exec',
      'attach',
      'portForward',
      'containerLogs',
      'runningpods',
      'debug/pprof',
      'logs',
    ]) {
      const { status, body } = await send(server.main, 'GET', `/${root}/x/y/z`);
      assert.deepEqual([status, body], [405, 'Debug endpoints are disabled.\n'], root);
    }
    for (const path of ['/configz', '/checkpoint/a/b/c', '/flagz', '/statusz', '/debug/flags/v'])
      assert.equal((await send(server.main, 'GET', path)).status, 404, path);
    for (const path of ['/pods', '/healthz', '/metrics'])
      assert.equal((await send(server.main, 'GET', path)).status, 200);
  });
});

describe('a server whose certificate the cluster signs', { skip: process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  before(async () => {
    const off = ['enableSystemLogHandler', 'enableProfilingHandler', 'enableDebugFlagsHandler'];
    server = await startServerNode({
      config: `serverTLSBootstrap: true\n${off.map((name) => `${name}: false\n`).join('')}`,
    });
  });
  after(() => server.stop());

  it('shows it as soon as there is one', async () => {
    assert.equal((await shown(server.main)).name, 'system:node:n1');
    const { body } = await send(server.main, 'GET', '/metrics');
    assert.match(body, /kubelet_certificate_manager_server_ttl_seconds \d+/);
  });

  it('with single handlers switched off names them, whatever is asked', async () => {
    for (const [method, path, name] of [
      ['GET', '/logs/a/b', 'logs'],
      ['POST', '/logs/', 'logs'],
      ['GET', '/debug/pprof/', 'profiling'],
      ['PUT', '/debug/pprof/heap', 'profiling'],
      ['PUT', '/debug/flags/v', 'flags'],
    ] as const) {
      const { status, body, headers } = await send(server.main, method, path);
      assert.deepEqual(
        [status, body, headers['x-content-type-options']],
        [405, `${name} endpoint is disabled.\n`, 'nosniff'],
      );
    }
  });
});
