import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { fileLabel } from './libc.ts';
import { containerFileContext, isSelinuxEnabled, labelForPlugins } from './selinux.ts';

const dir = mkdtempSync('/tmp/kts-selinux-');
after(() => rmSync(dir, { recursive: true }));

const machine = (name: string, files: Readonly<Record<string, string>>): string => {
  const root = join(dir, name);
  for (const folder of ['sys/fs/selinux', 'proc/self/attr']) mkdirSync(join(root, folder), { recursive: true });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return `${root}/`;
};

test('SELinux counts with a filesystem and a policy', async () => {
  const enforce = { 'sys/fs/selinux/enforce': '0' };
  const cases: readonly [Readonly<Record<string, string>>, boolean][] = [
    [{}, false],
    [{ 'proc/self/attr/current': 'system_u:system_r:kubelet_t:s0\0' }, false],
    [enforce, false],
    [{ ...enforce, 'proc/self/attr/current': 'kernel\0' }, false],
    [{ ...enforce, 'proc/self/attr/current': '' }, false],
    [{ ...enforce, 'proc/self/attr/current': 'system_u:system_r:kubelet_t:s0\0' }, true],
    [{ ...enforce, 'proc/self/attr/current': 'system_u:system_r:kubelet_t:s0\n' }, true],
  ];
  for (const [index, [files, wanted]] of cases.entries())
    assert.equal(await isSelinuxEnabled(machine(`m${index}`, files)), wanted, JSON.stringify(files));
});

test('files of containers have the label of the policy in use', async () => {
  const on = { 'sys/fs/selinux/enforce': '1', 'proc/self/attr/current': 'system_u:system_r:kubelet_t:s0' };
  const contexts = 'process = "system_u:system_r:container_t:s0"\nfile = "system_u:object_r:container_file_t:s0"\n';
  const cases: readonly [Readonly<Record<string, string>>, string | undefined][] = [
    [{ 'etc/selinux/targeted/contexts/lxc_contexts': contexts }, undefined],
    [on, undefined],
    [{ ...on, 'etc/selinux/targeted/contexts/lxc_contexts': contexts }, 'system_u:object_r:container_file_t:s0'],
    [
      {
        ...on,
        'etc/selinux/config': '# SELINUXTYPE=x\nSELINUXTYPE=mls\n',
        'etc/selinux/mls/contexts/lxc_contexts': 'file = "a:b:c:s0"',
      },
      'a:b:c:s0',
    ],
  ];
  for (const [index, [files, wanted]] of cases.entries())
    assert.equal(await containerFileContext(machine(`f${index}`, files)), wanted, JSON.stringify(files));
});

test("plugins' directories get the label of containers' files, where there are labels", async () => {
  const warned: unknown[] = [];
  const log = { warn: (_: string, fields?: Readonly<Record<string, unknown>>) => void warned.push(fields?.['path']) };
  const path = join(dir, 'plugins');
  mkdirSync(path);
  await labelForPlugins(path, log, machine('off', {}));
  assert.notEqual(fileLabel(path), 'system_u:object_r:container_file_t:s0');
  const on = machine('on', {
    'sys/fs/selinux/enforce': '1',
    'proc/self/attr/current': 'system_u:system_r:kubelet_t:s0',
  });
  await labelForPlugins(path, log, on);
  // Who may not set labels says so, and goes on.
  if (warned.length > 0) return assert.notEqual(process.getuid?.(), 0);
  assert.equal(fileLabel(path), 'system_u:object_r:container_file_t:s0');
  await labelForPlugins(join(dir, 'absent'), log, on);
  assert.deepEqual(warned, [join(dir, 'absent')]);
});
