import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isContainerReady, isStarted, type ContainerBefore, type ProbeFacts } from './readiness.ts';

const before = (more: Partial<ContainerBefore> = {}): ContainerBefore => ({
  running: true,
  previouslyStarted: false,
  previouslyReady: false,
  ...more,
});
const facts = (more: Partial<ProbeFacts> = {}): ProbeFacts => ({
  startup: undefined,
  readiness: undefined,
  hasStartupProbe: false,
  hasReadinessProbe: false,
  olderThanKubelet: false,
  ...more,
});

test('started', () => {
  const rows: [Partial<ContainerBefore>, Partial<ProbeFacts>, boolean][] = [
    [{}, {}, true],
    [{ running: false }, {}, false],
    [{}, { hasStartupProbe: true }, false],
    [{ previouslyStarted: true }, { hasStartupProbe: true }, true],
    [{ previouslyStarted: true }, { hasStartupProbe: true, startup: 'unknown' }, false],
    [{}, { hasStartupProbe: true, startup: 'success' }, true],
    [{ previouslyStarted: true }, { hasStartupProbe: true, startup: 'failure' }, false],
  ];
  for (const [b, f, wanted] of rows) assert.equal(isStarted(before(b), facts(f)), wanted, JSON.stringify([b, f]));
});

test('ready', () => {
  const rows: [Partial<ContainerBefore>, boolean, Partial<ProbeFacts>, boolean][] = [
    [{}, true, {}, true],
    [{}, false, {}, false],
    [{ running: false }, true, {}, false],
    [{}, true, { hasReadinessProbe: true }, false],
    [{}, true, { hasReadinessProbe: true, readiness: 'success' }, true],
    [{ previouslyReady: true }, true, { hasReadinessProbe: true, readiness: 'failure' }, false],
    [{ previouslyReady: true }, true, { hasReadinessProbe: true }, false],
    [{ previouslyReady: true }, true, { hasReadinessProbe: true, olderThanKubelet: true }, true],
    [{ previouslyReady: true }, true, { hasReadinessProbe: true, olderThanKubelet: true, readiness: 'failure' }, false],
    [{ previouslyReady: false }, true, { hasReadinessProbe: true, olderThanKubelet: true }, false],
  ];
  for (const [b, started, f, wanted] of rows)
    assert.equal(isContainerReady(before(b), started, facts(f)), wanted, JSON.stringify([b, started, f]));
});
