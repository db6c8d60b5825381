// Every recorded scenario through our kubelet, for real: API server, kubelet process, containerd, cgroups, mounts,
// network. The CRI requests, the events and the status before deletion must equal what the Go kubelet did.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Pod } from '../../src/core/pod.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { assertSameCalls, assertSameEvents } from '../golden/compare.ts';
import { createGoldenNamespace } from '../golden/namespace.ts';
import { CallLedger, normalisedStatus } from '../golden/observed.ts';
import { recording, scenarioNames, type Recording } from '../golden/recording.ts';
import { startNode, type TestNode } from '../harness/node.ts';
import { until } from '../harness/until.ts';

const FOLDER = join(import.meta.dirname, '..', 'golden');
const never = new AbortController().signal;
/** Driven by other means than "create, wait, delete". */
const ELSEWHERE = new Set(['static', 'debug-and-resize']);
const SCENARIOS = scenarioNames().filter((name) => !ELSEWHERE.has(name));

type Outcome = { pod: Pod; statuses: readonly unknown[]; events: readonly KubeEvent[] };
type EndState = { readonly status: Record<string, unknown> };

const endState = (name: string): EndState =>
  JSON.parse(readFileSync(join(FOLDER, 'statuses', `${name}.json`), 'utf8')) as EndState;

/** Everything up to the first call that the deletion caused. */
const STARTING = new Set(['RunPodSandbox', 'CreateContainer', 'StartContainer', 'PullImage']);
const startsIn = (calls: readonly { call: string }[]): number => calls.filter((c) => STARTING.has(c.call)).length;
const stopsIn = (calls: readonly { call: string }[]): number => calls.filter((c) => c.call === 'StopContainer').length;
/** What the deletion of the pod makes the kubelet say. */
const isOfDeletion = ({ message = '' }: { message?: string }): boolean => message.startsWith('Stopping container ');

async function createPod(node: TestNode, recorded: Pod): Promise<Pod> {
  const {
    'kubernetes.io/config.seen': _s,
    'kubernetes.io/config.source': _c,
    ...annotations
  } = recorded.metadata.annotations ?? {};
  const { name, namespace = 'golden', labels } = recorded.metadata;
  const metadata = { name, namespace, annotations, ...(labels === undefined ? {} : { labels }) };
  return node.client.create(
    PODS,
    { namespace },
    { apiVersion: 'v1', kind: 'Pod', metadata, spec: recorded.spec } as Pod,
    never,
  );
}

/** Every status the API server shows, in order. */
function watchStatuses(node: TestNode, into: Map<string, unknown[]>, signal: AbortSignal): Promise<void> {
  const deps = { client: node.client, clock: systemClock, log: silentLogger };
  const reflector = new Reflector<Pod>(deps, { name: 'test', resource: PODS, namespace: 'golden' });
  reflector.subscribe((changes) => {
    for (const { uid, after: pod } of changes)
      if (pod !== undefined) into.set(uid, [...(into.get(uid) ?? []), normalisedStatus(pod.status)]);
  });
  void reflector.run(signal);
  return reflector.whenSynced(signal);
}

async function drive(
  node: TestNode,
  ledger: CallLedger,
  statuses: Map<string, unknown[]>,
  scenario: Recording,
): Promise<Outcome> {
  const pod = await createPod(node, scenario.pods.start);
  const { name, namespace, uid = '' } = { namespace: 'golden', ...pod.metadata };
  const read = (): Promise<Pod> => node.client.get(PODS, { namespace, name }, never);
  await until(
    `${name} has made its recorded starts`,
    () => startsIn(ledger.of(uid)) >= startsIn(scenario.calls),
    75_000,
  ).catch(() => undefined);
  const seen = (): boolean =>
    (statuses.get(uid) ?? []).some((status) =>
      isDeepStrictEqual(status, normalisedStatus(endState(scenario.scenario).status)),
    );
  await until(`${name} looks as recorded`, seen, 15_000).catch(() => undefined);
  const reported = async (): Promise<readonly KubeEvent[]> =>
    (await node.client.list(EVENTS, { namespace, query: { fieldSelector: `involvedObject.uid=${uid}` } }, never)).items;
  // Events are sent behind everything else. What was recorded before the deletion is to be there before ours, too.
  const hasTold = (count: number): Promise<unknown> =>
    until(`${name} has told ${count} events`, async () => (await reported()).length >= count, 5000).catch(
      () => undefined,
    );
  const earlier = scenario.events.filter((event) => !isOfDeletion(event));
  await hasTold(earlier.length);
  const kills = earlier.filter(({ reason }) => reason === 'Killing').length;
  await until(`${name} has stopped ${kills} containers`, () => stopsIn(ledger.of(uid)) >= kills, 15_000);
  const last = await read();
  await node.client.delete(PODS, { namespace, name }, {}, never);
  await until(
    `${name} is gone`,
    async () =>
      read().then(
        () => false,
        () => true,
      ),
    45_000,
  );
  await hasTold(scenario.events.length);
  return { pod: last, statuses: statuses.get(uid) ?? [], events: await reported() };
}

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
    await watchStatuses(node, statuses, watching.signal);
    for (const name of SCENARIOS) {
      const outcome = drive(node, ledger, statuses, recording(name));
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
        assertSameCalls(node, ledger, (await outcome()).pod, recording(name));
      });

      it('tells the recorded events', async () => {
        assertSameEvents((await outcome()).events, recording(name).events);
      });
    });
  }
});
