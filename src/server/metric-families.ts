// A page of metrics from Prometheus' text format into its protobuf form: families one after another, each behind its
// length. Reads what our own pages write, which is a strict form of that text.
import { nextTurn } from '../lib/clock.ts';
import { encode, type Partially } from '../lib/proto/codec.ts';
import { MetricFamily, MetricType, type Bucket, type LabelPair, type Metric } from './gen/metric-families.ts';

type Labels = readonly LabelPair[];
type Draft = { readonly name: string; readonly help: string; type: number; readonly metrics: Map<string, DraftMetric> };
type DraftMetric = { labels: Labels; value: number; atMs: number; sum: number; count: number; buckets: Bucket[] };

const TYPES = new Map<string, number>([
  ['counter', MetricType.COUNTER],
  ['gauge', MetricType.GAUGE],
  ['histogram', MetricType.HISTOGRAM],
  ['untyped', MetricType.UNTYPED],
]);
// The flag `s`: carriage returns and U+2028 are characters of a value like others.
const SAMPLE = /^([^\s{]+)(?:\{(.*)\})? (\S+)(?: (-?\d+))?$/s;
const LABEL = /([^=,]+)="((?:[^"\\]|\\.)*)"/gs;
/** Pages of busy nodes are megabytes: others get their turn after so many characters. */
const TURN_AFTER = 256 * 1024;

export async function delimitedFamilies(text: string): Promise<Buffer> {
  const out: Buffer[] = [];
  let family: Draft | undefined;
  let pauseAt = TURN_AFTER;
  const finish = (): void => {
    if (family !== undefined) out.push(...delimited(family));
  };
  for (let at = 0; at < text.length;) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? text.length : end);
    at += line.length + 1;
    if (line.startsWith('# HELP ')) {
      finish();
      family = begun(line);
    } else if (line.startsWith('# TYPE ')) setType(family, line);
    else if (family !== undefined) addSample(family, line);
    if (at < pauseAt) continue;
    pauseAt = at + TURN_AFTER;
    await nextTurn();
  }
  finish();
  return Buffer.concat(out);
}

function begun(line: string): Draft {
  const [, name = '', help = ''] = /^# HELP (\S+) (.*)$/s.exec(line) ?? [];
  return { name, help: unescaped(help), type: MetricType.UNTYPED, metrics: new Map() };
}

function setType(family: Draft | undefined, line: string): void {
  if (family !== undefined) family.type = TYPES.get(line.split(' ')[3] ?? '') ?? MetricType.UNTYPED;
}

function addSample(family: Draft, line: string): void {
  const [, name = '', set = '', value = '', stamp] = SAMPLE.exec(line) ?? [];
  if (name === '') return;
  const all = [...set.matchAll(LABEL)].map(([, label = '', text = '']) => ({ name: label, value: unescaped(text) }));
  const isBucket = family.type === MetricType.HISTOGRAM && name === `${family.name}_bucket`;
  const labels = isBucket ? all.filter((l) => l.name !== 'le') : all;
  const key = JSON.stringify(labels);
  let metric = family.metrics.get(key);
  if (metric === undefined)
    family.metrics.set(key, (metric = { labels, value: 0, atMs: 0, sum: 0, count: 0, buckets: [] }));
  const number = numberOf(value);
  if (isBucket) {
    const upperBound = numberOf(all.find((l) => l.name === 'le')?.value ?? '');
    // The last one is the count itself and left out, as upstream does.
    if (upperBound !== Infinity) metric.buckets.push({ cumulativeCount: number, upperBound });
  } else if (family.type === MetricType.HISTOGRAM && name === `${family.name}_sum`) metric.sum = number;
  else if (family.type === MetricType.HISTOGRAM) metric.count = number;
  else metric.value = number;
  if (stamp !== undefined) metric.atMs = Number(stamp);
}

const numberOf = (text: string): number => (text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text));

const unescaped = (text: string): string =>
  text.includes('\\') ? text.replace(/\\(.)/gs, (_, c: string) => (c === 'n' ? '\n' : c)) : text;

function delimited({ name, help, type, metrics }: Draft): readonly Buffer[] {
  const metric = [...metrics.values()].map((draft) => metricOf(type, draft));
  const message = encode(MetricFamily, { name, help, type, metric } as MetricFamily);
  return [varint(message.length), message];
}

function metricOf(type: number, { labels, value, atMs, sum, count, buckets }: DraftMetric): Partially<Metric> {
  const common = { label: labels, timestampMs: atMs };
  if (type === MetricType.COUNTER) return { ...common, counter: { value } };
  if (type === MetricType.GAUGE) return { ...common, gauge: { value } };
  if (type === MetricType.UNTYPED) return { ...common, untyped: { value } };
  return { ...common, histogram: { sampleCount: count, sampleSum: sum, bucket: buckets } };
}

function varint(value: number): Buffer {
  const bytes: number[] = [];
  for (; value > 0x7f; value >>>= 7) bytes.push((value & 0x7f) | 0x80);
  return Buffer.from([...bytes, value]);
}
