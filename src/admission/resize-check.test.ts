import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { checkResize, type ResizeOptions } from './resize-check.ts';

const NODE: Node = { metadata: { name: 'n' }, status: { allocatable: { cpu: '4', memory: '4Gi', pods: '10' } } };
const OPTIONS: ResizeOptions = { cpuManagerPolicy: 'none', memoryManagerPolicy: 'None', usesSwap: () => false };
const pod = (requests: Record<string, string>, limits: Record<string, string> = {}): Pod => ({
  metadata: { name: 'p' },
  spec: { containers: [{ name: 'c', resources: { requests, limits } }] },
});
const full = { cpu: '1', memory: '1Gi' };

test('now, later, never', () => {
  const rows: [Pod, Pod[], Partial<ResizeOptions>, string][] = [
    [pod({ cpu: '2' }), [], {}, 'ok'],
    [
      pod({ cpu: '3' }),
      [pod({ cpu: '2' })],
      {},
      "Deferred Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
    ],
    [pod({ cpu: '5' }), [], {}, "Infeasible Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"],
    [
      pod({ cpu: '5', memory: '4500Mi' }),
      [],
      {},
      "Infeasible Node didn't have enough capacity: memory, requested: 4718592000, capacity: 4294967296",
    ],
    [pod({}), [], { usesSwap: () => true }, 'Infeasible In-place resize of containers with swap is not supported.'],
    [
      pod(full, full),
      [],
      { cpuManagerPolicy: 'static' },
      'Infeasible Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
    ],
    [
      pod(full, full),
      [],
      { memoryManagerPolicy: 'Static' },
      'Infeasible Resize is infeasible for Guaranteed Pods alongside Memory Manager policy "Static"',
    ],
    [pod(full), [], { cpuManagerPolicy: 'static' }, 'ok'],
  ];
  for (const [p, others, options, wanted] of rows) {
    const verdict = checkResize(p, others, NODE, { ...OPTIONS, ...options });
    assert.equal(verdict.ok ? 'ok' : `${verdict.reason} ${verdict.message}`, wanted);
  }
});
