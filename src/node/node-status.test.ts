import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../core/node.ts';
import { RecordingClient } from '../kube/recording-client.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { KnownNode } from './known-node.ts';
import type { NodeFacts } from './node-object.ts';
import { NODE_OPTIONS } from './node-options.fixture.ts';
import { NodeStatusReporter } from './node-status.ts';

const options = { ...NODE_OPTIONS, updateMs: 10_000, reportMs: 300_000 };
const host = {
  machineId: '',
  systemUuid: '',
  bootId: '',
  kernelVersion: '',
  osImage: '',
  architecture: 'amd64',
  swapBytes: 0,
};
const FACTS: NodeFacts = {
  host,
  capacity: {},
  allocatable: {},
  pressure: { memory: false, disk: false, pid: false },
  notReady: [],
  volumesInUse: ['v'],
  declaredFeatures: [],
};

test('a report that volumes wait for is sent although nothing changed; only an answer is passed on', async () => {
  const clock = new ManualClock(undefined, () => 0.5);
  let facts: NodeFacts = FACTS;
  let server: Node = { metadata: { name: 'n1', uid: 'U' } };
  const client = new RecordingClient((call) => {
    // The first patch has all of it.
    const { metadata, status } = (call.body ?? {}) as Partial<Node>;
    return (server = {
      ...(status === undefined ? {} : { status }),
      ...server,
      metadata: { ...server.metadata, ...metadata },
    });
  });
  const answers: (readonly string[] | undefined)[] = [];
  const onAnswer = (node: Node): void => void answers.push(node.status?.volumesInUse);
  const events = { pod: () => undefined, node: () => undefined };
  const known = new KnownNode({ byName: () => undefined }, 'n1');
  const reporter = new NodeStatusReporter(
    { client, known, facts: () => Promise.resolve(facts), events, clock, log: silentLogger, listeners: { onAnswer } },
    options,
  );
  const end = new AbortController();
  const running = reporter.run(end.signal);
  await clock.advance(1000);
  assert.deepEqual([client.log, answers], [['GET /api/v1/nodes/n1', 'PATCH /api/v1/nodes/n1/status'], [['v']]]);
  reporter.wake();
  await clock.advance(0);
  assert.deepEqual([client.log.length, answers.length], [2, 1], 'nothing was sent');
  facts = { ...FACTS, isAnswerAwaited: true };
  reporter.wake();
  await clock.advance(0);
  assert.deepEqual([client.log.length, answers], [3, [['v'], ['v']]]);
  end.abort();
  await running;
  assert.equal(clock.pending, 0);
});
