// Random pods with random runtime states: planning and config building never throw anything but a refusal with a
// reason, and what they make is a sensible plan and an encodable request.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import fc from 'fast-check';
import { applyPodDefaults } from '../core/pod-defaults.ts';
import { containersOf, isSidecar, type Container, type Pod } from '../core/pod.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { formatFieldError } from '../core/validation/field-error.ts';
import { readPod } from '../core/validation/pod-shape.ts';
import { validatePod } from '../core/validation/pod.ts';
import { validateEphemeralContainersUpdate } from '../core/validation/update.ts';
import { CreateContainerRequest, RunPodSandboxRequest, type PodSandboxConfig } from '../cri/gen/cri.ts';
import { isFault, messageOf } from '../lib/errors.ts';
import { decode, encode, type Partially } from '../lib/proto/codec.ts';
import { facts, mountsFromSpec } from '../../test/golden/fixture.ts';
import { containerProblems, sandboxProblems } from '../../test/golden/legal-requests.ts';
import { randomPod, randomSnapshot } from '../../test/golden/random-pods.ts';
import { debugContainers, soundPod } from '../../test/golden/sound-pods.ts';
import { containerConfig } from './container-config.ts';
import { podDns } from './dns.ts';
import { containerEnv } from './env.ts';
import { subPathOf, volumeMounts } from './mounts.ts';
import type { UserNamespaceMapping } from './namespaces.ts';
import { planPod } from './plan.ts';
import type { PodPlan, ProbeResult } from './plan-steps.ts';
import { sandboxConfig } from './sandbox-config.ts';
import { randomRuns } from '../../test/harness/random-runs.ts';

const RUNS = randomRuns(5000);
const FACTS = facts('/r');
const ALLOCATABLE = { cpu: '2', memory: '4Gi' };
const USERNS = {
  uids: [{ hostId: 65_536, containerId: 0, length: 65_536 }],
  gids: [{ hostId: 65_536, containerId: 0, length: 65_536 }],
};

