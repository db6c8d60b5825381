// What goes into the timeline, and that it outlives the process in bounded files.
import assert from 'node:assert/strict';
import { appendFile, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { containerId, podUid, sandboxId } from '../core/ids.ts';
import type { KubeEvent } from '../core/node.ts';
import { emptySnapshot, type ObservedContainer, type PodSnapshot } from '../core/snapshot.ts';
import { silentLogger } from '../lib/logger.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { entriesIn, Timeline } from './timeline.ts';
import { entriesOfChange, entryOfEvent } from './timeline-entries.ts';

const event = (reason: string, type = 'Normal', message = 'text'): KubeEvent =>
  ({
    metadata: { name: 'e' },
    involvedObject: { kind: 'Pod', namespace: 'ns', name: 'p', fieldPath: 'spec.containers{main}' },
    reason,
    type,
    message,
    lastTimestamp: '2026-01-01T00:00:00Z',
  }) as KubeEvent;

const container = (state: ObservedContainer['state'], more: Partial<ObservedContainer> = {}): ObservedContainer =>
  ({
    id: containerId('c1'),
    name: 'main',
    sandboxId: sandboxId('s'),
    attempt: 0,
    state,
    startedAt: 1_000_000_000n,
    finishedAt: 2_000_000_000n,
    exitCode: 0,
    reason: '',
    ...more,
  }) as ObservedContainer;

const pod = (...containers: ObservedContainer[]): PodSnapshot => ({
  ...emptySnapshot(podUid('u'), 'p', 'ns'),
  containers,
});

async function running(timeline: Timeline, work: () => Promise<void> | void): Promise<void> {
  const stop = new AbortController();
  const run = timeline.run(stop.signal);
  await work();
  stop.abort();
  await run;
}

describe('entries', () => {
  it('come from events that say something later, too', () => {
    assert.equal(entryOfEvent(event('Pulled'), 0), undefined);
    assert.equal(entryOfEvent(event('SomethingNormal'), 0), undefined);
    assert.deepEqual(entryOfEvent(event('Unhealthy', 'Warning'), 0), {
      atMs: Date.UTC(2026, 0, 1),
      kind: 'probe',
      tone: 'warn',
      pod: 'ns/p',
      container: 'main',
      text: 'Unhealthy: text',
    });
    assert.equal(entryOfEvent(event('Strange', 'Warning'), 0)?.kind, 'other');
    assert.equal(entryOfEvent(event('NodeHasDiskPressure'), 0)?.kind, 'pressure');
  });

  it('come from what changed between two looks at a pod', () => {
    const texts = (before: PodSnapshot | undefined, after: PodSnapshot): readonly string[] =>
      entriesOfChange(before, after).map((e) => `${e.kind} ${e.text}`);
    assert.deepEqual(texts(undefined, pod(container('running'))), ['start Started']);
    assert.deepEqual(texts(pod(container('running')), pod(container('running'))), []);
    assert.deepEqual(texts(pod(container('created')), pod(container('running', { attempt: 2 }))), [
      'start Started again, the 2nd restart',
    ]);
    assert.deepEqual(texts(undefined, pod(container('exited'))), ['start Started', 'exit Ended with exit code 0']);
    assert.deepEqual(texts(pod(container('running')), pod(container('exited', { exitCode: 137 }))), [
      'exit Ended with exit code 137 (SIGKILL)',
    ]);
    assert.deepEqual(
      texts(pod(container('running')), pod(container('exited', { exitCode: 137, reason: 'OOMKilled' }))),
      ['oom Killed: it needed more memory than its limit'],
    );
  });

  it('of the node name no pod; what an event leaves out is filled in', () => {
    const about = (involvedObject: KubeEvent['involvedObject']) =>
      entryOfEvent({ metadata: { name: 'e' }, involvedObject, reason: 'Rebooted' }, 7);
    assert.deepEqual(about({ kind: 'Node', name: 'n' }), { atMs: 7, kind: 'agent', tone: 'warn', text: 'Rebooted: ' });
    assert.equal(about({ kind: 'Pod' })?.pod, 'default/');
    assert.equal(entryOfEvent({ metadata: { name: 'e' }, involvedObject: {}, type: 'Warning' }, 7)?.text, ': ');
    assert.deepEqual(entriesOfChange(pod(container('running')), undefined), []);
  });

  it('count restarts as people do', () => {
    const said = (attempt: number): string | undefined =>
      entriesOfChange(undefined, pod(container('running', { attempt })))[0]
        ?.text.split(' ')
        .at(-2);
    assert.deepEqual([1, 3, 4, 11, 12, 13, 21, 112].map(said), [
      '1st',
      '3rd',
      '4th',
      '11th',
      '12th',
      '13th',
      '21st',
      '112th',
    ]);
  });

  it('tell an end with its code, and no start of what never started', () => {
    const after = pod(container('exited', { exitCode: 3, startedAt: 0n }));
    assert.deepEqual(
      entriesOfChange(pod(container('created')), after).map((e) => [e.text, e.tone]),
      [['Ended with exit code 3', 'bad']],
    );
  });

  it('that are damaged are left out', () => {
    assert.equal(entriesIn('{"atMs":1,"text":"a","kind":"start"}\n{"atMs":2,"te').length, 1);
    assert.equal(entriesIn('null\n7\n{"text":"no time"}\n').length, 0);
  });
});

describe('the timeline', () => {
  it('is still there after a restart, behind it what is new; the first look at pods is no news', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kts-timeline-'));
    try {
      const deps = { clock: new ManualClock(), log: silentLogger };
      const first = new Timeline(deps, { directory });
      await running(first, () => {
        first.observed(podUid('u'), pod(container('running')), true);
        first.observed(podUid('u'), pod(container('exited', { exitCode: 1 })), false);
        first.runtime(true, '');
        first.runtime(false, 'gone');
        first.runtime(true, '');
      });
      await appendFile(join(directory, 'timeline.jsonl'), '{"cut');
      const second = new Timeline(deps, { directory });
      second.event(event('Starting'));
      await running(second, () => undefined);
      assert.deepEqual(
        second.entries().map((e) => [e.id, e.kind]),
        [
          [1, 'exit'],
          [2, 'runtime'],
          [3, 'runtime'],
          [4, 'agent'],
        ],
      );
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('keeps a bounded number in memory and on disk, and tells repeated failures once in a while', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kts-timeline-'));
    try {
      const clock = new ManualClock();
      const timeline = new Timeline({ clock, log: silentLogger }, { directory, maxFileBytes: 2000, keep: 10 });
      for (let round = 0; round < 6; round++)
        await running(timeline, () => {
          for (let i = 0; i < 30; i++) timeline.runtime(i % 2 === 1, 'x'.repeat(20));
        });
      assert.equal(timeline.entries().length, 10);
      const sizes = await Promise.all(
        ['timeline.jsonl', 'timeline.1.jsonl'].map(async (name) => (await stat(join(directory, name))).size),
      );
      assert.ok(
        sizes.every((size) => size < 8000),
        String(sizes),
      );
      const probes = new Timeline({ clock, log: silentLogger }, { directory });
      for (let i = 0; i < 5; i++) probes.event(event('Unhealthy', 'Warning'));
      assert.equal(probes.entries().length, 1);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('has one write under way on a disk that hangs, and keeps a bounded number for the next one', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'kts-timeline-'));
    try {
      const clock = new ManualClock();
      const written: (readonly string[])[] = [];
      const hang = Promise.withResolvers<void>();
      const append = (_file: string, text: string): Promise<void> => {
        written.push(entriesIn(text).map((entry) => entry.text));
        return hang.promise;
      };
      const timeline = new Timeline({ clock, log: silentLogger, append }, { directory, keep: 10 });
      await running(timeline, async () => {
        timeline.event(event('Rebooted', 'Warning', 'first'));
        while (clock.pending === 0) await turn();
        await clock.advance(1000);
        while (written.length === 0) await turn();
        for (let i = 0; i < 25; i++) {
          timeline.event(event('Rebooted', 'Warning', `n${i}`));
          await clock.advance(1000);
        }
        assert.deepEqual(written, [['Rebooted: first']]);
        assert.equal(clock.pending, 0, 'no write is due');
        hang.resolve();
        while (clock.pending === 0) await turn();
        await clock.advance(1000);
        while (written.length < 2) await turn();
        timeline.event(event('Rebooted', 'Warning', 'last'));
      });
      const latest = Array.from({ length: 10 }, (_, i) => `Rebooted: n${i + 15}`);
      assert.deepEqual(written, [['Rebooted: first'], latest, ['Rebooted: last']]);
    } finally {
      await rm(directory, { recursive: true });
    }
  });
});
