// 5,000 random pods with random runtime states: planning and config building never throw anything but a refusal with a
// reason, and what they make is a sensible plan and an encodable request.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { CreateContainerRequest, RunPodSandboxRequest } from '../cri/gen/cri.ts';
import { containersOf, isSidecar, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { isFault } from '../lib/errors.ts';
import { decode, encode, type Partially } from '../lib/proto/codec.ts';
import { facts, mountsFromSpec } from '../../test/golden/fixture.ts';
import { randomPod, randomSnapshot } from '../../test/golden/random-pods.ts';
import { containerConfig } from './container-config.ts';
import { podDns } from './dns.ts';
import { containerEnv } from './env.ts';
import { volumeMounts } from './mounts.ts';
import { planPod } from './plan.ts';
import type { PodPlan, ProbeResult } from './plan-steps.ts';
import { sandboxConfig } from './sandbox-config.ts';

const RUNS = 5000;
const FACTS = facts('/r');
const USERNS = {
  uids: [{ hostId: 65_536, containerId: 0, length: 65_536 }],
  gids: [{ hostId: 65_536, containerId: 0, length: 65_536 }],
};

/** The value, or undefined for a refusal; any other failure is a bug. */
function refusable<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (err) {
    assert.ok(isFault(err, 'invalid', 'notFound'), `unexpected failure: ${String(err)}`);
    return undefined;
  }
}

function encodable<T>(type: Parameters<typeof encode<T>>[0], request: Partially<T>): T {
  return decode(type, encode(type, request as T));
}

function checkPlan(pod: Pod, snapshot: PodSnapshot, { steps, sandboxId }: PodPlan): void {
  const starts = steps.filter((s) => s.do === 'startContainer');
  const names = [...containersOf(pod)].map((entry) => entry.container.name);
  assert.equal(new Set(starts.map((s) => s.name)).size, starts.length, 'nothing starts twice');
  assert.ok(
    starts.every((s) => names.includes(s.name)),
    'only what the pod has starts',
  );
  const regular = (pod.spec.initContainers ?? []).filter((c) => !isSidecar(c)).map((c) => c.name);
  assert.ok(starts.filter((s) => regular.includes(s.name)).length <= 1, 'one init container at a time');
  const creates = steps.filter((s) => s.do === 'createSandbox');
  assert.ok(starts.length === 0 || creates.length === 1 || sandboxId !== undefined, 'containers start in a sandbox');
  if (steps.some((s) => s.do === 'killPod') && creates.length === 0)
    assert.equal(steps.length, 1, 'a killed pod rests');
  for (const step of steps) {
    if (step.do !== 'killContainer') continue;
    const state = snapshot.containers.find((c) => c.id === step.id)?.state;
    assert.ok(state === 'running' || state === 'unknown', 'only what may run is killed');
  }
  const main = pod.spec.containers.map((c) => c.name);
  const initialising = starts.some((s) => regular.includes(s.name));
  assert.ok(!initialising || !starts.some((s) => main.includes(s.name)), 'main containers wait for init containers');
}

function checkConfigs(pod: Pod, owned: boolean): void {
  const userns = owned ? USERNS : undefined;
  const dns = podDns(pod, {
    clusterDns: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    hostResolvConf: 'search x',
    nodeIps: [],
  });
  const config = refusable(() =>
    sandboxConfig({ pod, attempt: 1, dns: dns.config, cgroupParent: '/c', extraGroups: [], userns }, FACTS),
  );
  if (config === undefined) return;
  const sandbox = encodable(RunPodSandboxRequest, { config });
  assert.ok((sandbox.config?.dnsConfig?.servers.length ?? 0) <= 3);
  const volumes = mountsFromSpec('/r', pod).mountsOf('uid-1' as never);
  for (const { container } of containersOf(pod)) {
    const made = refusable(() => {
      const env = containerEnv(
        pod,
        container,
        { configMaps: new Map(), secrets: new Map(), files: new Map(), services: [] },
        { podIPs: [], hostIPs: [], allocatable: {} },
      );
      const mounts = volumeMounts(
        { container, volumes, subPaths: new Map(), images: new Map(), userns },
        { selinux: true, recursiveReadOnly: false },
      );
      return containerConfig(
        {
          pod,
          container,
          restartCount: 3,
          imageRef: 'sha',
          imageUser: {},
          env,
          volumes,
          volumeMounts: mounts,
          hostsFile: '/h',
          terminationLog: '/t',
          additions: {},
          userns,
        },
        { ...FACTS, cgroupVersion: owned ? 2 : 1, stopSignals: true },
      );
    });
    if (made === undefined) continue;
    const request: CreateContainerRequest = encodable(CreateContainerRequest, {
      podSandboxId: 's',
      config: made,
      sandboxConfig: config,
    });
    const linux = request.config?.linux?.resources;
    assert.ok(linux !== undefined && linux.cpuShares >= 2 && linux.cpuShares <= 262_144);
    assert.ok(linux.oomScoreAdj >= -997 && linux.oomScoreAdj <= 1000);
    assert.ok(request.config?.mounts.every((m) => m.containerPath.startsWith('/')));
    assert.equal(
      request.config?.mounts.filter((m) => m.containerPath === '/etc/hosts' && m.hostPath === '/h').length,
      (container.volumeMounts ?? []).some((m) => m.mountPath === '/etc/hosts') ? 0 : 1,
    );
    assert.deepEqual(request.sandboxConfig, sandbox.config);
  }
}

const result = fc.option(fc.constantFrom<ProbeResult>('success', 'failure', 'unknown'), { nil: undefined });

it(`${RUNS} random pods: no exception, no illegal request`, () => {
  const property = fc.property(
    randomPod.chain((pod) => fc.tuple(fc.constant(pod), randomSnapshot(pod), result, result, fc.boolean())),
    ([pod, snapshot, liveness, startup, flag]) => {
      const actuated = new Map(pod.spec.containers.map((c) => [c.name, flag ? {} : (c.resources ?? {})]));
      const probes = { liveness: () => liveness, startup: () => startup };
      checkPlan(
        pod,
        snapshot,
        planPod({ pod, snapshot, probes, actuated, restartingAll: flag && snapshot.containers.length === 1 }),
      );
      checkConfigs(pod, flag);
    },
  );
  fc.assert(property, { numRuns: RUNS, seed: 20_260_101 });
});
