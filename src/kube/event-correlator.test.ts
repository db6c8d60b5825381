import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { it } from 'node:test';
import type { KubeEvent } from '../core/node.ts';
import { EventCorrelator } from './event-correlator.ts';

const event = (uid: number, message: string): KubeEvent => ({
  metadata: { name: 'e' },
  involvedObject: { kind: 'Pod', namespace: 'n', name: `p-${uid}`, uid: `u-${uid}` },
  type: 'Warning',
  reason: 'Unhealthy',
  message,
});

it('no texts are kept of the groups, however many there are', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const held = (): number => {
    collect();
    return process.memoryUsage().heapUsed;
  };
  const correlator = new EventCorrelator();
  const text = (i: number): string => Buffer.alloc(200, `${i} `).toString('latin1');
  correlator.judge(event(-1, text(-1)), 0);
  const before = held();
  for (let i = 0; i < 2048 * 9; i++) correlator.judge(event(i % 2048, text(i)), i);
  const grown = held() - before;
  assert.ok(grown < 2_500_000, `${grown} bytes`);
  assert.match(correlator.judge(event(2047, 'tenth'), 20_000).message, /^\(combined/, 'the texts are counted');
  assert.equal(
    correlator.judge(event(2046, text(2048 * 9 - 2)), 20_000).message,
    text(2048 * 9 - 2),
    'a repeat is none',
  );
});