/** The value, or undefined for a refusal; any other failure is a bug. */
function refusable<T>(make: () => T, only = /^/): T | undefined {
  try {
    return make();
  } catch (err) {
    assert.ok(isFault(err, 'invalid', 'notFound'), `unexpected failure: ${String(err)}`);
    assert.match(messageOf(err), only);
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

type Configs = { readonly pod: Pod; readonly userns: UserNamespaceMapping | undefined; readonly valid: boolean };

function checkSandbox({ pod, userns, valid }: Configs): Partially<PodSandboxConfig> | undefined {
  const dns = podDns(pod, {
    clusterDns: ['10.96.0.10'],
    clusterDomain: 'cluster.local',
    hostResolvConf: 'search x',
    nodeIps: [],
  });
  const config = refusable(() =>
    sandboxConfig({ pod, attempt: 1, dns: dns.config, cgroupParent: '/c', extraGroups: [], userns }, FACTS),
  );
  assert.ok(config !== undefined || !valid, 'a valid pod has a sandbox');
  if (config === undefined) return undefined;
  const sandbox = encodable(RunPodSandboxRequest, { config });
  if (valid) assert.deepEqual(sandboxProblems(sandbox.config), []);
  assert.ok((sandbox.config?.dnsConfig?.servers.length ?? 0) <= 3);
  return config;
}

const CONF = { metadata: { name: 'conf' }, data: { color: 'blue', 'bad-name': 'x' } };
const SEC = { metadata: { name: 'sec' }, data: { password: 'cw==' } };
const OBJECTS = {
  configMaps: new Map([['conf', CONF]]),
  secrets: new Map([['sec', SEC]]),
  files: new Map(),
  services: [],
};

function madeConfig({ pod, userns }: Configs, container: Container, targetId: string | undefined) {
  const volumes = mountsFromSpec('/r', pod).mountsOf('uid-1' as never);
  const env = containerEnv(pod, container, OBJECTS, {
    podIPs: ['10.0.0.9'],
    hostIPs: [],
    allocatable: ALLOCATABLE,
    ipFamily: 4,
  });
  const images = new Map(
    (pod.spec.volumes ?? []).flatMap((v) => (v.image === undefined ? [] : [[v.name, { image: 'sha' }] as const])),
  );
  const subPaths = new Map(
    (container.volumeMounts ?? []).flatMap((mount, i) => {
      const path = subPathOf(mount, (name) => env.get(name));
      if (path === undefined) return [];
      return [[i, images.has(mount.name) ? path : `/r/sub/${i}`] as const];
    }),
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
      volumeMounts: volumeMounts(
        { container, volumes, subPaths, images, userns },
        { selinux: true, recursiveReadOnly: userns === undefined },
      ),
      hostsFile: '/h',
      terminationLog: '/t',
      additions: {},
      userns,
      ...(targetId === undefined ? {} : { targetId }),
    },
    { ...FACTS, cgroupVersion: userns === undefined ? 1 : 2, stopSignals: true },
  );
}

/** Of a valid pod nothing may be refused but what only a look at its image or its variables could tell. */
const REFUSALS = /runAsNonRoot|non-root policy|missing value for/;

function checkContainers(at: Configs, sandbox: Partially<PodSandboxConfig>): number {
  let made = 0;
  for (const { container, kind } of containersOf(at.pod)) {
    const target = kind === 'ephemeral' && container.name !== 'e0' ? 't'.repeat(64) : undefined;
    const config = refusable(() => madeConfig(at, container, target), at.valid ? REFUSALS : undefined);
    if (config === undefined) continue;
    const request = encodable(CreateContainerRequest, {
      podSandboxId: 's',
      config,
      sandboxConfig: sandbox,
    });
    if (at.valid) assert.deepEqual(containerProblems(request), []);
    const linux = request.config?.linux?.resources;
    assert.ok(linux !== undefined && linux.cpuShares >= 2 && linux.cpuShares <= 262_144);
    assert.ok(linux.oomScoreAdj >= -997 && linux.oomScoreAdj <= 1000);
    assert.ok(request.config?.mounts.every((m) => m.containerPath.startsWith('/')));
    assert.equal(
      request.config?.mounts.filter((m) => m.containerPath === '/etc/hosts' && m.hostPath === '/h').length,
      (container.volumeMounts ?? []).some((m) => m.mountPath === '/etc/hosts') ? 0 : 1,
    );
    made++;
  }
  return made;
}

/** As a manifest comes in; undefined when it is refused, with every reason told. */
function admitted(raw: Pod): Pod | undefined {
  const { ephemeralContainers, ...spec } = raw.spec;
  const read = readPod(JSON.parse(JSON.stringify({ ...raw, spec })));
  const pod = read.object === undefined ? undefined : applyPodDefaults(read.object);
  const errors = pod === undefined ? read.errors : validatePod(pod);
  for (const error of errors) assert.equal(typeof formatFieldError(error), 'string');
  if (pod === undefined || errors.length > 0) return undefined;
  if (ephemeralContainers === undefined) return pod;
  const debugged = applyPodDefaults({ ...pod, spec: { ...pod.spec, ephemeralContainers } });
  return validateEphemeralContainersUpdate(debugged, pod).length > 0 ? pod : debugged;
}

const result = fc.option(fc.constantFrom<ProbeResult>('success', 'failure', 'unknown'), { nil: undefined });

const debugged = fc
  .tuple(soundPod, debugContainers)
  .map(([pod, ephemeralContainers]): Pod => ({ ...pod, spec: { ...pod.spec, ephemeralContainers } }));

it(`${RUNS} random pods through validation, planning and config building: no exception, no illegal request`, (t) => {
  const seen = { valid: 0, containers: 0 };
  const one = (raw: Pod, snapshot: PodSnapshot, results: readonly (ProbeResult | undefined)[], flag: boolean): void => {
    const valid = admitted(raw);
    // One that a laxer API server let through is planned and built all the same.
    const pod = valid ?? raw;
    const inForce = new Map(pod.spec.containers.map((c) => [c.name, flag ? {} : (c.resources ?? {})]));
    const actuated = { containers: inForce };
    const probes = { liveness: () => results[0], startup: () => results[1] };
    const restartingAll = flag && snapshot.containers.length === 1;
    checkPlan(pod, snapshot, planPod({ pod, snapshot, probes, actuated, restartingAll }));
    const owned = valid === undefined ? flag : pod.spec.hostUsers === false;
    const at = { pod, userns: owned ? USERNS : undefined, valid: valid !== undefined };
    const config = checkSandbox(at);
    if (config === undefined) return;
    const containers = checkContainers(at, config);
    if (valid === undefined) return;
    seen.valid++;
    seen.containers += containers;
  };
  const property = fc.property(
    fc
      .oneof({ weight: 3, arbitrary: debugged }, { weight: 1, arbitrary: randomPod })
      .chain((pod) => fc.tuple(fc.constant(pod), randomSnapshot(pod), fc.tuple(result, result), fc.boolean())),
    ([pod, snapshot, results, flag]) => one(pod, snapshot, results, flag),
  );
  fc.assert(property, { numRuns: RUNS, seed: 20_260_101 });
  assert.ok(seen.valid > RUNS / 2, `only ${seen.valid} pods were valid: the generator proves too little`);
  t.diagnostic(JSON.stringify(seen));
});
