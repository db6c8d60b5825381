// Generated from src/server/proto/metric-families.proto by scripts/generate-proto.ts. Do not edit.
import type { FieldSpec, MessageType } from '../../lib/proto/codec.ts';

export const MetricType = {
  COUNTER: 0,
  GAUGE: 1,
  SUMMARY: 2,
  UNTYPED: 3,
  HISTOGRAM: 4,
} as const;
export type MetricType = (typeof MetricType)[keyof typeof MetricType];

export type LabelPair = {
  name: string;
  value: string;
};

export type Gauge = {
  value: number;
};

export type Counter = {
  value: number;
};

export type Untyped = {
  value: number;
};

export type Histogram = {
  sampleCount: number;
  sampleSum: number;
  bucket: Bucket[];
};

export type Bucket = {
  cumulativeCount: number;
  upperBound: number;
};

export type Metric = {
  label: LabelPair[];
  gauge?: Gauge | undefined;
  counter?: Counter | undefined;
  untyped?: Untyped | undefined;
  timestampMs: number;
  histogram?: Histogram | undefined;
};

export type MetricFamily = {
  name: string;
  help: string;
  type: MetricType;
  metric: Metric[];
};

const LabelPairFields = (): readonly FieldSpec[] => (LabelPairTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'value', type: 'string' },
  ]);
let LabelPairTable: readonly FieldSpec[] | undefined;
export const LabelPair: MessageType<LabelPair> = { spec: { name: 'io.prometheus.client.LabelPair', fields: LabelPairFields } };

const GaugeFields = (): readonly FieldSpec[] => (GaugeTable ??= [
    { no: 1, name: 'value', type: 'double' },
  ]);
let GaugeTable: readonly FieldSpec[] | undefined;
export const Gauge: MessageType<Gauge> = { spec: { name: 'io.prometheus.client.Gauge', fields: GaugeFields } };

const CounterFields = (): readonly FieldSpec[] => (CounterTable ??= [
    { no: 1, name: 'value', type: 'double' },
  ]);
let CounterTable: readonly FieldSpec[] | undefined;
export const Counter: MessageType<Counter> = { spec: { name: 'io.prometheus.client.Counter', fields: CounterFields } };

const UntypedFields = (): readonly FieldSpec[] => (UntypedTable ??= [
    { no: 1, name: 'value', type: 'double' },
  ]);
let UntypedTable: readonly FieldSpec[] | undefined;
export const Untyped: MessageType<Untyped> = { spec: { name: 'io.prometheus.client.Untyped', fields: UntypedFields } };

const HistogramFields = (): readonly FieldSpec[] => (HistogramTable ??= [
    { no: 1, name: 'sampleCount', type: 'uint64' },
    { no: 2, name: 'sampleSum', type: 'double' },
    { no: 3, name: 'bucket', type: Bucket.spec, repeated: true },
  ]);
let HistogramTable: readonly FieldSpec[] | undefined;
export const Histogram: MessageType<Histogram> = { spec: { name: 'io.prometheus.client.Histogram', fields: HistogramFields } };

const BucketFields = (): readonly FieldSpec[] => (BucketTable ??= [
    { no: 1, name: 'cumulativeCount', type: 'uint64' },
    { no: 2, name: 'upperBound', type: 'double' },
  ]);
let BucketTable: readonly FieldSpec[] | undefined;
export const Bucket: MessageType<Bucket> = { spec: { name: 'io.prometheus.client.Bucket', fields: BucketFields } };

const MetricFields = (): readonly FieldSpec[] => (MetricTable ??= [
    { no: 1, name: 'label', type: LabelPair.spec, repeated: true },
    { no: 2, name: 'gauge', type: Gauge.spec },
    { no: 3, name: 'counter', type: Counter.spec },
    { no: 5, name: 'untyped', type: Untyped.spec },
    { no: 6, name: 'timestampMs', type: 'int64' },
    { no: 7, name: 'histogram', type: Histogram.spec },
  ]);
let MetricTable: readonly FieldSpec[] | undefined;
export const Metric: MessageType<Metric> = { spec: { name: 'io.prometheus.client.Metric', fields: MetricFields } };

const MetricFamilyFields = (): readonly FieldSpec[] => (MetricFamilyTable ??= [
    { no: 1, name: 'name', type: 'string' },
    { no: 2, name: 'help', type: 'string' },
    { no: 3, name: 'type', type: 'enum' },
    { no: 4, name: 'metric', type: Metric.spec, repeated: true },
  ]);
let MetricFamilyTable: readonly FieldSpec[] | undefined;
export const MetricFamily: MessageType<MetricFamily> = { spec: { name: 'io.prometheus.client.MetricFamily', fields: MetricFamilyFields } };

