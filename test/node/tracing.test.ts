// Traces of a whole node on a real runtime: the start of a pod and its stop arrive at a collector, with their steps.
// runs: gate
// shows: tracing (OTLP) of pod starts and stops
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { GrpcServer } from '../../src/lib/grpc/server.ts';
import type { Pod } from '../../src/core/pod.ts';
import { PODS } from '../../src/kube/resources.ts';
import { TraceService, type Span } from '../../src/trace/gen/otlp.ts';
import { BUSYBOX_IMAGE } from '../harness/containerd.ts';
import { NODE_NAME, startNode } from '../harness/node.ts';
import { temporaryFolder } from '../harness/temporary-folder.ts';
import { until } from '../harness/until.ts';

const namespace = 'default';
const never = new AbortController().signal;
const CONTAINER = {
  name: 'c',
  image: BUSYBOX_IMAGE,
  imagePullPolicy: 'Never',
  command: ['sh', '-c', 'trap "exit 0" TERM; while :; do sleep 0.1; done'],
};
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'traced', namespace },
  spec: { nodeName: NODE_NAME, automountServiceAccountToken: false, containers: [CONTAINER] },
};

it('the start and the stop of a pod arrive with their steps', async () => {
  const spans: Span[] = [];
  const collector = new GrpcServer();
  collector.unary(TraceService.export, async ({ resourceSpans }) => {
    for (const { scopeSpans } of resourceSpans) for (const scope of scopeSpans) spans.push(...scope.spans);
    return {};
  });
  const socket = join(temporaryFolder('traces-'), 's');
  await collector.listen(socket);
  const tracing = `tracing: { endpoint: "unix://${socket}", samplingRatePerMillion: 1000000 }`;
  const node = await startNode({ config: tracing });
  try {
    const root = (name: string): Promise<Span> =>
      until(`the span ${name}`, () => {
        const found = spans.find((span) => span.name === name);
        if (found === undefined) throw new Error(`spans so far: ${spans.map((span) => span.name).join(' ')}`);
        return found;
      });
    const stepsOf = ({ traceId, spanId }: Span): string[] =>
      spans
        .filter((s) => Buffer.from(s.traceId).equals(traceId) && Buffer.from(s.parentSpanId).equals(spanId))
        .map((s) => s.name);
    await until('the pod may be made', () =>
      node.client.create<Pod>(PODS, { namespace }, POD as unknown as Pod, never),
    );
    const start = await root('startPod');
    for (const step of ['runPodSandbox', 'createContainer', 'startContainer'])
      assert.ok(stepsOf(start).includes(step), `${step} is none of ${stepsOf(start).join(' ')}`);
    await node.client.delete(PODS, { namespace, name: 'traced' }, {}, never);
    const stop = await root('stopPod');
    assert.ok(stepsOf(stop).includes('stopContainer'), stepsOf(stop).join(' '));
    assert.ok(stop.endTimeUnixNano > start.endTimeUnixNano);
  } finally {
    await node.stop();
    await collector.close();
  }
});
