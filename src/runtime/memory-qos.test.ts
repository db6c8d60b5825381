import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Container, Pod, QosClass } from '../core/pod.ts';
import { containerMemoryQos, type MemoryQosFacts } from './memory-qos.ts';

const MI = 2 ** 20;
const FACTS: MemoryQosFacts = { throttlingFactor: 0.9, tiered: false, podMemoryBytes: () => 1024 * MI };

const NONE = { 'memory.min': '0', 'memory.low': '0' };

const rows: readonly (readonly [string, QosClass, Container['resources'], Partial<MemoryQosFacts>, object])[] = [
  [
    'throttled shortly before its limit',
    'Burstable',
    mem('100Mi', '200Mi'),
    {},
    { ...NONE, 'memory.high': `${190 * MI}` },
  ],
  [
    'without a limit shortly before all there is, in whole pages',
    'Burstable',
    mem('100Mi'),
    {},
    { ...NONE, 'memory.high': `${Math.floor((100 * MI + 924 * MI * 0.9) / 4096) * 4096}` },
  ],
  ['request and limit equal: never throttled', 'Guaranteed', mem('100Mi', '100Mi'), {}, NONE],
  ['a request, nothing known of the node', 'Burstable', mem('100Mi'), { podMemoryBytes: () => 0 }, NONE],
  ['nothing asked for, nothing known of the node', 'BestEffort', {}, { podMemoryBytes: () => 0 }, NONE],
  ['reserved for good', 'Guaranteed', mem('100Mi', '100Mi'), { tiered: true }, { 'memory.min': `${100 * MI}` }],
  [
    'reserved softly',
    'Burstable',
    mem('100Mi', '200Mi'),
    { tiered: true },
    { 'memory.low': `${100 * MI}`, 'memory.high': `${190 * MI}` },
  ],
];

function mem(request: string, limit?: string): Container['resources'] {
  return { requests: { memory: request }, ...(limit !== undefined && { limits: { memory: limit } }) };
}

for (const [name, qosClass, resources, facts, expected] of rows)
  test(name, () => {
    const container: Container = { name: 'c', ...(resources !== undefined && { resources }) };
    const pod: Pod = { metadata: { name: 'p' }, spec: { containers: [container] }, status: { qosClass } };
    assert.deepEqual(containerMemoryQos(pod, container, { ...FACTS, ...facts }), expected);
  });
