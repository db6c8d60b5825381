// Fresh Debian 12 and 13: beside a package of the Go kubelet's shape ours is installed, upgraded and removed. Nothing but
// kubelet.service is restarted, and nothing is left. PACKAGE_CHROOT=1; needs root, the network, debootstrap and lintian.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { debianPackage, file } from '../../scripts/package/debian.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..', '..');
const skip = process.env['PACKAGE_CHROOT'] === '1' ? false : 'only with PACKAGE_CHROOT=1';
const MINUTE = 60_000;

/** The whole installation once; then copies of it. */
function debian(suite: string): string {
  const kept = join(homedir(), '.cache', 'kubelet-ts', `debootstrap-${suite}`);
  if (existsSync(kept)) return kept;
  const work = `${kept}.${process.pid}`;
  mkdirSync(work, { recursive: true });
  const args = ['--variant=minbase', '--include=libatomic1', suite, work];
  execFileSync('debootstrap', args, { stdio: ['ignore', 'ignore', 'inherit'] });
  renameSync(work, kept);
  return kept;
}

/** What the Go kubelet's and kubeadm's packages put where. */
const goKubelet = (): Buffer =>
  debianPackage({
    name: 'kubelet',
    version: '1.36.0-1.1',
    architecture: 'all',
    control: {},
    description: 'a stand-in',
    epochSeconds: 0,
    entries: [
      { ...file('usr/bin/kubelet', '#!/bin/sh\necho Kubernetes v1.36.0\n'), mode: 0o755 },
      file('usr/lib/systemd/system/kubelet.service', '[Service]\nExecStart=/usr/bin/kubelet\n'),
      file(
        'usr/lib/systemd/system/kubelet.service.d/10-kubeadm.conf',
        '[Service]\nEnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env\nExecStart=\nExecStart=/usr/bin/kubelet $KUBELET_KUBEADM_ARGS\n',
      ),
    ],
  });

describe('packages on a fresh Debian', { skip, timeout: 20 * MINUTE }, () => {
  let dir = '';
  const packages = (version: string): string => join(dir, version);
  before(
    () => {
      dir = temporaryFolder('kts-chroot-');
      for (const version of ['0.1.0', '0.1.1']) {
        const args = [join(ROOT, 'scripts', 'package.ts'), '--out', packages(version), '--arch', 'x64'];
        execFileSync(process.execPath, [...args, '--package-version', version], { stdio: 'inherit' });
      }
      writeFileSync(join(dir, 'kubelet.deb'), goKubelet());
    },
    { timeout: 10 * MINUTE },
  );

  it('lintian finds no errors', { timeout: 5 * MINUTE }, () => {
    const debs = readdirSync(packages('0.1.0')).filter((name) => name.endsWith('.deb'));
    const args = ['--allow-root', '--fail-on', 'error', ...debs.map((name) => join(packages('0.1.0'), name))];
    execFileSync('lintian', args, { stdio: 'inherit' });
  });

  for (const suite of ['bookworm', 'trixie'])
    it(`installed, upgraded, removed on ${suite}`, { timeout: 10 * MINUTE }, () => {
      const root = join(dir, suite);
      cpSync(debian(suite), root, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
      // systemd as far as the scripts ask it: what they ask is kept.
      mkdirSync(join(root, 'run/systemd/system'), { recursive: true });
      const systemctl = join(root, 'usr/local/bin/systemctl');
      writeFileSync(systemctl, '#!/bin/sh\necho "$@" >> /root/systemctl.log\n', { mode: 0o755 });
      const asked = (): string[] => {
        const log = join(root, 'root/systemctl.log');
        const lines = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
        rmSync(log, { force: true });
        return lines;
      };
      const inside = (...command: readonly string[]): string => {
        const script = `mount -t proc proc ${root}/proc && exec chroot ${root} "$@"`;
        const env = {
          PATH: '/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin',
          DEBIAN_FRONTEND: 'noninteractive',
          LC_ALL: 'C',
        };
        return execFileSync('unshare', ['--mount', 'sh', '-c', script, 'sh', ...command], { encoding: 'utf8', env });
      };
      const install = (from: string, name: string): void => {
        cpSync(from, join(root, 'root', name));
        inside('dpkg', '--install', `/root/${name}`);
        rmSync(join(root, 'root', name));
      };
      const files = (): string[] =>
        inside(
          'find',
          '/usr',
          '/etc',
          '/var/cache',
          '/var/lib/kubelet',
          '-newermt',
          '1970-01-01',
          '-not',
          '-path',
          '*/dpkg/*',
        )
          .split('\n')
          .filter((line) => !/ldconfig|__pycache__|\/etc\/ld\.so\.cache|\/var\/lib\/dpkg/.test(line))
          .sort();
      mkdirSync(join(root, 'var/lib/kubelet'), { recursive: true });
      writeFileSync(join(root, 'var/lib/kubelet/cpu_manager_state'), '{}');
      install(join(dir, 'kubelet.deb'), 'kubelet.deb');
      const before = files();
      asked();

      install(join(packages('0.1.0'), 'kubelet-ts_0.1.0_amd64.deb'), 'a.deb');
      assert.deepEqual(asked(), ['daemon-reload', '--quiet is-active kubelet.service'], 'nothing is restarted');
      assert.equal(inside('kubelet-ts', '--version'), 'Kubernetes v1.36.0+kubelet-ts.0.1.0\n');
      assert.equal(inside('kubelet', '--version'), 'Kubernetes v1.36.0\n', 'the Go kubelet is where it was');

      install(join(packages('0.1.1'), 'kubelet-ts_0.1.1_amd64.deb'), 'a.deb');
      assert.deepEqual(asked(), ['daemon-reload', 'try-restart kubelet.service']);
      assert.equal(inside('kubelet-ts', '--version'), 'Kubernetes v1.36.0+kubelet-ts.0.1.1\n');

      inside('dpkg', '--remove', 'kubelet-ts');
      assert.deepEqual(asked(), ['daemon-reload', 'try-restart kubelet.service']);
      inside('dpkg', '--purge', 'kubelet-ts');
      asked();
      assert.deepEqual(files(), before, 'nothing is left, nothing is lost');

      // Alone on the machine.
      inside('dpkg', '--purge', 'kubelet');
      install(join(packages('0.1.1'), 'kubelet-ts_0.1.1_amd64.deb'), 'a.deb');
      install(join(packages('0.1.1'), 'kubelet-ts-standalone_0.1.1_all.deb'), 'b.deb');
      assert.equal(inside('kubelet', '--version'), 'Kubernetes v1.36.0+kubelet-ts.0.1.1\n');
      asked();
      inside('dpkg', '--remove', 'kubelet-ts-standalone', 'kubelet-ts');
      assert.deepEqual(asked()[0], 'disable --now kubelet.service');
    });
});
