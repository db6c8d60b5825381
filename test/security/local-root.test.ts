// An unprivileged user connects from the port of other connections of root, a thousand times: a client port is shared by
// connections to different destinations, so it identifies nobody. Root is known beside connections in TIME_WAIT.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { it } from 'node:test';
import type { AttackResult } from './local-root-attack.ts';

const ATTACK = join(import.meta.dirname, 'local-root-attack.ts');
/** In a network namespace of its own the kernel has a single port for clients. */
const SCRIPT = 'ip link set lo up && echo 40000 40000 >/proc/sys/net/ipv4/ip_local_port_range && exec "$@"';

it(
  'another user on a client port of root is not root, and root is root beside closed connections',
  { skip: process.getuid?.() !== 0 && 'needs root', timeout: 240_000 },
  () => {
    const node = [process.execPath, '--disable-warning=ExperimentalWarning', ATTACK];
    const { status, stdout, stderr } = spawnSync('unshare', ['--net', 'sh', '-c', SCRIPT, 'sh', ...node], {
      encoding: 'utf8',
    });
    assert.equal(status, 0, stderr);
    assert.deepEqual(JSON.parse(stdout) as AttackResult, {
      attempts: 1000,
      takenForRoot: 0,
      rootConnections: 20,
      rootRefused: 0,
      clientPorts: 1,
    });
  },
);
