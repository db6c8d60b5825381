import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Registry } from '../lib/metrics.ts';
import { decode } from '../lib/proto/codec.ts';
import { MetricFamily, MetricType } from './gen/metric-families.ts';
import { delimitedFamilies } from './metric-families.ts';
import { metricsFormat, wantsGzip } from './metrics-format.ts';

const TEXT = 'text/plain; version=0.0.4; charset=utf-8; escaping=';
const DELIMITED =
  'application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=';
const ASKED = 'application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited';

describe('the form of the metrics', () => {
  const rows: readonly (readonly [what: string, accept: string | undefined, contentType: string])[] = [
    ['nothing asked', undefined, `${TEXT}underscores`],
    ['anything', '*/*', `${TEXT}underscores`],
    ['something else', 'application/json', `${TEXT}underscores`],
    ['protobuf', ASKED, `${DELIMITED}underscores`],
    ['protobuf, spaced', ASKED.replaceAll(';', ' ; '), `${DELIMITED}underscores`],
    ['protobuf of something else', 'application/vnd.google.protobuf;encoding=delimited', `${TEXT}underscores`],
    ['protobuf without lengths', ASKED.replace('delimited', 'compact-text'), `${TEXT}underscores`],
    ['text before protobuf', `${ASKED};q=0.4,text/plain;version=0.0.4;q=0.5`, `${TEXT}underscores`],
    ['protobuf before text', `text/plain;q=0.5,${ASKED};q=0.7,*/*;q=0.8`, `${DELIMITED}underscores`],
    ['an unknown version of text, then protobuf', `text/plain;version=1.0.0,${ASKED};q=0.1`, `${DELIMITED}underscores`],
    ['OpenMetrics only', 'application/openmetrics-text;version=1.0.0', `${TEXT}underscores`],
    [
      'Prometheus 2',
      'application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
      `${TEXT}underscores`,
    ],
    [
      'Prometheus 3',
      'application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2',
      `${TEXT}allow-utf-8`,
    ],
    [
      'Prometheus 3 with native histograms',
      `${ASKED};escaping=allow-utf-8;q=0.7,application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.3`,
      `${DELIMITED}allow-utf-8`,
    ],
    ['an unknown escaping', 'text/plain;escaping=nonsense', `${TEXT}underscores`],
  ];
  for (const [what, accept, contentType] of rows)
    it(what, () => assert.equal(metricsFormat(accept).contentType, contentType));

  it('is text for a header that says nothing, and an odd weight counts as none', () => {
    assert.equal(metricsFormat().contentType, `${TEXT}underscores`);
    assert.equal(metricsFormat(`text/plain;q=0.5, ${ASKED};q=much`).contentType, metricsFormat(ASKED).contentType);
    assert.equal(metricsFormat('text/plain;q').contentType, `${TEXT}underscores`);
  });

  for (const [header, wanted] of [
    [undefined, false],
    ['gzip', true],
    ['gzip, deflate, br', true],
    ['gzip;q=0', false],
    ['x-gzip', false],
    ['*', false],
    ['identity, gzip', false],
    ['identity;q=0.5, gzip;q=0.8', true],
    ['br', false],
  ] as const)
    it(`Accept-Encoding: ${header}`, () => assert.equal(wantsGzip(header), wanted));
});

function read(data: Buffer): MetricFamily[] {
  const families: MetricFamily[] = [];
  for (let at = 0; at < data.length;) {
    let length = 0;
    for (let shift = 0; ; shift += 7) {
      const byte = data[at++] ?? 0;
      length += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) break;
    }
    families.push(decode(MetricFamily, data.subarray(at, at + length)));
    at += length;
  }
  return families;
}

describe('families in protobuf', () => {
  it('are those of the text', async () => {
    const registry = new Registry();
    registry.counter('a_total', 'Counts\n"a" and \\').inc({}, 3);
    const gauge = registry.gauge('b', 'Gauge', ['x', 'y']);
    gauge.set(-1.5, { x: 'q"uo\\te}', y: 'li\nne, z="1"' });
    gauge.set(0, { x: '', y: 'é' });
    gauge.set(Infinity, { x: 'inf', y: '' });
    const histogram = registry.histogram('c_seconds', 'Times', ['v'], [0.1, 1]);
    for (const value of [0.05, 0.5, 7]) histogram.observe(value, { v: 'get' });
    histogram.observe(2, { v: 'put' });
    const text = `${registry.render()}# HELP d Stamped\n# TYPE d gauge\nd{n="1"} 4 1700000000123\n`;
    const [a, b, c, d, ...rest] = read(await delimitedFamilies(text));
    assert.deepEqual(rest, []);
    assert.deepEqual([a?.name, a?.help, a?.type], ['a_total', 'Counts\n"a" and \\', MetricType.COUNTER]);
    assert.deepEqual(a?.metric, [{ label: [], counter: { value: 3 }, timestampMs: 0 }]);
    assert.deepEqual(
      b?.metric.map((m) => [m.gauge?.value, ...m.label.map((l) => l.value)]),
      [
        [-1.5, 'q"uo\\te}', 'li\nne, z="1"'],
        [0, '', 'é'],
        [Infinity, 'inf', ''],
      ],
    );
    assert.equal(c?.type, MetricType.HISTOGRAM);
    assert.deepEqual(c.metric, [
      {
        label: [{ name: 'v', value: 'get' }],
        timestampMs: 0,
        histogram: {
          sampleCount: 3,
          sampleSum: 7.55,
          bucket: [
            { cumulativeCount: 1, upperBound: 0.1 },
            { cumulativeCount: 2, upperBound: 1 },
          ],
        },
      },
      {
        label: [{ name: 'v', value: 'put' }],
        timestampMs: 0,
        histogram: {
          sampleCount: 1,
          sampleSum: 2,
          bucket: [
            { cumulativeCount: 0, upperBound: 0.1 },
            { cumulativeCount: 0, upperBound: 1 },
          ],
        },
      },
    ]);
    assert.equal(d?.metric[0]?.timestampMs, 1700000000123);
  });

  it('have every value of a label, whatever its characters', async () => {
    const values = ['\r', 'a\r\nb', '\u2028', '\u2029x', '\u0085', '\\\r', '\0', '"}\r{'];
    const registry = new Registry();
    const gauge = registry.gauge('g', 'Of\u2028two\rlines', ['n']);
    for (const n of values) gauge.set(1, { n });
    const [family, ...rest] = read(await delimitedFamilies(registry.render()));
    assert.deepEqual([family?.help, rest], ['Of\u2028two\rlines', []]);
    assert.deepEqual(family?.metric.map((m) => m.label[0]?.value).sort(), values.sort());
  });

  it('of a large page are all there', async () => {
    const registry = new Registry();
    const gauge = registry.gauge('many', 'Many', ['n']);
    for (let i = 0; i < 20_000; i++) gauge.set(i, { n: `the name of number ${i}` });
    const [family] = read(await delimitedFamilies(registry.render()));
    assert.equal(family?.metric.length, 20_000);
    assert.equal(family.metric[19_999]?.gauge?.value, 19_999);
  });

  it('of nothing are nothing', async () => assert.equal((await delimitedFamilies('')).length, 0));
});
