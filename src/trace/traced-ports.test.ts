import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CONFIG_SOURCE, uidOf, type Pod } from '../core/pod.ts';
import { ManualClock } from '../lib/manual-clock.ts';
import { PodTracer } from './pod-tracer.ts';
import { podTracing } from './traced-ports.ts';
import type { Waterfall } from './waterfall.ts';

const podFrom = (source: string): Pod => ({
  metadata: { name: 'p', namespace: 'default', uid: 'u', annotations: { [CONFIG_SOURCE]: source } },
  spec: { containers: [] },
});
const never = new AbortController().signal;

it('the stop of a static pod is over with its last step, that of another when its object is gone', async () => {
  for (const [source, isOver] of [
    ['file', true],
    ['http', true],
    ['api', false],
  ] as const) {
    const finished: Waterfall[] = [];
    const tracer = new PodTracer({
      clock: new ManualClock(),
      onFinished: (waterfall) => void finished.push(waterfall),
    });
    const steps = podTracing(tracer).steps({
      sync: async () => ({ terminal: true }),
      dueAt: () => undefined,
      terminate: async () => undefined,
      finish: async () => undefined,
    });
    const pod = podFrom(source);
    const target = { uid: uidOf(pod), pod };
    await steps.terminate(target, {} as never, never);
    await steps.finish(target, never);
    assert.deepEqual(
      finished.map(({ kind, name, spans }) => [kind, name, spans.map((span) => span.name)]),
      isOver ? [['stop', 'p', ['terminate', 'finish']]] : [],
      source,
    );
  }
});
