import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { isSelinuxEnabled } from './selinux.ts';

const dir = mkdtempSync('/tmp/kts-selinux-');
after(() => rmSync(dir, { recursive: true }));

const machine = (name: string, files: Readonly<Record<string, string>>): string => {
  const root = join(dir, name);
  for (const folder of ['sys/fs/selinux', 'proc/self/attr']) mkdirSync(join(root, folder), { recursive: true });
  for (const [path, text] of Object.entries(files)) writeFileSync(join(root, path), text);
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
