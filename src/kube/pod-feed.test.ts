import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodFeed } from './pod-feed.ts';
import { RecordingClient, unreachable } from './recording-client.ts';

const log = silentLogger;
const pod: Pod = {
  metadata: { name: 'p', namespace: 'ns', uid: 'U', resourceVersion: '3' },
  spec: { containers: [] },
};
describe('PodFeed', () => {
  it('falls back to the checkpoint and hands over to the API server', async () => {
    const clock = new ManualClock();
    let down = true;
    const client = new RecordingClient(() => {
      if (down) throw unreachable();
      const end = { resourceVersion: '5', annotations: { 'k8s.io/initial-events-end': 'true' } };
      const changed = { ...pod, metadata: { ...pod.metadata, resourceVersion: '6' } };
      return [
        { type: 'BOOKMARK', object: { metadata: end } },
        { type: 'ADDED', object: changed },
        { type: 'DELETED', object: changed },
      ];
    });
    const heard: string[] = [];
    const reported: number[] = [];
    const checkpoint = { pods: [pod], podsChanged: (pods: readonly Pod[]) => void reported.push(pods.length) };
    const onPods = (pods: readonly Pod[], origin: string): void => void heard.push(`${origin} ${pods.length}`);
    const onPod = (uid: string, one: Pod | undefined): void =>
      void heard.push(`${uid} ${one?.metadata.resourceVersion}`);
    const feed = new PodFeed({ client, clock, log, checkpoint, onPods, onPod }, { nodeName: 'n1' });
    const end = new AbortController();
    const running = feed.run(end.signal);
    await clock.advance(6000);
    assert.deepEqual(heard, ['checkpoint 1']);
    down = false;
    await clock.advance(1000);
    const [, first, ...then] = heard;
    assert.equal(first, 'api 0', 'the API server’s word counts, also when it is “nothing”');
    assert.deepEqual(then, ['U 6', 'U undefined'], 'afterwards pods are told one by one');
    assert.deepEqual(reported, [0, 1, 0], 'and are what is kept');
    assert.match(client.log[0] ?? '', /fieldSelector=spec.nodeName%3Dn1/);
    end.abort();
    await running;
  });
});
