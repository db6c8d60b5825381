// The golden comparison on a whole node with cgroup v2 and systemd; golden/cgroup-v2.ts and
// golden-differences.ts name what differs.
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { inspect, isDeepStrictEqual } from 'node:util';
import { CriProxy } from '../faults/cri-proxy.ts';
import { onCgroupV2 } from '../golden/cgroup-v2.ts';
import { assertSameCalls, assertSameEvents } from '../golden/compare.ts';
import { drive, ELSEWHERE, endState, watchStatuses } from '../golden/drive.ts';
import { createGoldenNamespace } from '../golden/namespace.ts';
import { CallLedger, normalisedStatus } from '../golden/observed.ts';
import { recording, scenarioNames } from '../golden/recording.ts';
import { afterSlowHooks, asTold, onSmallMachine, patient, TOO_LARGE } from './golden-differences.ts';
import type { GuestNode } from './guest-node.ts';

/** How many times longer everything may take under emulation. */
const PATIENCE = 8;
/** Pods at a time: more would make a slow machine reorder what was recorded seconds apart. */
const AT_ONCE = 3;
const PLACES = { rootDir: '/var/lib/kubelet', podLogsDir: '/var/log/pods', cgroupRoot: '/none' };

const PAGE_SIZES: Readonly<Record<string, string>> = { 'hugepages-2048kB': '2MB', 'hugepages-1048576kB': '1GB' };
const pageSizes = (): ReadonlySet<string | undefined> =>
  new Set(readdirSync('/sys/kernel/mm/hugepages').map((name) => PAGE_SIZES[name]));

export const goldenNames = (): readonly string[] =>
  scenarioNames().filter((name) => !ELSEWHERE.has(name) && !TOO_LARGE.has(name));

/** Of all statuses the one with the fewest lines that differ, and those. */
function assertSeen(statuses: readonly unknown[], want: unknown): void {
  if (statuses.some((status) => isDeepStrictEqual(status, want))) return;
  const lines = (status: unknown): readonly string[] => inspect(status, { sorted: true, depth: null }).split('\n');
  const without = (a: readonly string[], b: readonly string[]): readonly string[] => a.filter((l) => !b.includes(l));
  const wanted = lines(want);
  const differences = statuses.map((status) => [
    ...without(lines(status), wanted).map((line) => `+ ${line}`),
    ...without(wanted, lines(status)).map((line) => `- ${line}`),
  ]);
  const [nearest = []] = differences.toSorted((a, b) => a.length - b.length);
  assert.fail(`no status of ${statuses.length} is as recorded; the nearest:\n${nearest.join('\n')}`);
}

/** One check per scenario. */
export async function compareGolden(
  node: GuestNode,
  release: string,
  report: (name: string, run: () => Promise<void>) => Promise<void>,
): Promise<void> {
  const ledger = new CallLedger();
  const cri = new CriProxy('/run/containerd/containerd.sock');
  await cri.start();
  cri.observe = (call) => ledger.add(call);
  const config = `containerRuntimeEndpoint: ${cri.endpoint}\nruntimeRequestTimeout: 10m`;
  await report('the node is ready', () => node.restart(config, '--not-ready-condition=false'));
  await createGoldenNamespace(node);
  const statuses = new Map<string, unknown[]>();
  await watchStatuses(node.client, statuses, new AbortController().signal);
  const one = async (name: string): Promise<void> => {
    const scenario = recording(name);
    const want = asTold(normalisedStatus(endState(name).status), release);
    const watched = { client: node.client, ledger, statuses, patience: PATIENCE };
    const outcome = await drive(watched, patient(scenario), want);
    assertSeen(outcome.statuses, want);
    assertSameCalls(PLACES, ledger, outcome.pod, scenario, (request, got) =>
      onCgroupV2(onSmallMachine(afterSlowHooks(request, got), scenario), pageSizes()),
    );
    assertSameEvents(outcome.events, asTold(scenario.events, release));
  };
  const queue = [...goldenNames()];
  const worker = async (): Promise<void> => {
    for (let name = queue.shift(); name !== undefined; name = queue.shift()) {
      const own = name;
      await report(`golden: ${own}`, () => one(own));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}
