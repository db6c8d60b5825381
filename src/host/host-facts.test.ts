import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { it } from 'node:test';
import { goArch, prettyName, readHostFacts } from './host-facts.ts';

const tree = async (files: Record<string, string>): Promise<string> => {
  const root = await mkdtemp(join(tmpdir(), 'host-facts-'));
  for (const [path, text] of Object.entries({ 'proc/meminfo': 'MemTotal: 10 kB\nSwapTotal: 4 kB\n', ...files })) {
    await mkdir(dirname(join(root, path)), { recursive: true });
    await writeFile(join(root, path), text);
  }
  return root;
};

it('reads who the machine is', async () => {
  const root = await tree({
    'etc/machine-id': 'abc\n',
    'sys/class/dmi/id/product_uuid': 'UUID-1\n',
    'proc/sys/kernel/random/boot_id': 'boot\n',
    'proc/sys/kernel/osrelease': '6.1.0\n',
    'etc/os-release': 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
  });
  const { architecture: _, ...facts } = await readHostFacts(root);
  assert.deepEqual(facts, {
    machineId: 'abc',
    systemUuid: 'UUID-1',
    bootId: 'boot',
    kernelVersion: '6.1.0',
    osImage: 'Debian GNU/Linux 12 (bookworm)',
    swapBytes: 4096,
  });
  await rm(root, { recursive: true });
});

it('falls back where files are missing', async () => {
  const root = await tree({ 'var/lib/dbus/machine-id': 'bus', 'proc/device-tree/vm,uuid': 'vm\0' });
  const facts = await readHostFacts(root);
  assert.deepEqual([facts.machineId, facts.systemUuid, facts.osImage], ['bus', 'vm', 'Linux']);
  await rm(root, { recursive: true });
});

it('knows Go’s names', () => {
  assert.deepEqual(['x64', 'arm64', 'ia32', 's390x'].map(goArch), ['amd64', 'arm64', '386', 's390x']);
  assert.equal(prettyName("PRETTY_NAME='A b'"), 'A b');
});
