import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodExplainer } from './pod-facts.ts';
import { eventOf, podOf, pullOf } from './why.fixture.ts';

const pod = podOf();

function explainer(more: Partial<ConstructorParameters<typeof PodExplainer>[0]> = {}): PodExplainer {
  return new PodExplainer({
    clock: new ManualClock(),
    pods: { all: () => [pod], byFullName: (name) => (name === 'web_shop' ? pod : undefined) },
    status: { statusOf: () => ({ phase: 'Pending' }) },
    events: { ringOf: (uid) => (uid === 'uid-web' ? [eventOf('Pulling', 'Pulling image')] : []) },
    workers: { view: () => ({ phase: 'syncing' }) },
    volumes: { complaintsOf: () => ['volume "a": is being mounted'] },
    pulls: () => [pullOf({}), pullOf({ podUid: podUid('other') })],
    probes: { history: () => [] },
    traces: { ofPod: () => [] },
    runtime: { state: () => ({ runtimeErrors: [], networkErrors: ['no CNI', 'not yet'] }) },
    ...more,
  });
}

describe('what is known about a pod', () => {
  it('is brought together from the parts, of this pod only', () => {
    const facts = explainer().factsOf(pod);
    assert.equal(facts.pulls.length, 1);
    assert.equal(facts.events.length, 1);
    assert.deepEqual(facts.volumes, ['volume "a": is being mounted']);
    assert.equal(facts.networkProblem, 'no CNI, not yet');
    assert.equal('runtimeProblem' in facts, false);
  });

  it('has the steps that are under way, of the start or stop that is', () => {
    const spans = [
      { name: 'admit', fromMs: 0, toMs: 2 },
      { name: 'image', of: 'reg.io/app:1', fromMs: 30 },
    ];
    const traces = {
      ofPod: () => [
        { startedAtMs: 1, tookMs: 9, spans },
        { startedAtMs: 1000, spans },
      ],
    };
    assert.deepEqual(explainer({ traces }).factsOf(pod).underWay, [
      { name: 'image', of: 'reg.io/app:1', sinceMs: 1030 },
    ]);
  });

  it('is asked for by name, or for every pod', () => {
    assert.equal(explainer().byName('shop', 'web')?.cause, 'NetworkNotReady');
    assert.equal(explainer().byName('shop', 'nobody'), undefined);
    assert.deepEqual(
      explainer()
        .all()
        .map(({ namespace, name }) => [namespace, name]),
      [['shop', 'web']],
    );
  });

  it('does without a status and a worker', () => {
    const bare = explainer({ status: { statusOf: () => undefined }, workers: { view: () => undefined } });
    assert.equal(bare.of(pod).cause, 'Admission');
  });
});
