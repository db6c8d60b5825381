import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod } from '../core/pod.ts';
import { abortable } from '../lib/abort.ts';
import { KubeletError } from '../lib/errors.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { ApiEventRecorder, shortened, type PodStarts } from './events.ts';
import { notFound, RecordingClient, unreachable, type Answer } from './recording-client.ts';

const pod: Pod = {
  metadata: { name: 'simple', namespace: 'golden', uid: 'U', resourceVersion: '13675' },
  spec: { containers: [] },
};

function open(
  answer: Answer = () => ({}),
  starts?: PodStarts,
): {
  recorder: ApiEventRecorder;
  client: RecordingClient;
  clock: ManualClock;
  stop: () => Promise<void>;
} {
  const clock = new ManualClock(Date.UTC(2026, 10, 15, 3, 16, 21));
  const client = new RecordingClient(answer);
  const recorder = new ApiEventRecorder(
    { client, clock, log: silentLogger, ...(starts === undefined ? {} : { starts }) },
    { nodeName: 'n1' },
  );
  const end = new AbortController();
  const running = recorder.run(end.signal);
  const stop = async (): Promise<void> => {
    end.abort();
    await running;
  };
  return { recorder, client, clock, stop };
}

describe('ApiEventRecorder', () => {
  it('posts a pod event as recorded from upstream', async () => {
    const t = open();
    t.recorder.pod(pod, 'Normal', 'Started', 'Container started', { fieldPath: 'spec.containers{web}' });
    await t.clock.advance(0);
    const [call] = t.client.calls;
    assert.equal(`${call?.verb} ${call?.target}`, 'POST /api/v1/namespaces/golden/events');
    const name = `simple.${(BigInt(Date.UTC(2026, 10, 15, 3, 16, 21)) * 1_000_000n).toString(16)}`;
    assert.equal(
      JSON.stringify(call?.body),
      `{"kind":"Event","apiVersion":"v1","metadata":{"name":"${name}","namespace":"golden"},"involvedObject":{"kind":"Pod","namespace":"golden","name":"simple","uid":"U","apiVersion":"v1","resourceVersion":"13675","fieldPath":"spec.containers{web}"},"reason":"Started","message":"Container started","source":{"component":"kubelet","host":"n1"},"firstTimestamp":"2026-11-15T03:16:21Z","lastTimestamp":"2026-11-15T03:16:21Z","count":1,"type":"Normal","eventTime":null,"reportingComponent":"kubelet","reportingInstance":"n1"}`,
    );
    await t.stop();
  });

  it('long messages are cut between two characters', async () => {
    const { recorder, client, clock, stop } = open();
    recorder.node('Warning', 'Long', `${'€'.repeat(400)}`);
    recorder.node('Warning', 'Longer', `${'€'.repeat(9000)}`);
    await clock.advance(0);
    assert.equal(client.body<{ message: string }>(0).message, '€'.repeat(400), 'as upstream sends it');
    const { message } = client.body<{ message: string }>(1);
    assert.ok(Buffer.byteLength(message) <= 16_384);
    assert.match(message, /^€+ \.\.\.$/);
    assert.equal(recorder.ring.ringOf('')[0]?.message, `${'€'.repeat(340)} ...`);
    assert.equal(shortened('x'.repeat(1024), 1024), 'x'.repeat(1024));
    await stop();
  });

  it('an event of an object with a long name has a name of its own', async () => {
    const { recorder, client, clock, stop } = open();
    const name = 'a'.repeat(250);
    recorder.pod({ ...pod, metadata: { ...pod.metadata, name } }, 'Normal', 'R', 'm');
    await clock.advance(0);
    const body = client.body<{ metadata: { name: string }; involvedObject: { name: string } }>(0);
    assert.match(body.metadata.name, /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    assert.equal(body.involvedObject.name, name);
    await stop();
  });

  it('counts what the spam filter keeps back', async () => {
    const t = open();
    for (let i = 0; i < 30; i++) {
      t.recorder.pod(pod, 'Warning', 'BackOff', 'again');
      await t.clock.advance(10);
    }
    assert.equal(t.client.calls.length, 25);
    await t.clock.advance(300_000);
    t.recorder.pod(pod, 'Warning', 'BackOff', 'again');
    await t.clock.advance(0);
    assert.equal(t.client.body<{ count: number }>(25).count, 31);
    await t.stop();
  });

  it('counts what happens while the first of its kind is being sent', async () => {
    const t = open();
    for (let i = 0; i < 3; i++) t.recorder.pod(pod, 'Warning', 'BackOff', 'again');
    await t.clock.advance(0);
    t.recorder.pod(pod, 'Warning', 'BackOff', 'again');
    await t.clock.advance(0);
    assert.equal(t.client.body<{ count: number }>(t.client.calls.length - 1).count, 4);
    await t.stop();
  });

  it('node events are in namespace default and name nothing but the node', async () => {
    const t = open();
    t.recorder.node('Normal', 'Starting', 'Starting kubelet.');
    await t.clock.advance(0);
    assert.equal(t.client.calls[0]?.target, '/api/v1/namespaces/default/events');
    const { involvedObject } = t.client.body<{ involvedObject: object }>(0);
    assert.deepEqual(involvedObject, { kind: 'Node', name: 'n1', apiVersion: 'v1' });
    await t.stop();
  });

  it('events of persistent volumes are in namespace default', async () => {
    const t = open();
    const volume = { metadata: { name: 'pv', uid: 'U', resourceVersion: '7' } };
    t.recorder.volume(volume, 'Warning', 'FailedMountOnFilesystemMismatch', 'why');
    await t.clock.advance(0);
    assert.equal(t.client.calls[0]?.target, '/api/v1/namespaces/default/events');
    assert.deepEqual(t.client.body<{ involvedObject: object }>(0).involvedObject, {
      kind: 'PersistentVolume',
      name: 'pv',
      uid: 'U',
      apiVersion: 'v1',
      resourceVersion: '7',
    });
    await t.stop();
  });

  it('a repeat patches count, time and message; a vanished event is posted anew and counted on', async () => {
    let gone = false;
    const t = open((call) => {
      if (call.verb === 'PATCH' && gone) {
        gone = false;
        throw notFound('event');
      }
      return {};
    });
    for (let i = 0; i < 4; i++) {
      gone = i === 2;
      t.recorder.node('Normal', 'NodeReady', 'm');
      await t.clock.advance(1000);
    }
    const name = t.client.body<{ metadata: { name: string } }>(0).metadata.name;
    const renamed = t.client.body<{ metadata: { name: string } }>(3).metadata.name;
    const at = '/api/v1/namespaces/default/events';
    assert.deepEqual(t.client.log, [
      `POST ${at}`,
      `PATCH ${at}/${name}`,
      `PATCH ${at}/${name}`,
      `POST ${at}`,
      `PATCH ${at}/${renamed}`,
    ]);
    assert.deepEqual(t.client.calls[1]?.body, { count: 2, lastTimestamp: '2026-11-15T03:16:22Z', message: 'm' });
    assert.equal(t.client.body<{ count: number }>(4).count, 4);
    assert.equal(t.recorder.ring.ringOf('')[0]?.count, 4);
    await t.stop();
  });

  it('survives an outage: order and counts are kept, repeats cost one request', async () => {
    let down = true;
    const t = open(() => {
      if (down) throw unreachable();
      return {};
    });
    t.recorder.pod(pod, 'Normal', 'A', 'first');
    await t.clock.advance(100);
    for (let i = 0; i < 5; i++) t.recorder.pod(pod, 'Warning', 'BackOff', 'again');
    await t.clock.advance(60_000);
    down = false;
    const before = t.client.calls.length;
    await t.clock.advance(11_000);
    const sent = t.client.calls.slice(before).map((c) => c.body as { reason: string; count: number });
    assert.deepEqual(
      sent.map((e) => `${e.reason} ${e.count}`),
      ['A 1', 'BackOff 5'],
    );
    assert.equal(t.recorder.dropped, 0);
    await t.stop();
  });

  it('an event the server refuses is dropped, the next one goes out', async () => {
    const t = open((call) => {
      if ((call.body as { reason: string }).reason === 'Bad') throw new KubeletError('denied', 'terminating');
      return {};
    });
    t.recorder.pod(pod, 'Normal', 'Bad', 'x');
    t.recorder.pod(pod, 'Normal', 'Good', 'x');
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, 2);
    assert.equal(t.recorder.dropped, 1);
    await t.stop();
  });

  it('combines similar events from the tenth message on and filters spam, the ring keeps them all', async () => {
    const t = open();
    for (let i = 0; i < 40; i++) {
      t.recorder.pod(pod, 'Warning', 'Failed', `message ${i}`);
      await t.clock.advance(10);
    }
    const bodies = t.client.calls.map((c) => c.body as { message: string; count: number });
    assert.equal(bodies.length, 25, 'burst of the spam filter');
    assert.equal(bodies[8]?.message, 'message 8');
    assert.equal(bodies[9]?.message, '(combined from similar events): message 9');
    assert.equal(t.client.calls[10]?.verb, 'PATCH');
    assert.equal(bodies[24]?.count, 16);
    assert.equal(t.recorder.ring.ringOf('U').length, 40);
    await t.clock.advance(300_000);
    t.recorder.pod(pod, 'Warning', 'Other', 'later');
    await t.clock.advance(0);
    assert.equal(t.client.calls.length, 26, 'one more after five minutes');
    await t.stop();
  });

  it('an outage keeps at most 2 Mi characters of long messages, the latest ones', async () => {
    const t = open(() => {
      throw unreachable();
    });
    for (let i = 0; i < 200; i++)
      t.recorder.pod(
        { ...pod, metadata: { ...pod.metadata, uid: `u${i}` } },
        'Warning',
        'Failed',
        `${i} `.repeat(8000),
      );
    await t.clock.advance(0);
    assert.equal(t.recorder.dropped, 200 - 128, 'of 16 KiB each');
    await t.stop();
  });

  describe('while pods queue up to start', () => {
    const crowd = (): { starts: PodStarts; over: () => void; sent: (t: ReturnType<typeof open>) => string[] } => {
      let crowded = true;
      const over = Promise.withResolvers<void>();
      return {
        starts: { crowded: () => crowded, quiet: (signal) => abortable(signal, over.promise) },
        over: () => {
          crowded = false;
          over.resolve();
        },
        sent: (t) => t.client.calls.map((_, i) => t.client.body<{ reason: string }>(i).reason),
      };
    };

    it('good news waits until they have started', async () => {
      const c = crowd();
      const t = open(undefined, c.starts);
      t.recorder.pod(pod, 'Normal', 'Pulled', 'there');
      t.recorder.pod(pod, 'Normal', 'Started', 'runs');
      await t.clock.advance(1000);
      assert.deepEqual(c.sent(t), []);
      c.over();
      await t.clock.advance(0);
      assert.deepEqual(c.sent(t), ['Pulled', 'Started']);
      await t.stop();
    });

    it('but not longer than five seconds each', async () => {
      const c = crowd();
      const t = open(undefined, c.starts);
      t.recorder.pod(pod, 'Normal', 'Pulled', 'there');
      await t.clock.advance(3000);
      t.recorder.pod(pod, 'Normal', 'Started', 'runs');
      await t.clock.advance(2000);
      assert.deepEqual(c.sent(t), ['Pulled']);
      await t.clock.advance(3000);
      assert.deepEqual(c.sent(t), ['Pulled', 'Started']);
      await t.stop();
    });

    it('trouble is told at once, and what came before it', async () => {
      const c = crowd();
      const t = open(undefined, c.starts);
      t.recorder.pod(pod, 'Normal', 'Pulled', 'there');
      await t.clock.advance(100);
      t.recorder.pod(pod, 'Warning', 'Failed', 'broken');
      await t.clock.advance(0);
      assert.deepEqual(c.sent(t), ['Pulled', 'Failed']);
      t.recorder.pod(pod, 'Normal', 'Started', 'runs');
      await t.clock.advance(100);
      assert.deepEqual(c.sent(t), ['Pulled', 'Failed'], 'good news waits again');
      await t.stop();
    });
  });

  it('standalone: no client, the ring is all there is', () => {
    const recorder = new ApiEventRecorder({ clock: new ManualClock(), log: silentLogger }, { nodeName: 'n1' });
    for (let i = 0; i < 300; i++) recorder.pod(pod, 'Normal', 'R', `m${i}`);
    assert.equal(recorder.ring.ringOf('U').length, 100);
    assert.equal(recorder.ring.all().at(-1)?.message, 'm299');
  });
});
