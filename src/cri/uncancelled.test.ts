import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CriRuntime } from './services.ts';
import { uncancelled } from './uncancelled.ts';

for (const [verb, isKept] of [
  ['runPodSandbox', true],
  ['createContainer', true],
  ['startContainer', true],
  ['stopContainer', false],
  ['removeContainer', false],
] as const)
  test(`${verb} is ${isKept ? 'not ' : ''}called off with its pod`, () => {
    const signals: AbortSignal[] = [];
    const cri = { [verb]: (_request: unknown, signal: AbortSignal) => signals.push(signal) } as unknown as CriRuntime;
    const [whole, pods] = [new AbortController().signal, new AbortController().signal];
    (uncancelled(cri, whole)[verb] as (request: object, signal: AbortSignal) => unknown)({}, pods);
    assert.equal(signals[0], isKept ? whole : pods);
  });
