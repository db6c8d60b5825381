import assert from 'node:assert/strict';
import { test } from 'node:test';
import { environmentOf } from '../config/environment.fixture.ts';
import type { Node } from '../core/node.ts';
import type { Pod } from '../core/pod.ts';
import { checkResize, configuredResizeChecks, type ResizeOptions } from './resize-check.ts';

const NODE: Node = { metadata: { name: 'n' }, status: { allocatable: { cpu: '4', memory: '4Gi', pods: '10' } } };
const OPTIONS: ResizeOptions = {
  cpuManagerPolicy: 'none',
  memoryManagerPolicy: 'None',
  resizeExclusiveCpus: false,
  resizeExclusiveMemory: false,
  usesSwap: () => false,
  podLevel: true,
  pressures: () => [],
  shuttingDown: () => false,
};
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
    [
      pod({ cpu: '5' }),
      [],
      {},
      "Deferred Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
    ],
    [
      pod({ cpu: '5', memory: '4500Mi' }),
      [],
      {},
      "Deferred Node didn't have enough resource: cpu, requested: 5000, used: 0, capacity: 4000",
    ],
    [
      pod({ memory: '4500Mi' }),
      [pod({ memory: '1Gi' })],
      {},
      "Deferred Node didn't have enough resource: memory, requested: 4718592000, used: 1073741824, capacity: 4294967296",
    ],
    [
      { ...pod({ cpu: '2' }), spec: { ...pod({ cpu: '2' }).spec, nodeSelector: { disk: 'ssd' } } },
      [],
      {},
      "Deferred Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector",
    ],
    [
      pod({ cpu: '2' }),
      [],
      { pressures: () => ['DiskPressure'], shuttingDown: () => true },
      'Deferred The node had condition: [DiskPressure]. ',
    ],
    [pod({ cpu: '2' }), [], { pressures: () => ['MemoryPressure'] }, 'ok'],
    [pod({ cpu: '2' }), [], { shuttingDown: () => true }, 'Deferred Pod was rejected as the node is shutting down.'],
    [
      pod({ memory: '2Gi' }),
      [],
      { usesSwap: () => true },
      'Infeasible In-place resize of containers with swap is not supported.',
    ],
    [pod({ cpu: '2' }), [], { usesSwap: () => true }, 'ok'],
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
    [pod(full, full), [], { cpuManagerPolicy: 'static', resizeExclusiveCpus: true }, 'ok'],
    [pod(full, full), [], { memoryManagerPolicy: 'Static', resizeExclusiveMemory: true }, 'ok'],
  ];
  for (const [p, others, options, wanted] of rows) {
    const verdict = checkResize(p, pod({}), others, NODE, { ...OPTIONS, ...options });
    assert.equal(verdict.ok ? 'ok' : `${verdict.reason} ${verdict.message}`, wanted);
  }
});

test('events name what is short', () => {
  const verdict = checkResize(pod({ cpu: '5' }), pod({}), [], NODE, OPTIONS);
  assert.equal(!verdict.ok && verdict.cause, 'OutOfcpu');
});

test('a critical pod has room made for it, unless that does not help or the node goes down', () => {
  const critical = (cpu: string): Pod => {
    const { metadata, spec } = pod({ cpu });
    return { metadata, spec: { ...spec, priority: 2_000_000_000 } };
  };
  const other = (name: string, cpu: string): Pod => ({ ...pod({ cpu }), metadata: { name, uid: name } });
  const [a, b] = [other('a', '1'), other('b', '2')];
  const rows: [string, Partial<ResizeOptions>, string][] = [
    ['1', {}, 'ok '],
    ['2', {}, 'ok a for cpu'],
    ['3', { pressures: () => ['DiskPressure'] }, 'ok b for cpu'],
    ['3', { shuttingDown: () => true }, 'Deferred NodeShutdown Pod was rejected as the node is shutting down.'],
    [
      '5',
      {},
      'Deferred UnexpectedAdmissionError Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]',
    ],
  ];
  for (const [cpu, options, wanted] of rows) {
    const verdict = checkResize(critical(cpu), critical('1'), [a, b], NODE, { ...OPTIONS, ...options });
    const names = verdict.ok ? verdict.victims.map((v) => v.metadata.name).join() : '';
    const room = verdict.ok && verdict.scarce !== undefined ? `${names} for ${verdict.scarce}` : names;
    assert.equal(verdict.ok ? `ok ${room}` : `${verdict.reason} ${verdict.cause} ${verdict.message}`, wanted);
  }
});

test('resources of the pod as a whole', () => {
  const whole = (amounts: Record<string, string>): Pod => ({
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c' }], resources: { requests: amounts, limits: amounts } },
  });
  const rows: [Record<string, string>, Partial<ResizeOptions>, string][] = [
    [{ cpu: '2', memory: '2Gi' }, {}, 'ok'],
    [
      { cpu: '3', memory: '1Gi' },
      {},
      "Deferred Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000",
    ],
    [
      { cpu: '5', memory: '1Gi' },
      {},
      "Deferred Node didn't have enough resource: cpu, requested: 5000, used: 2000, capacity: 4000",
    ],
    [
      { cpu: '2', memory: '1Gi' },
      { podLevel: false },
      'Infeasible InPlacePodLevelResourcesVerticalScaling is disabled',
    ],
    [full, { podLevel: false }, 'ok'],
    [{ cpu: '2', memory: '2Gi' }, { cpuManagerPolicy: 'static', memoryManagerPolicy: 'Static' }, 'ok'],
  ];
  for (const [wanted, options, expected] of rows) {
    const verdict = checkResize(whole(wanted), whole(full), [pod({ cpu: '2' })], NODE, { ...OPTIONS, ...options });
    assert.equal(verdict.ok ? 'ok' : `${verdict.reason} ${verdict.message}`, expected);
  }
});

test('the managers and gates that are configured count', () => {
  const rows: [Parameters<typeof environmentOf>[0], Node | undefined, string][] = [
    [{}, NODE, 'ok'],
    [{}, undefined, 'Deferred the node is not known yet'],
    [
      { config: { cpuManagerPolicy: 'static' }, gates: { InPlacePodVerticalScalingExclusiveCPUs: false } },
      NODE,
      'Infeasible Resize is infeasible for Guaranteed Pods alongside CPU Manager policy "static"',
    ],
    [{ config: { cpuManagerPolicy: 'static' }, gates: { InPlacePodVerticalScalingExclusiveCPUs: true } }, NODE, 'ok'],
  ];
  const granted = pod({ cpu: '2', memory: '1Gi' }, { cpu: '2', memory: '1Gi' });
  for (const [otherwise, node, expected] of rows) {
    const known = { ...OPTIONS, node: () => node, allocated: () => granted };
    const verdict = configuredResizeChecks(environmentOf(otherwise), known)(pod(full, full), []);
    assert.equal(verdict.ok ? 'ok' : `${verdict.reason} ${verdict.message}`, expected);
  }
});
