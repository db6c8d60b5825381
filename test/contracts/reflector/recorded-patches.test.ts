// Patches recorded from the Go kubelet: applied one after the other, our difference of each two states is the same body.
// Times that were never set are null on the wire and absent in what an API server stores here: they are compared away.
// runs: gate
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { Node } from '../../../src/core/node.ts';
import { mergeSchemaOf } from '../../../src/devcluster/api/merge-schema.ts';
import { strategicMerge } from '../../../src/devcluster/api/strategic-merge.ts';
import { plain, POD_MERGE_KEYS, strategicMergeDiff, type JsonObject } from '../../../src/kube/patch.ts';
import { nodeStatusPatch } from '../../../src/node/node-object.ts';

const recorded = JSON.parse(readFileSync(join(import.meta.dirname, 'recorded-patches.json'), 'utf8')) as {
  podPatches: JsonObject[];
  node: Node;
  nodeReadyPatch: JsonObject;
};

const canonical = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value)
    .filter(([k]) => k !== 'lastProbeTime')
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(entries.map(([k, v]) => [k, canonical(v)]));
};

test('a pod’s life', () => {
  let status: unknown = { phase: 'Pending', qosClass: 'Burstable' };
  assert.ok(recorded.podPatches.length >= 5);
  for (const [i, patch] of recorded.podPatches.entries()) {
    const next = strategicMerge(structuredClone({ status }), { status: patch['status'] }, mergeSchemaOf('Pod'));
    const { metadata } = patch as { metadata: object };
    const after = { metadata, status: (next as { status: unknown }).status };
    const ours = strategicMergeDiff({ status }, after, POD_MERGE_KEYS);
    assert.equal(JSON.stringify(canonical(ours)), JSON.stringify(canonical(patch)), `patch ${i}`);
    status = after.status;
  }
});

test('a node becomes Ready', () => {
  const before = recorded.node;
  const patch = recorded.nodeReadyPatch;
  const after = strategicMerge(plain(before), patch, mergeSchemaOf('Node')) as Node;
  assert.equal(JSON.stringify(nodeStatusPatch(before, after)), JSON.stringify(patch));
});
