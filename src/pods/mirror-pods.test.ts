import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Node } from '../core/node.ts';
import { CONFIG_HASH, CONFIG_MIRROR, CONFIG_SOURCE, type Pod } from '../core/pod.ts';
import { RecordingClient, type Answer } from '../kube/recording-client.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { MirrorPods } from './mirror-pods.ts';

const annotations = { [CONFIG_HASH]: 'h1', [CONFIG_SOURCE]: 'file' };
const fixed: Pod = {
  metadata: { name: 'web-n1', namespace: 'ns', uid: 'h1', labels: { a: 'b' }, annotations },
  spec: { containers: [{ name: 'c' }], nodeName: 'n1' },
  status: { phase: 'Running' },
};
const mirror = (hash: string, more: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { ...fixed.metadata, uid: 'M', annotations: { ...annotations, [CONFIG_MIRROR]: hash }, ...more },
  spec: fixed.spec,
});
const node: Node = { metadata: { name: 'n1', uid: 'N' } };
const signal = new AbortController().signal;
const PATH = '/api/v1/namespaces/ns/pods';

const open = (
  known: Pod | undefined,
  answer: Answer = () => ({}),
  owner: Node | undefined = node,
): { mirrors: MirrorPods; client: RecordingClient } => {
  const client = new RecordingClient(answer);
  const mirrors = new MirrorPods({ client, mirrorOf: () => known, node: () => owner, log: silentLogger });
  return { mirrors, client };
};

describe('MirrorPods', () => {
  it('posts the static pod without what the server assigns, owned by the node', async () => {
    const t = open(undefined);
    await t.mirrors.reconcile(fixed, signal);
    assert.deepEqual(t.client.calls, [
      {
        verb: 'POST',
        target: PATH,
        body: {
          kind: 'Pod',
          apiVersion: 'v1',
          metadata: {
            name: 'web-n1',
            namespace: 'ns',
            labels: { a: 'b' },
            annotations: { ...annotations, [CONFIG_MIRROR]: 'h1' },
            ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: 'N', controller: true }],
          },
          spec: fixed.spec,
        },
      },
    ]);
  });

  it('leaves a right mirror alone', async () => {
    const t = open(mirror('h1'));
    await t.mirrors.reconcile(fixed, signal);
    assert.deepEqual(t.client.log, []);
  });

  for (const [name, old] of [
    ['with another hash', mirror('h0')],
    ['that is being deleted', mirror('h1', { deletionTimestamp: 'T' })],
  ] as const) {
    it(`replaces a mirror ${name}`, async () => {
      const t = open(old);
      await t.mirrors.reconcile(fixed, signal);
      assert.deepEqual(t.client.log, [`DELETE ${PATH}/web-n1`, `POST ${PATH}`]);
      assert.deepEqual(t.client.calls[0]?.body, { gracePeriodSeconds: 0, preconditions: { uid: 'M' } });
    });
  }

  it('creates nothing when the old one was not deleted by us', async () => {
    const t = open(mirror('h0'), () => {
      throw new KubeletError('conflict', 'uid');
    });
    await t.mirrors.reconcile(fixed, signal);
    assert.deepEqual(t.client.log, [`DELETE ${PATH}/web-n1`]);
  });

  it('waits for the node, and not for one that is going away', async () => {
    for (const owner of [undefined, { metadata: { name: 'n1', uid: 'N', deletionTimestamp: 'T' } }]) {
      const client = new RecordingClient(() => ({}));
      const mirrors = new MirrorPods({ client, mirrorOf: () => undefined, node: () => owner, log: silentLogger });
      await mirrors.reconcile(fixed, signal);
      assert.deepEqual(client.log, []);
    }
  });

  it('accepts one that exists if it is the right one', async () => {
    const existing =
      (hash: string): Answer =>
      (call) => {
        if (call.verb === 'POST') throw new KubeletError('exists', 'exists');
        return mirror(hash);
      };
    await open(undefined, existing('h1')).mirrors.reconcile(fixed, signal);
    await assert.rejects(open(undefined, existing('h0')).mirrors.reconcile(fixed, signal), /another pod named/);
  });

  it('never deletes what is no mirror, and goes on after a failure', async () => {
    const t = open(undefined, (call) => {
      if (call.target.endsWith('/bad')) throw new KubeletError('unavailable', 'x');
      return {};
    });
    await t.mirrors.removeAll([fixed, mirror('h', { name: 'bad' }), mirror('h')], signal);
    assert.deepEqual(t.client.log, [`DELETE ${PATH}/bad`, `DELETE ${PATH}/web-n1`]);
  });
});
