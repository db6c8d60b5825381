// The comparisons all golden tests on a whole node make.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import type { KubeEvent } from '../../src/core/node.ts';
import type { Pod } from '../../src/core/pod.ts';
import type { TestNode } from '../harness/node.ts';
import { normalisedCalls, tidyRecorded, type CallLedger, type Places } from './observed.ts';
import { recordedRequest, type RecordedEvent, type Recording } from './recording.ts';

export type GoldenPlaces = Omit<Places, 'recordedPodIp'>;
type WithEnv = { request: { config?: { envs?: { key: string }[] } } };

/** The service was created between two recordings: where they do not have it, it does not count. */
function withoutNewServices(got: unknown, want: unknown): unknown {
  const has = (call: unknown): boolean =>
    ((call as WithEnv).request.config?.envs ?? []).some((e) => e.key === 'MY_SVC_PORT');
  if (got === undefined || !has(got) || has(want)) return got;
  const call = structuredClone(got) as WithEnv;
  const { config } = call.request;
  if (config !== undefined) config.envs = (config.envs ?? []).filter((e) => !e.key.startsWith('MY_SVC_'));
  return call;
}

export const placesOf = (node: Pick<TestNode, 'dir' | 'cgroupRoot'>): GoldenPlaces => ({
  rootDir: join(node.dir, 'kubelet'),
  podLogsDir: join(node.dir, 'pod-logs'),
  cgroupRoot: node.cgroupRoot,
});

/** `expected` makes of a recorded request what it is on another kind of machine, where ours is `got`. */
export function assertSameCalls(
  places: GoldenPlaces,
  ledger: CallLedger,
  pod: Pod,
  scenario: Recording,
  expected: (request: unknown, got: unknown) => unknown = (request) => request,
): void {
  const all = { ...places, recordedPodIp: scenario.podIp ?? '' };
  const got = normalisedCalls(ledger.of(pod.metadata.uid ?? ''), pod, scenario.pods.start, all);
  const want = scenario.calls
    .filter((c) => c.call !== 'ExecSync')
    .map((c, i) => ({
      call: c.call,
      request: expected(tidyRecorded(recordedRequest(c)), got[i]?.request),
      failed: c.error !== undefined,
    }));
  assert.deepEqual(
    got.map((c) => c.call),
    want.map((c) => c.call),
  );
  for (const [i, call] of want.entries())
    assert.deepEqual(withoutNewServices(got[i], call), call, `call ${i}: ${call.call}`);
}

const eventLine = (e: Partial<RecordedEvent>): string =>
  `${e.type} ${e.reason} ${e.fieldPath ?? '-'} ${e.message}`.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<uid>');

/** A probe that comes before the server listens, or between its end and the news of it, finds nobody. */
const isOfTheMoment = ({ message = '' }: KubeEvent): boolean =>
  /^(Startup|Readiness) probe failed: .*connection refused$/.test(message);

/** The same reasons with the same words; how often is a matter of timing. */
export function assertSameEvents(events: readonly KubeEvent[], recorded: readonly RecordedEvent[]): void {
  const lasting = events.filter((event) => !isOfTheMoment(event));
  const got = lasting.map(({ type, reason, message, involvedObject: { fieldPath } }) =>
    eventLine({
      ...(type === undefined ? {} : { type }),
      ...(reason === undefined ? {} : { reason }),
      ...(message === undefined ? {} : { message }),
      ...(fieldPath === undefined ? {} : { fieldPath }),
    }),
  );
  assert.deepEqual([...new Set(got)].sort(), [...new Set(recorded.map(eventLine))].sort());
}
