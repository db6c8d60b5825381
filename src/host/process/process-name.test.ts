import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';

test('a kubelet is found by its name, with its flags', () => {
  const script = `
    import { readFileSync } from 'node:fs';
    import { nameProcess } from ${JSON.stringify(join(import.meta.dirname, 'process-name.ts'))};
    nameProcess(['--config=/etc/kubelet.yaml', '--v=2']);
    process.stdout.write(readFileSync('/proc/self/comm', 'utf8') + readFileSync('/proc/self/cmdline', 'utf8'));`;
  const child = spawnSync(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', '--input-type=module-typescript', '-e', script],
    { encoding: 'utf8' },
  );
  assert.equal(child.stderr, '');
  assert.equal(child.stdout.replace(/\0+$/, ''), 'kubelet\nkubelet --config=/etc/kubelet.yaml --v=2');
});
