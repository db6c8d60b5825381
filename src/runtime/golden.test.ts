// Every recorded scenario, driven through PodRuntime on a scripted runtime: the same requests in the same order with the
// same content, and the same events; on cgroup v2 with systemd but for the differences that are named.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { uidOf, namespaceOf, type Pod } from '../core/pod.ts';
import { cgroupPath, parseCgroupName } from '../host/cgroups/cgroup-names.ts';
import { ContainerStartError, type WaitingReason } from '../core/reasons.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { onCgroupV2 } from '../../test/golden/cgroup-v2.ts';
import { onTheWire, recordedRequest, recording, scenarioNames, type Recording } from '../../test/golden/recording.ts';
import { ScriptedRuntime, type RuntimeScript } from '../../test/golden/scripted-runtime.ts';
import { PodRuntime } from './pod-runtime.ts';
import type { ProbeResults } from './plan-steps.ts';
import type { PodSyncResult } from './sync-result.ts';
import {
  facts,
  fakeCluster,
  fakeInfra,
  fakeResizeRecords,
  mountsFromSpec,
  recordingEvents,
  removerOn,
  type SeenEvent,
} from '../../test/golden/fixture.ts';

const IMAGE_REF = 'sha256:dae726bb8a23ae623b4c103c49f5bcd9c615c4c7676bd528e92c943b9df1ee49';
const NO_IMAGE: Readonly<Record<string, WaitingReason>> = {
  '127.0.0.1:1/none/none:v1': 'ErrImagePull',
  'localhost/none:v1': 'ErrImageNeverPull',
  'INVALID::image': 'InvalidImageName',
};
const BAD_START =
  'failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/does/not/exist": stat /does/not/exist: no such file or directory';

type Scenario = {
  readonly script?: Partial<RuntimeScript>;
  /** Starts of the first container to see before the pod is deleted. */
  readonly starts?: number;
  /** Liveness of the first container fails once it runs. */
  readonly livenessFailsOnce?: boolean;
};
const SCENARIOS: Readonly<Record<string, Scenario>> = {
  badcmd: { script: { startErrors: { c: BAD_START } }, starts: 3 },
  crashloop: { script: { exits: { c: 1 } }, starts: 4 },
  succeeds: { script: { exits: { job: 0 } } },
  fails: { script: { exits: { job: 3, ok: 0 } } },
  init: { script: { exits: { first: 0, second: 0 } } },
  sidecar: { script: { exits: { after: 0 } } },
  hooks: { script: { execExits: { 'sh -c exit 7': 7 }, execMs: { 'sh -c sleep 2': 2037 } } },
  probes: { livenessFailsOnce: true },
};

type Machine = {
  readonly name: string;
  readonly cgroupVersion: 1 | 2;
  readonly parentOf: (path: string) => string;
  readonly expected: (request: unknown) => unknown;
};
const V1: Machine = {
  name: 'cgroup v1 with cgroupfs',
  cgroupVersion: 1,
  parentOf: (path) => path,
  expected: (request) => request,
};
const V2: Machine = {
  name: 'cgroup v2 with systemd',
  cgroupVersion: 2,
  parentOf: (path) => cgroupPath(parseCgroupName(path, 'cgroupfs'), 'systemd'),
  expected: (request) => onCgroupV2(request, new Set(['2MB', '1GB'])),
};

let root = '';
/** Every machine has a folder of its own: the pods are the same ones. */
function inItsFolder(): void {
  before(async () => {
    root = await mkdtemp(join(tmpdir(), 'kts-golden-'));
    await writeFile(join(root, 'resolv.conf'), 'nameserver 192.0.2.1\n');
    await writeFile(join(root, 'hosts'), '127.0.0.1 localhost\n');
  });
  after(() => rm(root, { recursive: true, force: true }));
}

