// Every command that storage runs fails, is missing, hangs, or does its work and loses its answer, in every kind of volume:
// the attempt says why, the next one succeeds, and what was set up can be taken down with nothing left.
// runs: spare time
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { VolumeMode } from '../../src/core/storage.ts';
import type { ChildResult } from '../../src/host/mounts/child.ts';
import type { HostCommands } from '../../src/host/mounts/commands.ts';
import { KubeletError } from '../../src/lib/errors.ts';
import { IQN, openPlugin, requestFor, ScriptedHost } from '../node/volumes-scripted-host.ts';
import { Bench, mountsBeneath, podNamed } from '../node/volumes-setup.ts';

const noLoops = existsSync('/dev/loop-control') ? false : 'this machine has no loop devices';

type Behaviour = 'fails' | 'is missing' | 'hangs' | 'loses its answer';
const BEHAVIOURS: readonly Behaviour[] = ['fails', 'is missing', 'hangs', 'loses its answer'];

/** Passes commands on, but for the nth one since it was armed. */
class FaultyCommands implements HostCommands {
  readonly #next: HostCommands;
  readonly names: string[] = [];
  fault: { readonly at: number; readonly behaviour: Behaviour } | undefined;

  constructor(next: HostCommands) {
    this.#next = next;
  }

  async run(command: string, args: readonly string[], signal: AbortSignal): Promise<ChildResult> {
    const index = this.names.push(command) - 1;
    const behaviour = this.fault?.at === index ? this.fault.behaviour : undefined;
    if (behaviour === 'fails') return { code: 1, output: `${command} says no` };
    if (behaviour === 'is missing') throw new KubeletError('unavailable', `cannot run ${command}: ENOENT`);
    if (behaviour === 'hangs') throw new KubeletError('deadline', `${command} did not end within 1m0s`);
    const result = await this.#next.run(command, args, signal);
    if (behaviour === 'loses its answer') throw new KubeletError('deadline', `${command} did not end within 1m0s`);
    return result;
  }
}

type Kind = {
  readonly name: string;
  readonly plugin: string;
  readonly mode: VolumeMode;
  readonly source: (host: ScriptedHost) => Record<string, unknown>;
};

const iscsiSource = (host: ScriptedHost): Record<string, unknown> => {
  host.appears.push({ by: 'by-path', name: `ip-192.0.2.7:3260-iscsi-${IQN}-lun-1`, disk: host.disk() });
  return { iscsi: { targetPortal: '192.0.2.7', iqn: IQN, lun: 1 } };
};
const fcSource = (host: ScriptedHost): Record<string, unknown> => {
  host.appears.push({ by: 'by-path', name: 'fc-0x50-lun-2', disk: host.disk() });
  return { fc: { targetWWNs: ['50'], lun: 2 } };
};
const localSource = (host: ScriptedHost): Record<string, unknown> => ({
  local: { path: join(host.dev, host.disk()) },
});
const KINDS: readonly Kind[] = [
  { name: 'a local disk', plugin: 'local', mode: 'Filesystem', source: localSource },
  { name: 'a local device', plugin: 'local', mode: 'Block', source: localSource },
  { name: 'an iSCSI disk', plugin: 'iscsi', mode: 'Filesystem', source: iscsiSource },
  { name: 'an iSCSI device', plugin: 'iscsi', mode: 'Block', source: iscsiSource },
  { name: 'a fibre channel disk', plugin: 'fc', mode: 'Filesystem', source: fcSource },
];

/** One life of a volume: up, by another process down. Returns the commands of each half. */
async function live(kind: Kind, half: 'up' | 'down', fault?: FaultyCommands['fault']): Promise<string[]> {
  const bench = new Bench();
  const host = new ScriptedHost(bench.root);
  try {
    const pod = podNamed('p', {});
    const volume = { uid: 'uid-p', specName: 'data', volumeMode: kind.mode };
    const source = kind.source(host);
    const request = requestFor(bench, pod, source, kind.mode);
    const up = new FaultyCommands(host);
    const down = new FaultyCommands(host);
    (half === 'up' ? up : down).fault = fault;
    const plugin = openPlugin(bench, host, kind.plugin, up);
    await converge(up, () => plugin.setUp(request, bench.signal));
    const restarted = openPlugin(bench, host, kind.plugin, down);
    await converge(down, () => restarted.tearDown(volume, bench.signal));
    await restarted.tearDown(volume, bench.signal);
    assert.deepEqual(mountsBeneath(bench.root), [], 'nothing is mounted');
    const left = execFileSync('losetup', ['-a', '-O', 'BACK-FILE', '-n'], { encoding: 'utf8' }).split('\n');
    assert.deepEqual(
      left.filter((file) => file.includes(join(bench.root, 'plugins'))),
      [],
      'no loop device is left',
    );
    assert.ok(!existsSync(join(host.sys, 'class/iscsi_host')), 'no session is left');
    if (kind.plugin !== 'local') assert.deepEqual(readdirSync(join(host.dev, 'disk/by-path')), [], 'no disk is left');
    return half === 'up' ? up.names : down.names;
  } finally {
    bench.dispose();
    host.dispose();
  }
}

/** At most one attempt fails, with a reason. */
async function converge(commands: FaultyCommands, attempt: () => Promise<unknown>): Promise<void> {
  try {
    await attempt();
  } catch (err) {
    if (commands.fault === undefined) throw err;
    assert.ok(err instanceof KubeletError && err.message !== '', String(err));
    await attempt();
  }
}

for (const kind of KINDS) {
  describe(kind.name, { skip: noLoops }, () => {
    for (const half of ['up', 'down'] as const) {
      it(`${half}: each command in each way`, async (t) => {
        const names = await live(kind, half);
        assert.ok(names.length > 0 || kind.plugin === 'local', 'there is something to break');
        for (const [at, name] of names.entries())
          for (const behaviour of BEHAVIOURS)
            await t.test(`${at + 1} ${name} ${behaviour}`, async () => {
              await live(kind, half, { at, behaviour });
            });
      });
    }
  });
}
