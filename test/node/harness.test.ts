// What tests start leaves nothing behind: not when it is stopped, not when its test run was killed.
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { leftovers, removeTraces } from '../../src/devcluster/containerd/cleanup.ts';
import type { PodNetwork } from '../../src/devcluster/containerd/config.ts';
import { startContainerd } from '../harness/containerd.ts';
import { noQemu } from '../harness/guest.ts';
import { bareSandboxConfig, runPod } from '../harness/pods.ts';
import { until, untilSeen } from '../harness/until.ts';

const { signal } = new AbortController();
const networkOf = (root: string): PodNetwork =>
  (JSON.parse(readFileSync(join(root, 'owner.json'), 'utf8')) as { network: PodNetwork }).network;

describe('private containerd', () => {
  it('takes containers, mounts, bridge, port mappings and files away, even those of a killed daemon', async () => {
    const containerd = await startContainerd({ version: '1.6' });
    const network = networkOf(containerd.root);
    await runPod(containerd, 'one', ['sleep', '1000']);
    const config = {
      ...bareSandboxConfig(containerd.root, 'ports', 'ports'),
      portMappings: [{ containerPort: 80, hostPort: 18_123 }],
    };
    await containerd.runtime.runPodSandbox({ config }, signal);
    const there = await leftovers(containerd.root, network);
    for (const kind of ['process', 'mount', 'bridge', 'iptables', 'file', 'folder'])
      assert.ok(
        there.some((l) => l.startsWith(kind)),
        `${kind} in ${there.join(', ')}`,
      );
    await containerd.kill('SIGKILL');
    await containerd.stop();
    assert.deepEqual(await leftovers(containerd.root, network), []);
  });

  it('takes the chain of services away when others have flushed the way into it', async () => {
    const network = { name: 'kds-test', bridge: 'kd-none', subnet: '192.0.2.0/24', gateway: '192.0.2.1' };
    const iptables = (...args: string[]) => promisify(execFile)('iptables', ['--wait', '-t', 'nat', ...args]);
    await iptables('-N', 'KTS-kds-test');
    await iptables('-A', 'KTS-kds-test', '-d', '192.0.2.9/32', '-j', 'RETURN');
    assert.deepEqual(await leftovers('/nowhere', network), ['iptables rules (nat)']);
    await removeTraces('/nowhere', network);
    assert.deepEqual(await leftovers('/nowhere', network), []);
    assert.ok(!(await promisify(execFile)('iptables-save', ['-t', 'nat'])).stdout.includes('KTS-kds-test'));
  });

  it('is swept by the next run when its own was killed', async () => {
    const script = `
      import { startContainerd } from '${import.meta.dirname}/../harness/containerd.ts';
      import { runPod } from '${import.meta.dirname}/../harness/pods.ts';
      const c = await startContainerd();
      await runPod(c, 'orphan', ['sleep', '1000']);
      console.log(c.root);
      setInterval(() => undefined, 60_000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    const root = line.toString().trim();
    const network = networkOf(root);
    assert.ok(existsSync(root));
    child.kill('SIGKILL');
    await once(child, 'exit');
    const next = await startContainerd();
    // A test file beside this one may have come first, and may still be at it.
    await untilSeen(
      'nothing is left',
      () => leftovers(root, network),
      (seen) => seen.length === 0,
    );
    await next.stop();
  });
});

it('a guest ends with the run that booted it', { skip: noQemu() }, async (t) => {
  const script = `
    import { bootGuest } from '${import.meta.dirname}/../harness/guest.ts';
    await bootGuest(['-S', '-m', '16'], 60_000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'ignore' });
  t.after(() => child.kill('SIGKILL'));
  const pid = await until('the guest runs', () => {
    const [first = ''] = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').split(' ');
    return first !== '' && readFileSync(`/proc/${first}/cmdline`, 'utf8').startsWith('qemu') && first;
  });
  child.kill('SIGKILL');
  await until('the guest is gone', () => !existsSync(`/proc/${pid}`));
});
