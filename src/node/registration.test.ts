import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node } from '../core/node.ts';
import { RecordingClient } from '../kube/recording-client.ts';
import { replyError } from '../kube/api-error.ts';
import { silentLogger as log } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { KnownNode } from './known-node.ts';
import { NODE_OPTIONS } from './node-options.fixture.ts';
import type { NodeFacts } from './node-object.ts';
import { NodeRegistration } from './registration.ts';

const facts = {
  host: { architecture: 'amd64', bootId: 'b', swapBytes: 0 },
  capacity: {},
  allocatable: {},
  pressure: { memory: false, disk: false, pid: false },
  notReady: [],
} as unknown as NodeFacts;
const existing: Node = { metadata: { name: 'n1', uid: 'u' }, spec: {}, status: {} };

describe('a node that may not be created', () => {
  for (const [getOnExistsOnly, calls] of [
    [false, ['POST /api/v1/nodes', 'GET /api/v1/nodes/n1']],
    [true, ['POST /api/v1/nodes', 'POST /api/v1/nodes']],
  ] as const)
    it(getOnExistsOnly ? 'is tried again with the gate' : 'may be there already', async () => {
      const clock = new ManualClock();
      const client = new RecordingClient((call) => {
        if (call.verb === 'POST') throw replyError('POST', 403, '{"kind":"Status","reason":"Forbidden"}');
        return existing;
      });
      const end = new AbortController();
      const known = new KnownNode({ byName: () => undefined }, 'n1');
      const events = { pod: () => undefined, node: () => undefined };
      const registration = new NodeRegistration(
        { client, known, facts: () => Promise.resolve(facts), events, clock, log, getOnExistsOnly },
        NODE_OPTIONS,
      );
      const running = registration.register(end.signal).catch(() => undefined);
      await clock.advance(350);
      assert.deepEqual(client.log.slice(0, 2), calls);
      end.abort();
      await running;
    });
});
