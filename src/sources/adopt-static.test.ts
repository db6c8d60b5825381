import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sandboxId } from '../core/ids.ts';
import { CONFIG_HASH, CONFIG_SEEN, CONFIG_SOURCE, type Pod } from '../core/pod.ts';
import { aliveSnapshot } from '../core/snapshot.fixture.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { adoptStatic } from './adopt-static.ts';

const SEEN = '2026-01-01T00:00:10.123456789Z';
const SEEN_MS = Date.parse(SEEN);
const pod: Pod = {
  metadata: { name: 'web-n1', namespace: 'kube-system', uid: 'ours', annotations: { [CONFIG_HASH]: 'ours' } },
  spec: { containers: [{ name: 'c' }] },
};

const running = (uid: string, more: Partial<PodSnapshot> = {}, source = 'file', seen = SEEN): PodSnapshot => ({
  ...aliveSnapshot(uid),
  name: 'web-n1',
  namespace: 'kube-system',
  sandboxes: [
    {
      id: sandboxId('s'),
      attempt: 0,
      ready: true,
      createdAt: 1n,
      hostNetwork: false,
      ips: [],
      runtimeHandler: '',
      annotations: { [CONFIG_SOURCE]: source, [CONFIG_SEEN]: seen },
    },
  ],
  ...more,
});
const ended: PodSnapshot = { ...running('theirs'), containers: [] };

const rows: [what: string, observed: PodSnapshot[], changedMs: number, uid: string, source?: 'http'][] = [
  ['nothing runs', [], 0, 'ours'],
  ['it runs under another UID and its manifest is older', [running('theirs')], SEEN_MS - 1, 'theirs'],
  ['its manifest was changed since', [running('theirs')], SEEN_MS + 1, 'ours'],
  ['it runs under our UID', [running('theirs'), running('ours')], 0, 'ours'],
  ['another pod runs', [running('theirs', { name: 'other-n1' })], 0, 'ours'],
  ['a pod of the same name in another namespace runs', [running('theirs', { namespace: 'default' })], 0, 'ours'],
  ['a pod of the API server has the name', [running('theirs', {}, 'api')], 0, 'ours'],
  ['a pod of a URL has the name', [running('theirs', {}, 'http')], 0, 'ours'],
  ['it runs, from the same URL', [running('theirs', {}, 'http')], 0, 'theirs', 'http'],
  ['a pod of a file has the name of one of a URL', [running('theirs')], 0, 'ours', 'http'],
  ['nobody knows when it was seen', [running('theirs', {}, 'file', '')], 1, 'ours'],
  ['it has ended', [{ ...ended, sandboxes: ended.sandboxes.map((s) => ({ ...s, ready: false })) }], 0, 'ours'],
];

for (const [what, observed, changedMs, uid, source = 'file'] of rows)
  test(`${what}: ${uid}`, () => {
    const { metadata } = adoptStatic(pod, source, changedMs, observed);
    assert.equal(metadata.uid, uid);
    assert.equal(metadata.annotations?.[CONFIG_HASH], uid, 'the mirror pod is known by it');
  });
