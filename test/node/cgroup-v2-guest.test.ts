// The resource tests again in a QEMU guest, with both drivers: a host has one cgroup version and one init at a time.
// Needs qemu-system-x86_64 and the distribution's package lists; software emulation is enough.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { bootGuest, noQemu } from '../harness/guest.ts';
import { buildImage, cloudKernel, hasSystemd } from './cgroup-v2-guest-image.ts';

const GIVE_UP_MS = 300_000;

// One thread for both processors: with two, emulation now and then crashes compiled JavaScript.
const MACHINE = '-accel tcg,thread=single -cpu max -smp 2 -m 2048 -no-reboot';
const APPEND = 'console=ttyS0 panic=-1 loglevel=3 systemd.show_status=no systemd.unified_cgroup_hierarchy=';

const boot = (kernel: string, image: string, version: 1 | 2): Promise<string> =>
  bootGuest(
    [...MACHINE.split(' '), '-kernel', kernel, '-initrd', image, '-append', `${APPEND}${version - 1}`],
    GIVE_UP_MS,
  );

/** What the guest says about the tests that failed, else the end of what it printed. */
function failures(output: string): string {
  const blocks = [...output.matchAll(/^not ok [^]*?^ {2}\.\.\.\r?$/gm)].map(([block]) => block.replaceAll('\r', ''));
  return blocks.length > 0 ? blocks.join('\n') : output.slice(-4000);
}

const missing = noQemu();

for (const [version, driver] of [
  [2, 'cgroupfs'],
  [2, 'systemd'],
  [1, 'systemd'],
] as const) {
  const skip = missing || (driver === 'systemd' && !hasSystemd() ? 'systemd or dbus is not installed' : false);
  test(`resource tests on cgroup v${version}, driver ${driver}`, { skip, timeout: GIVE_UP_MS + 60_000 }, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'kubelet-ts-guest-'));
    try {
      const image = buildImage(driver, folder);
      const start = performance.now();
      const output = await boot(cloudKernel(), image, version);
      for (const [, line] of output.matchAll(/^# (create median.*?)\r?$/gm)) t.diagnostic(`guest: ${line}`);
      t.diagnostic(`guest ran ${((performance.now() - start) / 1000).toFixed(1)} s`);
      assert.match(output, /^guest: tests ended with 0\r?$/m, failures(output));
      const passed = /^# pass (\d+)/m.exec(output)?.[1];
      assert.ok(Number(passed) >= 13, `${passed} tests passed`);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
