// One recorded pod on a whole node: created, waited for until it looks as recorded, deleted.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Pod } from '../../src/core/pod.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { EVENTS, PODS } from '../../src/kube/resources.ts';
import { Reflector } from '../../src/kube/reflector.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { silentLogger } from '../../src/lib/logger.ts';
import { HANG_MS, until } from '../harness/until.ts';
import { normalisedStatus, type CallLedger } from './observed.ts';
import type { Recording } from './recording.ts';

const never = new AbortController().signal;
/** Driven by other means than "create, wait, delete". */
export const ELSEWHERE: ReadonlySet<string> = new Set(['static', 'debug-and-resize']);

export type Outcome = { pod: Pod; statuses: readonly unknown[]; events: readonly KubeEvent[] };
type EndState = { readonly status: Record<string, unknown> };

export const endState = (name: string): EndState =>
  JSON.parse(readFileSync(join(import.meta.dirname, 'statuses', `${name}.json`), 'utf8')) as EndState;

/** Everything up to the first call that the deletion caused. */
const STARTING = new Set(['RunPodSandbox', 'CreateContainer', 'StartContainer', 'PullImage']);
const startsIn = (calls: readonly { call: string }[]): number => calls.filter((c) => STARTING.has(c.call)).length;
const stopsIn = (calls: readonly { call: string }[]): number => calls.filter((c) => c.call === 'StopContainer').length;
/** What the deletion of the pod makes the kubelet say. */
const isOfDeletion = ({ message = '' }: { message?: string }): boolean => message.startsWith('Stopping container ');

async function createPod(client: KubeClient, recorded: Pod): Promise<Pod> {
  const {
    'kubernetes.io/config.seen': _s,
    'kubernetes.io/config.source': _c,
    ...annotations
  } = recorded.metadata.annotations ?? {};
  const { name, namespace = 'golden', labels } = recorded.metadata;
  const metadata = { name, namespace, annotations, ...(labels === undefined ? {} : { labels }) };
  return client.create(
    PODS,
    { namespace },
    { apiVersion: 'v1', kind: 'Pod', metadata, spec: recorded.spec } as Pod,
    never,
  );
}

/** Every status the API server shows, in order. */
export function watchStatuses(
  client: KubeClient,
  into: Map<string, unknown[]>,
  signal: AbortSignal,
): Promise<void> {
  const deps = { client, clock: systemClock, log: silentLogger };
  const reflector = new Reflector<Pod>(deps, { name: 'test', resource: PODS, namespace: 'golden' });
  reflector.subscribe((changes) => {
    for (const { uid, after: pod } of changes)
      if (pod !== undefined) into.set(uid, [...(into.get(uid) ?? []), normalisedStatus(pod.status)]);
  });
  void reflector.run(signal);
  return reflector.whenSynced(signal);
}

export type Watched = {
  readonly client: KubeClient;
  readonly ledger: CallLedger;
  readonly statuses: ReadonlyMap<string, readonly unknown[]>;
  /** How many times longer everything may take: under emulation. */
  readonly patience?: number;
};

export async function drive(
  { client, ledger, statuses, patience = 1 }: Watched,
  scenario: Recording,
  recorded: unknown = normalisedStatus(endState(scenario.scenario).status),
): Promise<Outcome> {
  const pod = await createPod(client, scenario.pods.start);
  const { name, namespace, uid = '' } = { namespace: 'golden', ...pod.metadata };
  const read = (): Promise<Pod> => client.get(PODS, { namespace, name }, never);
  const boundMs = HANG_MS * patience;
  await until(
    `${name} has made its recorded starts`,
    () => startsIn(ledger.of(uid)) >= startsIn(scenario.calls),
    boundMs,
  ).catch(() => undefined);
  const seen = (): boolean =>
    (statuses.get(uid) ?? []).some((status) => isDeepStrictEqual(status, recorded));
  await until(`${name} looks as recorded`, seen, boundMs).catch(() => undefined);
  const reported = async (): Promise<readonly KubeEvent[]> =>
    (await client.list(EVENTS, { namespace, query: { fieldSelector: `involvedObject.uid=${uid}` } }, never)).items;
  // Events are sent behind everything else. What was recorded before the deletion is to be there before ours, too.
  const hasTold = (count: number): Promise<unknown> =>
    until(`${name} has told ${count} events`, async () => (await reported()).length >= count, boundMs).catch(
      () => undefined,
    );
  const earlier = scenario.events.filter((event) => !isOfDeletion(event));
  await hasTold(earlier.length);
  const kills = earlier.filter(({ reason }) => reason === 'Killing').length;
  await until(`${name} has stopped ${kills} containers`, () => stopsIn(ledger.of(uid)) >= kills, boundMs);
  const last = await read();
  await client.delete(PODS, { namespace, name }, {}, never);
  await until(
    `${name} is gone`,
    async () =>
      read().then(
        () => false,
        () => true,
      ),
    boundMs,
  );
  await hasTold(scenario.events.length);
  // Without a grace period the pod is gone from the API server before it is stopped.
  const compared = scenario.calls.filter(({ call }) => call !== 'ExecSync').length;
  await until(`${name} has made ${compared} calls`, () => ledger.of(uid).length >= compared, boundMs).catch(
    () => undefined,
  );
  return { pod: last, statuses: statuses.get(uid) ?? [], events: await reported() };
}
