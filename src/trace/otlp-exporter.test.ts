import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { podUid } from '../core/ids.ts';
import { systemClock } from '../lib/clock.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { silentLogger } from '../lib/logger.ts';
import { decode, encode } from '../lib/proto/codec.ts';
import { ExportTraceServiceRequest, TraceService } from './gen/otlp.ts';
import { exportRequest, OtlpExporter, targetOf } from './otlp-exporter.ts';
import type { Waterfall } from './waterfall.ts';

const waterfall: Waterfall = {
  kind: 'start',
  uid: podUid('u1'),
  namespace: 'default',
  name: 'web',
  startedAtMs: 1_700_000_000_123.5,
  tookMs: 200,
  spans: [
    { name: 'runPodSandbox', fromMs: 1.5, toMs: 90 },
    { name: 'image', of: 'busybox', fromMs: 90, toMs: 95, error: 'gone' },
  ],
};

describe('spans on the wire', () => {
  it('one trace per pod, the pieces below the root, times in nanoseconds', () => {
    const request = exportRequest([waterfall], { nodeName: 'n1', version: 'v1' }, systemClock);
    const back = decode(ExportTraceServiceRequest, encode(ExportTraceServiceRequest, request));
    const [root, sandbox, image] = back.resourceSpans[0]?.scopeSpans[0]?.spans ?? [];
    assert.equal(root?.name, 'startPod');
    assert.equal(root?.startTimeUnixNano, 1_700_000_000_123_500_000n);
    assert.equal(root?.endTimeUnixNano, 1_700_000_000_323_500_000n);
    assert.deepEqual(sandbox?.parentSpanId, root?.spanId);
    assert.deepEqual(sandbox?.traceId, root?.traceId);
    assert.equal(sandbox?.startTimeUnixNano, 1_700_000_000_125_000_000n);
    assert.deepEqual(image?.status, { code: 2, message: 'gone' });
  });

  for (const [endpoint, host, port] of [
    ['', 'localhost', 4317],
    ['collector:4000', 'collector', 4000],
    ['http://10.0.0.1:4317', '10.0.0.1', 4317],
    ['[::1]:9', '::1', 9],
    ['collector', 'collector', 4317],
  ] as const)
    it(`endpoint ${JSON.stringify(endpoint)}`, () => assert.deepEqual(targetOf(endpoint), { host, port }));
});

describe('the exporter', () => {
  it('sends what is left when it ends, and survives a collector that is away', async () => {
    const received: ExportTraceServiceRequest[] = [];
    const server = new GrpcServer();
    server.unary(TraceService.export, async (request) => {
      received.push(request);
      return {};
    });
    const socket = join(await mkdtemp(join(tmpdir(), 'kts-otlp-')), 's');
    await server.listen(socket);
    const options = { samplingRatePerMillion: 1e6, nodeName: 'n1', version: 'v1' };
    for (const endpoint of [`unix://${socket}`, '127.0.0.1:1']) {
      const exporter = new OtlpExporter({ clock: systemClock, log: silentLogger }, { endpoint, ...options });
      const stop = new AbortController();
      const running = exporter.run(stop.signal);
      exporter.offer(waterfall);
      stop.abort();
      await running;
    }
    await server.close();
    await rm(dirname(socket), { recursive: true });
    assert.equal(received.length, 1);
    assert.equal(received[0]?.resourceSpans[0]?.scopeSpans[0]?.spans.length, 3);
  });

  it('takes only the configured share', () => {
    const clock = { ...systemClock, random: () => 0.5 };
    const exporter = new OtlpExporter(
      { clock, log: silentLogger },
      { endpoint: '', samplingRatePerMillion: 400_000, nodeName: '', version: '' },
    );
    exporter.offer(waterfall);
    assert.equal(exporter.waiting, 0);
  });
});
