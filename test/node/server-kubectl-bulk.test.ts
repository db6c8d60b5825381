// Much data through kubectl and the kubelet's server on a real node: the agent's memory stays flat.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { createNamespace, startPod, startServerNode, type ServerNode } from '../contracts/server/server-node.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { KUBECTL, KubectlClient } from './kubectl-client.ts';

const MiB = 1024 * 1024;
const COPIED = 100 * MiB;
const FORWARDED = 1024 * MiB;

describe('much data through kubectl', { skip: KUBECTL === undefined || process.getuid?.() !== 0 }, () => {
  let server: ServerNode;
  let work: string;
  let kubectl: KubectlClient;
  before(async () => {
    work = temporaryFolder('kts-kubectl-');
    server = await startServerNode({
      reachable: true,
    });
    kubectl = new KubectlClient(server);
    await createNamespace(server.node);
    await Promise.all([
      startPod(server.node, 'simple'),
      startPod(
        server.node,
        'source',
        `while :; do nc -l -p 8080 -e sh -c 'dd if=/dev/zero bs=1M count=${FORWARDED / MiB} 2>/dev/null'; done`,
      ),
    ]);
  });
  after(() => server?.stop());

  it('cp of 100 MB, there and back, in flat memory', async () => {
    const data = randomBytes(COPIED);
    const [there, back] = [join(work, 'there'), join(work, 'back')];
    await writeFile(there, data);
    const memory = watchMemory(server);
    const began = performance.now();
    assert.equal((await kubectl.run(['cp', there, 'simple:/tmp/copied'])).code, 0);
    const turned = performance.now();
    assert.equal((await kubectl.run(['cp', 'simple:/tmp/copied', back])).code, 0);
    const ended = performance.now();
    assert.equal(sha256(await readFile(back)), sha256(data));
    const grownMiB = memory.stop();
    console.log(`there ${speed(COPIED, turned - began)}, back ${speed(COPIED, ended - turned)}, ${grownMiB} MiB more`);
    assert.ok(grownMiB < 100, `memory grew by ${grownMiB} MiB`);
  });

  it('port-forward of 1 GB in flat memory', async () => {
    const forward = await kubectl.forward('source', 8080);
    try {
      const memory = watchMemory(server);
      let got = 0;
      const began = performance.now();
      await new Promise<void>((resolve, reject) => {
        const socket = connect({ host: '127.0.0.1', port: forward.port });
        socket.on('data', (chunk: Buffer) => {
          got += chunk.length;
          if (got >= FORWARDED) resolve();
        });
        socket.on('error', reject);
        socket.on('end', () => resolve());
      });
      const tookMs = performance.now() - began;
      const grownMiB = memory.stop();
      assert.equal(got, FORWARDED);
      console.log(`${speed(got, tookMs)}, ${grownMiB} MiB more`);
      assert.ok(grownMiB < 100, `memory grew by ${grownMiB} MiB`);
    } finally {
      forward.child.kill('SIGKILL');
    }
  });
});

const sha256 = (data: string | Buffer): string => createHash('sha256').update(data).digest('hex');
const speed = (bytes: number, ms: number): string => `${Math.round(((bytes / MiB) * 1000) / ms)} MiB/s`;

/** How many MiB the kubelet takes more at its highest than now. */
function watchMemory({ node }: ServerNode): { stop: () => number } {
  const kb = (): number => Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${node.kubelet.pid}/status`, 'utf8'))?.[1]);
  const before = kb();
  let peak = before;
  const look = (): void => void (peak = Math.max(peak, kb()));
  const timer = setInterval(look, 50);
  return {
    stop: () => {
      clearInterval(timer);
      look();
      return Math.round((peak - before) / 1024);
    },
  };
}
