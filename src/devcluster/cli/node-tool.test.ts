import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isNodeVerb, nodeToolArguments } from './node-tool.ts';

it('the node tool is told where the kubelet of this cluster is', () => {
  for (const [words, expected] of [
    ['top', 'node top --root-dir=/d/kubelet'],
    ['why web -n shop --dir=/e', 'node why web -n shop --root-dir=/e/kubelet'],
    ['doctor', 'node doctor --root-dir=/d/kubelet --runtime-endpoint=unix:///d/containerd/c.sock'],
  ] as const) {
    const [verb = '', ...rest] = words.split(' ');
    assert.equal(nodeToolArguments(verb, rest, '/d').join(' '), expected);
    assert.ok(isNodeVerb(verb));
  }
  assert.equal(isNodeVerb('up'), false);
});