class Run {
  #drawn = 0;
  /** Never the same number twice in a row: names are made of them. */
  readonly clock = new ManualClock(undefined, () => (this.#drawn++ % 251) / 251);
  readonly events: SeenEvent[] = [];
  readonly runtime: ScriptedRuntime;
  readonly pods: PodRuntime;
  readonly signal = new AbortController().signal;
  readonly writes: [string, number][] = [];
  livenessFails = false;
  readonly machine: Machine;

  constructor(name: string, seen: Recording, machine: Machine) {
    this.machine = machine;
    const podIp = seen.podIp ?? '10.89.3.99';
    this.runtime = new ScriptedRuntime({ podIp, ...SCENARIOS[name]?.script }, this.clock);
    this.pods = new PodRuntime(
      {
        cri: this.runtime.cri,
        images: { ensure: (r) => this.#ensure(r.pod, r.image, r.fieldPath) },
        volumes: mountsFromSpec(root, seen.pods.start),
        resources: {
          cgroupParentOf: (pod) => machine.parentOf(cgroupParent(pod)),
          resize: fakeResizeRecords(this.writes),
        },
        remover: removerOn(this.runtime.cri, root),
        cluster: fakeCluster(seen.calls.some((c) => JSON.stringify(c.request).includes('MY_SVC_'))),
        events: recordingEvents(this.events),
        infra: fakeInfra(this.clock, root),
      },
      { ...facts(root), cgroupVersion: machine.cgroupVersion },
    );
  }

  async #ensure(pod: Pod, image: string, fieldPath: string): Promise<{ imageRef: string }> {
    const reason = NO_IMAGE[image];
    if (reason !== undefined) throw new ContainerStartError(reason, `no ${image}`);
    const message = `Container image "${image}" already present on machine and can be accessed by the pod`;
    this.events.push({ pod, type: 'Normal', reason: 'Pulled', message, fieldPath });
    return { imageRef: IMAGE_REF };
  }

  sync(pod: Pod): Promise<PodSyncResult> {
    const probes: ProbeResults = {
      liveness: (id) => (this.livenessFails && id === 'container-1' ? 'failure' : 'success'),
      startup: () => 'success',
    };
    return this.#settled(
      this.pods.syncPod({ pod, snapshot: this.snapshot(pod), pullSecrets: [], probes }, this.signal),
    );
  }

  kill(pod: Pod): Promise<void> {
    const deleted = {
      ...pod,
      metadata: { ...pod.metadata, deletionGracePeriodSeconds: pod.spec.terminationGracePeriodSeconds ?? 30 },
    };
    return this.#settled(this.pods.killPod({ pod: deleted, snapshot: this.snapshot(pod) }, this.signal));
  }

  snapshot(pod: Pod): ReturnType<ScriptedRuntime['snapshot']> {
    return this.runtime.snapshot(uidOf(pod), pod.metadata.name, namespaceOf(pod));
  }

  /** Lets time pass until the work is done. */
  async #settled<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settled = work.finally(() => (done = true));
    for (let i = 0; i < 10_000 && !done; i++) {
      if (this.clock.pending > 0) await this.clock.advance(1);
      else await new Promise<void>((resolve) => setImmediate(resolve));
    }
    return settled;
  }

  /** Syncs until nothing changes or enough was started. */
  async untilQuiet(pod: Pod, starts = Infinity): Promise<void> {
    const first = pod.spec.containers[0]?.name ?? '';
    for (let i = 0; i < 20 && this.runtime.startsOf(first) < starts; i++) {
      const before = this.runtime.calls.length;
      const result = await this.sync(pod);
      const quiet = this.runtime.calls.length === before || this.runtime.calls.at(-1)?.call === 'StopPodSandbox';
      if (starts === Infinity && quiet) return;
      if (result.retryAt !== undefined) await this.clock.advance(result.retryAt - this.clock.monotonic());
    }
  }
}

const cgroupParent = (pod: Pod): string => {
  const { requests, limits } = pod.spec.containers[0]?.resources ?? {};
  const guaranteed = limits !== undefined && JSON.stringify(requests) === JSON.stringify(limits);
  const level = guaranteed ? '' : limits === undefined && requests === undefined ? '/besteffort' : '/burstable';
  return `/kubepods${level}/pod${pod.metadata.uid ?? ''}`;
};

