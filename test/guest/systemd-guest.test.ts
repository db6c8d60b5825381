// The packages on a machine as kubeadm expects it: systemd, dbus, logind, containerd, cgroup v2, the systemd driver. Every
// suite goes on from a copy of one machine that waits, with its own bound. See README.md; SYSTEMD_GUEST=1.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { goldenNames } from './golden-v2.ts';
import { buildGuest, type GuestKind } from './guest-disk.ts';
import { keep, runSuite, type Kept } from './machine.ts';
import { suiteDrive } from './suite-drive.ts';
import { EVICTION, MEMORY, podsOf, type Scenario } from './scenarios.ts';

const MINUTE = 60_000;
const BUILD_MS = 15 * MINUTE;
const BOOT_MS = 10 * MINUTE;
const ORDER = 'ordinary asked\nordinary ended\ncritical asked\ncritical ended\n';

type Suite = {
  readonly name: string;
  /** On an idle core under emulation it takes about a third of it. */
  readonly minutes: number;
  /** The pods are files of a node that is alone. */
  readonly isAlone?: true;
  readonly checks: (kind: GuestKind) => readonly string[];
  /** It ends with an orderly shutdown: what the pods wrote on their way down is on the disk. */
  readonly endsInOrder?: true;
};

const comesUp = ['the kubelet is healthy', 'pods run'];
const namesOf = (scenarios: readonly Scenario[]): readonly string[] => scenarios.map(([name]) => name);

const SUITES: readonly Suite[] = [
  {
    name: 'slices',
    minutes: 12,
    isAlone: true,
    endsInOrder: true,
    checks: () => [
      ...comesUp,
      'the slice is a unit of systemd',
      'limits are in the files and known to systemd',
      'a removed pod leaves no slice',
      'no helper programs',
      'shutdowns are held up',
    ],
  },
  {
    name: 'restarts',
    minutes: 15,
    isAlone: true,
    checks: () => [
      ...comesUp,
      'agent killed: pods go on',
      'agent hung: the watchdog restarts it, pods go on',
      'package upgraded: pods go on',
    ],
  },
  {
    name: 'reboot',
    minutes: 15,
    isAlone: true,
    checks: () => [
      ...comesUp,
      'shutdowns are held up',
      'reboot: pods ended in order before',
      'reboot: pods run again, restarted once',
      'power failure: pods run again, restarted twice',
    ],
  },
  {
    name: 'pods',
    minutes: 15,
    checks: ({ release }) => ['the node is ready', ...namesOf(podsOf(release))],
  },
  { name: 'memory', minutes: 15, checks: () => ['the node is ready', ...namesOf(MEMORY)] },
  { name: 'eviction', minutes: 12, checks: () => ['the node is ready', ...namesOf(EVICTION)] },
  {
    name: 'golden',
    minutes: 24,
    checks: () => ['the node is ready', ...goldenNames().map((name) => `golden: ${name}`)],
  },
];

const GUESTS: readonly GuestKind[] = [
  { release: 'bookworm', containerd: '1.7' },
  { release: 'trixie', containerd: '2.1' },
];

const wanted = (variable: string, value: string): boolean =>
  (process.env[variable] ?? value).split(',').includes(value);

for (const kind of GUESTS) {
  const skip =
    process.env['SYSTEMD_GUEST'] !== '1'
      ? 'only with SYSTEMD_GUEST=1'
      : !wanted('SYSTEMD_GUEST_RELEASE', kind.release) && 'another release is wanted';
  describe(`systemd and cgroup v2: ${kind.release}, containerd ${kind.containerd}`, { skip }, () => {
    const work = mkdtempSync(join(tmpdir(), 'kts-guest-'));
    let kept: Kept;
    before(async () => (kept = await keep(await buildGuest(work, kind), await suiteDrive(work), work, BOOT_MS)), {
      timeout: BUILD_MS + BOOT_MS,
    });
    after(() => rmSync(work, { recursive: true, force: true }));

    for (const suite of SUITES)
      it(
        suite.name,
        {
          skip: !wanted('SYSTEMD_GUEST_SUITE', suite.name) && 'another suite is wanted',
          timeout: (suite.minutes + 2) * MINUTE,
        },
        async (t) => {
          const disk = join(work, `${suite.name}.img`);
          const start = performance.now();
          const output = await runSuite(kept, disk, {
            suite: suite.name,
            isAlone: suite.isAlone === true,
            giveUpMs: suite.minutes * MINUTE,
            told: (line) => {
              if (line.startsWith('guest: ')) console.log(`${suite.name}: ${line}`);
            },
          });
          t.diagnostic(`guest ran ${((performance.now() - start) / 1000).toFixed(0)} s`);
          const checks = [...output.matchAll(/^check: (.*?)\r?$/gm)].map(([, line = '']) => line);
          const want = suite.checks(kind).map((name) => `${name} ok`);
          const first = want.find((line) => !checks.includes(line));
          assert.equal(first, undefined, `the first check that failed or is missing: ${first}\n${output.slice(-6000)}`);
          // Those of the golden pods come in any order.
          assert.deepEqual(checks.toSorted(), want.toSorted());
          if (suite.endsInOrder) {
            const cat = ['-R', 'cat /var/ends/log', disk];
            assert.equal(execFileSync('debugfs', cat, { encoding: 'utf8', stdio: 'pipe' }), ORDER);
          }
          rmSync(disk);
        },
      );
  });
}
