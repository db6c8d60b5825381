// The packages on a machine as kubeadm expects it: systemd, dbus, logind, containerd, cgroup v2, the systemd driver. Pods, a
// killed agent, the watchdog, an upgrade, a reboot and a poweroff with pods. See README.md; SYSTEMD_GUEST=1.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bootGuest } from '../harness/guest.ts';
import { buildGuest, type Guest } from './guest-disk.ts';

const MINUTE = 60_000;
const GIVE_UP_MS = 25 * MINUTE;
const skip = process.env['SYSTEMD_GUEST'] === '1' ? false : 'only with SYSTEMD_GUEST=1';

function boot({ kernel, initramfs, disk }: Guest): Promise<string> {
  // One processor: with several, emulation crashes compiled JavaScript now and then.
  const machine = ['-accel', 'tcg', '-cpu', 'max', '-smp', '1', '-m', '2048'];
  const append = 'console=ttyS0 panic=-1 loglevel=3 systemd.show_status=no systemd.unified_cgroup_hierarchy=1';
  const parts = ['-kernel', kernel, '-initrd', initramfs, '-append', append];
  return bootGuest([...machine, ...parts, '-drive', `file=${disk},format=raw,if=virtio`], GIVE_UP_MS);
}

test('a node with systemd and cgroup v2', { skip, timeout: GIVE_UP_MS + 15 * MINUTE }, async (t) => {
  const work = mkdtempSync(join(tmpdir(), 'kts-guest-'));
  try {
    const guest = buildGuest(work);
    const start = performance.now();
    const output = await boot(guest);
    t.diagnostic(`guest ran ${((performance.now() - start) / 1000).toFixed(0)} s`);
    const checks = [...output.matchAll(/^check: (.*?)\r?$/gm)].map(([, line]) => line);
    for (const line of checks) t.diagnostic(`guest: ${line}`);
    assert.deepEqual(
      checks,
      [
        'kubelet is healthy ok',
        'pods run ok',
        'the slice is a unit of systemd ok',
        'limits are in the files and known to systemd ok',
        'a removed pod leaves no slice ok',
        'no helper programs ok',
        'shutdowns are held up ok',
        'agent killed: pods go on ok',
        'agent hung: the watchdog restarts it, pods go on ok',
        'package upgraded: pods go on ok',
        'reboot: pods ended in order before ok',
        'reboot: pods run again ok',
        'reboot: the removed pod stays away ok',
      ],
      output.slice(-6000),
    );
    // The last shutdown was a poweroff: what the pods wrote on their way down is on the disk.
    const log = execFileSync('debugfs', ['-R', 'cat /var/ends/log', guest.disk], { encoding: 'utf8', stdio: 'pipe' });
    assert.equal(log, 'ordinary asked\nordinary ended\ncritical asked\ncritical ended\n');
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
});
