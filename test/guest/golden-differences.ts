// What differs in the guest from where the pods were recorded, besides cgroup v2 (golden/cgroup-v2.ts): other versions of the
// runtime, less memory, and emulation, under which everything takes longer. Nothing else may differ.
import { totalmem } from 'node:os';
import type { Container, Pod, Probe } from '../../src/core/pod.ts';
import { bytesOf } from '../../src/core/quantity.ts';
import type { Recording } from '../golden/recording.ts';

/** `oom_score_adj` of a container with less than a thousandth of the memory. */
const SMALLEST_SHARE = 999;

/** Asks for more than the guest's one processor and would be refused; `runtime/golden.test.ts` compares it on cgroup v2. */
export const TOO_LARGE: ReadonlySet<string> = new Set(['guaranteed']);

/** Without the seconds that are too few where a container takes as many to start; no request or status has them. */
export function patient(scenario: Recording): Recording {
  const { start } = scenario.pods;
  const probe = (own: Probe): Probe => ({ ...own, timeoutSeconds: (own.timeoutSeconds ?? 1) * 30 });
  const container = (own: Container): Container => ({
    ...own,
    ...(own.livenessProbe && { livenessProbe: probe(own.livenessProbe) }),
    ...(own.readinessProbe && { readinessProbe: probe(own.readinessProbe) }),
    ...(own.startupProbe && {
      startupProbe: { ...probe(own.startupProbe), initialDelaySeconds: 3, failureThreshold: 30 },
    }),
  });
  const { activeDeadlineSeconds: deadline, initContainers, containers, ...rest } = start.spec;
  const spec = {
    ...rest,
    containers: containers.map(container),
    ...(initContainers && { initContainers: initContainers.map(container) }),
    ...(deadline !== undefined && { activeDeadlineSeconds: deadline * 15 }),
  };
  return { ...scenario, pods: { ...scenario.pods, start: { ...start, spec } as Pod } };
}

/** The recordings were made with containerd 2.1 and runc 1.1. What other ones tell of the same. */
const TOLD_OTHERWISE: Readonly<Record<string, (key: string, value: unknown, release: string) => unknown>> = {
  'containerd 1.7 does not tell the user of a container': (key, value, release) =>
    key === 'user' && release === 'bookworm' ? undefined : value,
  'containerd 1.7 names the image that it cannot find': (_key, value, release) =>
    typeof value === 'string' && release === 'bookworm'
      ? value.replace(/(?<=image "([^"]*)": failed to resolve )image/, 'reference "$1"')
      : value,
  'containerd 1.7 asks a registry of its own machine without TLS': (_key, value, release) =>
    typeof value === 'string' && release === 'bookworm'
      ? value.replace('"https://127.0.0.1:1/', '"http://127.0.0.1:1/')
      : value,
  'containerd 1.7 adds the kind of an error, which is unknown': (_key, value, release) =>
    typeof value === 'string' && release === 'bookworm'
      ? value.replace(/(?<=OCI runtime create failed: .*)$/, ': unknown')
      : value,
  'runc 1.3 says that it was inside of the container': (_key, value) =>
    typeof value === 'string'
      ? value.replace(
          'unable to start container process: exec:',
          'unable to start container process: error during container init: exec:',
        )
      : value,
};
export const asTold = <T>(recorded: T, release: string): T =>
  JSON.parse(JSON.stringify(recorded), (key, value: unknown) =>
    Object.values(TOLD_OTHERWISE).reduce((told, change) => change(key, told, release), value),
  ) as T;

type Asked = { config?: { metadata?: { name?: string }; linux?: { resources?: { oomScoreAdj?: number } } } };
/** Burstable containers are killed in the order of their share of the memory, which is small where it was recorded. */
export function onSmallMachine(recorded: unknown, { pods }: Recording): unknown {
  const request = structuredClone(recorded) as Asked;
  const { containers, initContainers = [] } = pods.start.spec;
  const own = [...containers, ...initContainers].find(({ name }) => name === request.config?.metadata?.name);
  const memory = own?.resources?.requests?.['memory'];
  const resources = request.config?.linux?.resources;
  if (resources?.oomScoreAdj === SMALLEST_SHARE && memory !== undefined)
    resources.oomScoreAdj = 1000 - Math.floor((1000 * bytesOf(memory)) / totalmem());
  return request;
}

type Stop = { readonly timeout?: number };
/** What hooks and containers stopped before leave of the grace period: less under emulation, where they take longer. */
export function afterSlowHooks(recorded: unknown, got: unknown): unknown {
  const [{ timeout: want = 0 }, { timeout = 0 }] = [recorded as Stop, (got ?? {}) as Stop];
  return want > timeout && timeout > 1 ? { ...(recorded as Stop), timeout } : recorded;
}