/** Paths as on a usual node, random file names fixed, variables sorted. */
function normalised(call: string, request: unknown): unknown {
  const wire = onTheWire(call, request) as { config?: { envs?: { key: string }[] } };
  wire.config?.envs?.sort((a, b) => (a.key < b.key ? -1 : 1));
  sortOptions(wire);
  const text = JSON.stringify(wire)
    .replaceAll(`${root}/logs`, '/var/log/pods')
    .replaceAll(root, '/var/lib/kubelet')
    .replace(/(\/containers\/[^/"]+\/)[0-9a-f]{8}"/g, '$1LOG"');
  return JSON.parse(text);
}

/** The order of resolver options is not defined. */
function sortOptions(value: unknown): void {
  if (typeof value !== 'object' || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (key === 'dnsConfig' && inner !== undefined) (inner as { options: string[] }).options.sort();
    else sortOptions(inner);
  }
}

const recorded = (seen: Recording, { expected }: Machine): { call: string; request: unknown }[] =>
  seen.calls
    .filter((c) => c.call !== 'PullImage')
    .map((c) => {
      const request = recordedRequest(c) as { config?: { envs?: { key: string }[] } };
      request.config?.envs?.sort((a, b) => (a.key < b.key ? -1 : 1));
      sortOptions(request);
      return { call: c.call, request: expected(JSON.parse(JSON.stringify(request))) };
    });

const OURS = ['Created', 'Started', 'Failed', 'BackOff', 'Killing', 'FailedPostStartHook', 'Pulled'];
const eventKeys = (
  events: readonly { type: string; reason: string; message: string; fieldPath?: string }[],
): string[] => [
  ...new Set(
    events
      .filter((e) => OURS.includes(e.reason))
      .filter((e) => !/pulling image|Failed to pull|ImagePullBackOff/.test(e.message))
      .map((e) => [e.type, e.reason, e.message, e.fieldPath].join(' | ')),
  ),
];

for (const machine of [V1, V2])
  describe(`recorded scenarios on ${machine.name}`, () => {
    inItsFolder();
    for (const name of scenarioNames().filter((n) => n !== 'debug-and-resize'))
      it(`${name}: same requests and events`, async () => {
        const seen = recording(name);
        const pod = seen.pods.start;
        const run = new Run(name, seen, machine);
        await run.untilQuiet(pod, SCENARIOS[name]?.starts);
        if (SCENARIOS[name]?.livenessFailsOnce === true) {
          run.livenessFails = true;
          await run.untilQuiet(pod);
        }
        // The sync after an exit stops a finished pod by itself; others are stopped by their deletion.
        if (!run.runtime.calls.some((c) => c.call === 'StopPodSandbox')) await run.kill(pod);
        compare(run, seen);
      });

    it('debug-and-resize: same requests and events', async () => {
      const seen = recording('debug-and-resize');
      const { start, cpu, memory } = seen.pods;
      const { ephemeralContainers: _, ...plain } = start.spec;
      const run = new Run('debug-and-resize', seen, machine);
      for (const pod of [{ ...start, spec: plain }, start, cpu, memory]) {
        assert.ok(pod !== undefined);
        await run.untilQuiet(pod);
      }
      await run.kill(memory ?? start);
      assert.deepEqual(run.writes, [
        ['cpuQuota', 30_000],
        ['cpuShares', 153],
        ['memoryLimitBytes', 100_663_296],
      ]);
      // The debug container has ended by itself by the time the pod is deleted.
      const calls = run.runtime.calls.filter(
        (c) => c.request['containerId'] !== 'container-2' || c.call !== 'StopContainer',
      );
      run.runtime.calls.splice(0, Infinity, ...calls);
      const events = run.events.filter((e) => e.message !== 'Stopping container dbg');
      run.events.splice(0, Infinity, ...events);
      compare(run, seen);
    });
  });

describe('recorded files', () => {
  inItsFolder();
  it('writes the hosts file that was seen', async () => {
    const seen = recording('names-dns');
    const run = new Run('names-dns', seen, V1);
    await run.untilQuiet(seen.pods.start);
    const text = await readFile(join(root, 'pods', seen.pods.start.metadata.uid ?? '', 'etc-hosts'), 'utf8');
    assert.match(
      text,
      /\n10\.89\.3\.84\tcustom\.sub\.golden\.svc\.cluster\.local\tcustom\n\n# Entries added by HostAliases\.\n10\.1\.2\.3\tfoo\.local\tbar\.local\n$/,
    );
  });
});

function compare(run: Run, seen: Recording): void {
  const wanted = recorded(seen, run.machine);
  const ours = run.runtime.calls.map(({ call, request }) => ({ call, request: normalised(call, request) }));
  assert.deepEqual(
    ours.map((c) => c.call),
    wanted.map((c) => c.call),
  );
  for (const [i, call] of wanted.entries()) assert.deepEqual(ours[i], call, `call ${i}: ${call.call}`);
  assert.deepEqual(eventKeys(run.events), eventKeys(seen.events));
}
