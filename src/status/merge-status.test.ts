import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, PodCondition, PodStatus } from '../core/pod.ts';
import { mergePodStatus } from './merge-status.ts';

const pod: Pod = { metadata: { name: 'p', uid: 'u', generation: 2 }, spec: { containers: [] } };
const NOW = '2026-01-01T00:00:09Z';
const at = '2026-01-01T00:00:00Z';
const c = (type: string, status: PodCondition['status'], more: Partial<PodCondition> = {}): PodCondition => ({
  type,
  status,
  lastProbeTime: null,
  lastTransitionTime: at,
  ...more,
});
const merge = (api: PodStatus, ours: PodStatus, mayBeRunning = false): PodStatus =>
  JSON.parse(JSON.stringify(mergePodStatus(pod, api, ours, mayBeRunning, NOW))) as PodStatus;

describe('mergePodStatus', () => {
  it('keeps conditions of others first, in their order, and replaces ours', () => {
    const api = [c('Gate', 'True'), c('Ready', 'True'), c('Other', 'False'), c('PodResizePending', 'True')];
    const merged = merge({ conditions: api }, { phase: 'Running', conditions: [c('Ready', 'False')] });
    assert.deepEqual(merged.conditions, [c('Gate', 'True'), c('Other', 'False'), c('Ready', 'False')]);
  });

  it('brings and takes away the condition that says why a pod is not ready', () => {
    const why = c('kubelet-ts/WhyNotReady', 'True', { reason: 'ImageNotFound', message: 'It is not there.' });
    const shown = merge({ conditions: [c('Gate', 'True')] }, { conditions: [why, c('Ready', 'False')] });
    assert.deepEqual(shown.conditions, [c('Gate', 'True'), why, c('Ready', 'False')]);
    const ready = merge({ conditions: shown.conditions ?? [] }, { conditions: [c('Ready', 'True')] });
    assert.deepEqual(ready.conditions, [c('Gate', 'True'), c('Ready', 'True')]);
  });

  it('does not echo foreign conditions that our copy carries', () => {
    const merged = merge({ conditions: [] }, { conditions: [c('Gate', 'True'), c('Ready', 'True')] });
    assert.deepEqual(
      merged.conditions?.map((x) => x.type),
      ['Ready'],
    );
  });

  it('keeps what controllers wrote about claims', () => {
    const claims = [{ name: 'a', resourceClaimName: 'b' }];
    const extended = { resourceClaimName: 'c', requestMappings: [] };
    const merged = merge(
      { resourceClaimStatuses: claims, extendedResourceClaimStatus: extended },
      { phase: 'Running' },
    );
    assert.deepEqual(merged.resourceClaimStatuses, claims);
    assert.deepEqual(merged.extendedResourceClaimStatus, extended);
  });

  it('ends readiness of a finished pod: completed or failed, with the times of what was not ready already', () => {
    const conditions = [
      c('Ready', 'True'),
      { type: 'ContainersReady', status: 'False' } as PodCondition,
      c('Gate', 'True'),
    ];
    const done = merge({ phase: 'Running', conditions: [] }, { phase: 'Succeeded', conditions });
    assert.deepEqual(
      done.conditions?.map((x) => [x.type, x.status, x.reason, x.lastTransitionTime, x.observedGeneration]),
      [
        ['Ready', 'False', 'PodCompleted', NOW, 2],
        ['ContainersReady', 'False', 'PodCompleted', NOW, 2],
      ],
    );
    const failed = mergePodStatus(
      { ...pod, metadata: { name: 'p' } },
      { phase: 'Running' },
      { phase: 'Failed', conditions },
      false,
      NOW,
    );
    assert.deepEqual(failed.conditions?.[0], {
      type: 'Ready',
      status: 'False',
      lastProbeTime: null,
      lastTransitionTime: NOW,
      reason: 'PodFailed',
    });
  });

  it('keeps what is allocated of node resources by claims', () => {
    const nodeAllocatableResourceClaimStatuses = [{ name: 'x' }] as never;
    assert.equal(
      mergePodStatus(pod, { nodeAllocatableResourceClaimStatuses }, {}, false, NOW)
        .nodeAllocatableResourceClaimStatuses,
      nodeAllocatableResourceClaimStatuses,
    );
  });

  it('leaves the status of a pod that is refused as it is while its containers may be running', () => {
    const api: PodStatus = {
      phase: 'Running',
      conditions: [c('Ready', 'True')],
      containerStatuses: [
        { name: 'm', restartCount: 3, ready: true, image: 'i', imageID: '', state: {}, lastState: {} },
      ],
    };
    const refused: PodStatus = { phase: 'Failed', reason: 'Evicted', message: 'Pod was rejected' };
    assert.deepEqual(merge(api, refused, true), api);
    assert.equal(merge(api, refused).phase, 'Failed');
    assert.equal(merge(api, refused).containerStatuses, undefined);
  });

  it('withholds a final phase, its reason and DisruptionTarget while containers may be running', () => {
    const ours: PodStatus = {
      phase: 'Failed',
      reason: 'Evicted',
      message: 'm',
      conditions: [c('DisruptionTarget', 'True'), c('Ready', 'False', { reason: 'PodFailed' })],
    };
    const merged = merge({ phase: 'Running' }, ours, true);
    assert.equal(merged.phase, 'Running');
    assert.equal(merged.reason, undefined);
    assert.equal(merged.message, undefined);
    assert.deepEqual(merged.conditions, [c('Ready', 'False', { reason: 'PodFailed' })]);
    const later = merge({ phase: 'Running' }, ours, false);
    assert.equal(later.phase, 'Failed');
    assert.equal(later.reason, 'Evicted');
    assert.deepEqual(
      later.conditions?.map((x) => x.type),
      ['DisruptionTarget', 'Ready'],
    );
  });

  it('replaces a DisruptionTarget of another in its place', () => {
    const api = [c('DisruptionTarget', 'False'), c('Gate', 'True')];
    const ours: PodStatus = { phase: 'Failed', conditions: [c('DisruptionTarget', 'True')] };
    const merged = merge({ phase: 'Running', conditions: api }, ours);
    const turned = c('DisruptionTarget', 'True', { lastTransitionTime: NOW });
    assert.deepEqual(merged.conditions, [turned, c('Gate', 'True')]);
  });

  it('tells of a DisruptionTarget when it is shown, unless it was true before', () => {
    const ours: PodStatus = { phase: 'Failed', conditions: [c('DisruptionTarget', 'True', { reason: 'Mine' })] };
    const shown = { reason: 'Mine', lastTransitionTime: NOW };
    assert.deepEqual(merge({ phase: 'Running' }, ours).conditions, [c('DisruptionTarget', 'True', shown)]);
    const before = c('DisruptionTarget', 'True', { reason: 'Theirs', lastTransitionTime: '2026-01-01T00:00:03Z' });
    assert.deepEqual(merge({ phase: 'Running', conditions: [before] }, ours).conditions, [
      { ...before, reason: 'Mine' },
    ]);
  });

  it('leaves a DisruptionTarget alone once the phase is final', () => {
    const api: PodStatus = { phase: 'Failed', conditions: [c('DisruptionTarget', 'False')] };
    const merged = merge(api, { phase: 'Failed', conditions: [c('DisruptionTarget', 'True')] });
    assert.deepEqual(merged.conditions, api.conditions);
  });

  it('forces readiness to False in a final phase only where it is still True', () => {
    const untouched = [c('Ready', 'False', { reason: 'ContainersNotReady', message: 'x' })];
    assert.deepEqual(merge({}, { phase: 'Failed', conditions: untouched }).conditions, untouched);
    const ready = [c('Ready', 'True'), c('ContainersReady', 'False', { reason: 'x' })];
    const merged = merge({}, { phase: 'Succeeded', conditions: ready });
    const base = { observedGeneration: 2, status: 'False' as const, lastProbeTime: null, reason: 'PodCompleted' };
    assert.deepEqual(merged.conditions, [
      { ...base, type: 'Ready', lastTransitionTime: NOW },
      { ...base, type: 'ContainersReady', lastTransitionTime: at },
    ]);
  });
});
