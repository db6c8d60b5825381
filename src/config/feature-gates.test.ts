import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dependencyErrors, FeatureGates, gateErrors } from './feature-gates.ts';
import { GATE_NEEDS, GATES } from './gate-table.ts';

test('defaults satisfy their own dependencies', () => {
  assert.deepEqual(dependencyErrors(FeatureGates.fromKnown()), []);
  for (const [name, needs] of Object.entries(GATE_NEEDS))
    for (const gate of [name, ...needs]) assert.ok(GATES.has(gate), gate);
});

test('a choice overrides the default', () => {
  const gates = FeatureGates.fromKnown({ MemoryQoS: true, ContainerCheckpoint: false });
  assert.equal(gates.enabled('MemoryQoS'), true);
  assert.equal(gates.enabled('ContainerCheckpoint'), false);
  assert.equal(gates.enabled('SidecarContainers'), true);
  assert.throws(() => gates.enabled('NoSuchGate'), /no feature gate NoSuchGate/);
});

test('AllAlpha and AllBeta reach what is not chosen by name', () => {
  const gates = FeatureGates.fromKnown({ AllAlpha: true, EventedPLEG: false, AllBeta: false, EnvFiles: true });
  assert.equal(gates.enabled('MemoryQoS'), true);
  assert.equal(gates.enabled('EventedPLEG'), false);
  assert.equal(gates.enabled('ContainerCheckpoint'), false);
  assert.equal(gates.enabled('EnvFiles'), true);
  assert.equal(gates.enabled('SidecarContainers'), true);
  assert.deepEqual(gateErrors({ AllAlpha: true, AllBeta: false }), []);
  const shown = new Map(gates.entries().map(({ name, stage, enabled }) => [name, `${stage} ${enabled}`]));
  assert.equal(shown.get('AllAlpha'), 'Alpha true');
  assert.equal(shown.get('AllBeta'), 'Beta false');
  assert.equal(shown.get('MemoryQoS'), 'Alpha true');
  assert.equal(shown.size, GATES.size + 2);
});

test('unknown and locked gates are refused', () => {
  assert.deepEqual(gateErrors({ Nonsense: true }), ['unrecognized feature gate: Nonsense']);
  assert.deepEqual(gateErrors({ MemoryQos: true }), ['unrecognized feature gate: MemoryQos (did you mean MemoryQoS?)']);
  assert.deepEqual(gateErrors({ NodeSwap: false, KubeletPSI: true }), [
    'cannot set feature gate NodeSwap to false, feature is locked to true',
  ]);
  assert.deepEqual(gateErrors({ GitRepoVolumeDriver: true }), [
    'cannot set feature gate GitRepoVolumeDriver to true, feature is locked to false',
  ]);
  assert.deepEqual(
    gateErrors(JSON.parse('{"__proto__": true, "constructor": true}') as Record<string, boolean>).length,
    2,
  );
});

test('gates of other components are known, with what they need: one map is often shared by all of them', () => {
  const shared = { WorkloadWithJob: true, GenericWorkload: true, DRAListTypeAttributes: true, AtomicFIFO: true };
  assert.deepEqual(gateErrors(shared), []);
  assert.deepEqual(dependencyErrors(FeatureGates.fromKnown(shared)), []);
  assert.deepEqual(dependencyErrors(FeatureGates.fromKnown({ WorkloadWithJob: true })), [
    'WorkloadWithJob is enabled, but depends on features that are disabled: [GenericWorkload]',
  ]);
  assert.deepEqual(gateErrors({ InOrderInformers: false }), [
    'cannot set feature gate InOrderInformers to false, feature is locked to true',
  ]);
  assert.equal(gateErrors({ HonorPVReclaimPolicy: true }).length, 1, 'gone since 1.36');
  for (const all of [true, false])
    assert.deepEqual(dependencyErrors(FeatureGates.fromKnown({ AllAlpha: all, AllBeta: true })), []);
});

test('a gate needs the gates it builds on', () => {
  assert.deepEqual(dependencyErrors(FeatureGates.fromKnown({ GracefulNodeShutdown: false })), [
    'GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: [GracefulNodeShutdown]',
    'WindowsGracefulNodeShutdown is enabled, but depends on features that are disabled: [GracefulNodeShutdown]',
  ]);
});
