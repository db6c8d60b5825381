// What people do with kubectl that ends at the kubelet's server, on a real node through an API server's proxy: logs over
// rotations, exec, cp, attach, port-forward.
// runs: gate
// shows: `kubectl logs`, `exec`, `attach`, `port-forward`, `cp`, `debug`
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { createNamespace, startPod, startServerNode, type ServerNode } from '../contracts/server/server-node.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { until, untilSeen } from '../harness/until.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { KUBECTL, KubectlClient } from './kubectl-client.ts';

const MiB = 1024 * 1024;

describe('kubectl on the server', { skip: KUBECTL === undefined || process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  let work: string;
  let kubectl: KubectlClient;
  before(async () => {
    work = temporaryFolder('kts-kubectl-');
    server = await startServerNode({
      reachable: true,
      config: 'containerLogMaxSize: 64Ki\ncontainerLogMaxFiles: 3\ncontainerLogMonitorInterval: 3s\n',
    });
    kubectl = new KubectlClient(server);
    await createNamespace(server.node);
    await Promise.all([
      startPod(server.node, 'simple'),
      startPod(server.node, 'talker', 'while read line; do echo "got $line"; done', { stdin: true }),
      startPod(server.node, 'greeter', `while :; do nc -l -p 8080 -e echo hello; done`),
      startPod(
        server.node,
        'writer',
        'echo waiting; until [ -e /tmp/go ]; do sleep 0.1; done; i=0; while [ $i -lt 6000 ]; do i=$((i+1)); echo "line $i of many, padded to be of some length"; [ $((i % 30)) = 0 ] && sleep 0.05; done; sleep 1000',
      ),
    ]);
  });
  after(() => server?.stop());

  it('logs, whole, in part, of yesterday and of nobody', async () => {
    assert.equal((await kubectl.run(['logs', 'simple'])).out, 'started\n');
    assert.equal((await kubectl.run(['logs', 'simple', '--tail=0'])).out, '');
    assert.match((await kubectl.run(['logs', 'simple', '--timestamps'])).out, /^\d{4}-\d\d-\d\dT\S+Z started\n$/);
    assert.match(
      (await kubectl.run(['logs', 'simple', '-p'])).err,
      /previous terminated container "web" in pod "simple" not found/,
    );
    assert.notEqual((await kubectl.run(['logs', 'simple', '-c', 'nope'])).code, 0);
  });

  it('logs -f across rotations misses and repeats nothing', async () => {
    const following = kubectl.start('logs', '-f', 'writer');
    let text = '';
    following.stdout?.on('data', (chunk: Buffer) => void (text += chunk.toString()));
    await untilSeen(
      'it follows',
      () => text,
      (seen) => seen.includes('waiting\n'),
    );
    assert.equal((await kubectl.run(['exec', 'writer', '--', 'touch', '/tmp/go'])).code, 0);
    await untilSeen(
      'the last line is there',
      () => text,
      (seen) => seen.includes('line 6000 '),
    );
    following.kill('SIGKILL');
    const numbers = [...text.matchAll(/^line (\d+) /gm)].map((m) => Number(m[1]));
    assert.deepEqual(
      numbers,
      Array.from({ length: 6000 }, (_, i) => i + 1),
    );
    const rotated = await kubectl.run(['logs', 'writer']);
    assert.ok(rotated.out.length < text.length, 'the log was rotated meanwhile');
  });

  it('logs of all containers, since a while ago, and of the life before', async () => {
    const container = (name: string, script: string): object => ({
      name,
      image: BUSYBOX_IMAGE,
      imagePullPolicy: 'IfNotPresent',
      command: ['sh', '-c', script],
    });
    const containers = [
      container('early', 'echo early; sleep 4; echo later; sleep 1000'),
      container('mortal', 'echo mortal; sleep 1; exit 3'),
    ];
    const spec = { terminationGracePeriodSeconds: 0, automountServiceAccountToken: false, containers };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'two' }, spec: { ...spec, nodeName: 'n1' } };
    assert.equal((await kubectl.run(['create', '-f', '-'], JSON.stringify(pod))).code, 0);
    const ofEarly = ['logs', 'two', '-c', 'early'];
    await untilSeen(
      'the second line is there',
      async () => (await kubectl.run(ofEarly)).out,
      (seen) => seen === 'early\nlater\n',
    );
    const [, later = ''] = (await kubectl.run([...ofEarly, '--timestamps'])).out.split('\n');
    const stamp = later.split(' ')[0] ?? '';
    assert.equal((await kubectl.run([...ofEarly, `--since-time=${stamp}`])).out, 'later\n');
    assert.equal((await kubectl.run([...ofEarly, '--since=1h'])).out, 'early\nlater\n');
    const before = ['logs', 'two', '-c', 'mortal', '-p'];
    await untilSeen(
      'it has lived before',
      async () => (await kubectl.run(before)).code,
      (seen) => seen === 0,
    );
    assert.deepEqual(await kubectl.run(before), { code: 0, out: 'mortal\n', err: '' });
    const all = (await kubectl.run(['logs', 'two', '--all-containers', '--prefix'])).out.split('\n');
    for (const line of ['[pod/two/early] early', '[pod/two/early] later', '[pod/two/mortal] mortal'])
      assert.ok(all.includes(line), line);
  });

  it('exec with exit code, input and output', async () => {
    const failed = await kubectl.run(['exec', 'simple', '--', 'sh', '-c', 'echo out; echo err >&2; exit 7']);
    assert.equal(failed.code, 7);
    assert.equal(failed.out, 'out\n');
    assert.match(failed.err, /^err\n/);
    assert.equal(
      (await kubectl.run(['exec', '-i', 'simple', '--', 'sha256sum'], 'x'.repeat(5 * MiB))).out.slice(0, 64),
      sha256('x'.repeat(5 * MiB)),
    );
    assert.match((await kubectl.run(['exec', 'simple', '--', '/nosuch'])).err, /no such file or directory|not found/);
  });

  it('exec -it on a terminal that changes its size, with exit code', async () => {
    const comes = (size: string, word: string): string =>
      `until stty size | grep -q "${size}"; do sleep 0.1; done; echo ${word}`;
    const script = `${comes('40 100', 'first')}; ${comes('30 90', 'second')}; exit 7`;
    const command = [KUBECTL ?? '', ...kubectl.flags, 'exec', '-it', 'simple', '--', 'sh', '-c', `'${script}'`].join(
      ' ',
    );
    // `script` gives kubectl a terminal of its own; its name is the first line.
    const child = spawn('script', ['-qfec', `tty; stty rows 40 cols 100; ${command}`, '/dev/null']);
    let text = '';
    child.stdout.on('data', (chunk: Buffer) => void (text += chunk.toString()));
    const ended = new Promise((resolve) => child.once('exit', resolve));
    await untilSeen(
      'the first size',
      () => text,
      (seen) => seen.includes('first'),
    );
    const [terminal = ''] = /\/dev\/pts\/\d+/.exec(text) ?? [];
    await promisify(execFile)('stty', ['-F', terminal, 'rows', '30', 'cols', '90']);
    await untilSeen(
      'the second size',
      () => text,
      (seen) => seen.includes('second'),
    );
    assert.equal(await ended, 7, text);
  });

  it('cp, there and back', async () => {
    const data = randomBytes(MiB);
    const [there, back] = [join(work, 'there'), join(work, 'back')];
    await writeFile(there, data);
    assert.equal((await kubectl.run(['cp', there, 'simple:/tmp/copied'])).code, 0);
    assert.equal((await kubectl.run(['cp', 'simple:/tmp/copied', back])).code, 0);
    assert.deepEqual(await readFile(back), data);
  });

  it('attach', async () => {
    const attached = kubectl.start('attach', '-i', 'talker');
    let text = '';
    attached.stdout?.on('data', (chunk: Buffer) => void (text += chunk.toString()));
    await until('an answer', () => {
      attached.stdin?.write('hello\n');
      return text.includes('got hello');
    });
    attached.kill('SIGKILL');
  });

  it('port-forward', async () => {
    const forward = await kubectl.forward('greeter', 8080);
    try {
      const text = await new Promise<string>((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: forward.port });
        let got = '';
        socket.on('data', (data: Buffer) => void (got += data.toString()));
        socket.on('error', reject);
        socket.on('end', () => resolve(got));
      });
      assert.equal(text, 'hello\n');
    } finally {
      forward.child.kill('SIGKILL');
    }
  });

  it('top and raw pages through the node proxy', async () => {
    const health = await kubectl.run(['get', '--raw', '/api/v1/nodes/n1/proxy/healthz']);
    assert.equal(health.out, 'ok');
    const pods = JSON.parse((await kubectl.run(['get', '--raw', '/api/v1/nodes/n1/proxy/pods'])).out) as {
      kind: string;
    };
    assert.equal(pods.kind, 'PodList');
  });
});

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
