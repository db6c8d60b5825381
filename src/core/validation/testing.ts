// Helpers for table tests of pods: a minimal good pod with fields put over it, and what validation says to that.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { applyPodDefaults } from '../pod-defaults.ts';
import { formatFieldError } from './field-error.ts';
import { readPod } from './pod-shape.ts';
import { validatePod } from './pod.ts';

export type Json = Record<string, unknown>;

/** A pod with the given spec fields over a minimal good one, read, defaulted and validated. */
export function problems(spec: Json, metadata: Json = {}): readonly string[] {
  const raw = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', namespace: 'ns', ...metadata },
    spec: { containers: [{ name: 'c', image: 'i' }], ...spec },
  };
  const read = readPod(raw);
  if (read.object === undefined) return read.errors.map(formatFieldError);
  return validatePod(applyPodDefaults(read.object)).map(formatFieldError);
}
export const withContainer = (fields: Json, spec: Json = {}): readonly string[] =>
  problems({ ...spec, containers: [{ name: 'c', image: 'i', ...fields }] });
export const withVolume = (source: Json, spec: Json = {}): readonly string[] =>
  problems({ ...spec, volumes: [{ name: 'v', ...source }] });

export type Row = readonly [name: string, found: () => readonly string[], expected: readonly (string | RegExp)[]];

export const table = (rows: readonly Row[]): void => {
  for (const [name, found, expected] of rows)
    it(name, () => {
      const got = found();
      assert.equal(got.length, expected.length, got.join('\n'));
      expected.forEach((want, i) => {
        if (typeof want === 'string') assert.equal(got[i], want);
        else assert.match(got[i] ?? '', want);
      });
    });
};
