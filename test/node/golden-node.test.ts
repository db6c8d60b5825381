// Every recorded scenario through our kubelet, for real: API server, kubelet process, containerd, cgroups, mounts,
// network. The CRI requests, the events and the status before deletion must equal what the Go kubelet did.
// runs: gate
// shows: pods: init containers, sidecars, restart rules, crash back-off, hooks, grace period, deadlines, ephemeral containers
// shows: security contexts, user namespaces, seccomp, AppArmor, SELinux, sysctls
// shows: DNS, hosts file, environment, downward API, host namespaces
// shows: volumes: `emptyDir`, `hostPath`, `configMap`, `secret`, `downwardAPI`, `projected`, `image`, sub paths
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { assertSameCalls, assertSameEvents, placesOf } from '../golden/compare.ts';
import { drive, ELSEWHERE, endState, watchStatuses, type Outcome } from '../golden/drive.ts';
import { createGoldenNamespace } from '../golden/namespace.ts';
import { CallLedger, normalisedStatus } from '../golden/observed.ts';
import { recording, scenarioNames } from '../golden/recording.ts';
import { startNode, type TestNode } from '../harness/node.ts';

const SCENARIOS = scenarioNames().filter((name) => !ELSEWHERE.has(name));

describe('golden scenarios on a whole node', () => {
  let node: TestNode;
  const ledger = new CallLedger();
  const statuses = new Map<string, unknown[]>();
  const watching = new AbortController();
  const outcomes = new Map<string, Promise<Outcome>>();

  before(async () => {
    node = await startNode({ containerd: '2.1' });
    node.cri.observe = (call) => ledger.add(call);
    await createGoldenNamespace(node);
    await watchStatuses(node.client, statuses, watching.signal);
    for (const name of SCENARIOS) {
      const outcome = drive({ client: node.client, ledger, statuses }, recording(name));
      outcome.catch(() => undefined);
      outcomes.set(name, outcome);
    }
  });

  after(async () => {
    await Promise.allSettled(outcomes.values());
    watching.abort();
    await node?.stop();
  });

  for (const name of SCENARIOS) {
    describe(name, () => {
      const outcome = async (): Promise<Outcome> => {
        const found = outcomes.get(name);
        assert.ok(found !== undefined);
        return found;
      };

      it('comes to the recorded status', async () => {
        const want = normalisedStatus(endState(name).status);
        const seen = (await outcome()).statuses;
        if (!seen.some((status) => isDeepStrictEqual(status, want))) assert.deepEqual(seen.at(-1), want);
      });

      it('makes the recorded CRI requests', async () => {
        assertSameCalls(placesOf(node), ledger, (await outcome()).pod, recording(name));
      });

      it('tells the recorded events', async () => {
        assertSameEvents((await outcome()).events, recording(name).events);
      });
    });
  }
});
