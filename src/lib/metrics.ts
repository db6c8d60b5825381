// A small metrics registry in Prometheus' text format. Families keep upstream's names, label names and buckets; label
// values come from closed sets, never from a request, so the number of series is bounded.

export type Labels = Readonly<Record<string, string>>;
type MetricType = 'counter' | 'gauge' | 'histogram';

interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: MetricType;
  lines(): Iterable<string>;
}

export class Registry {
  readonly #families = new Map<string, Family>();

  counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    return this.#add(new Counter(name, help, labelNames));
  }

  gauge(name: string, help: string, labelNames: readonly string[] = []): Gauge {
    return this.#add(new Gauge(name, help, labelNames));
  }

  histogram(
    name: string,
    help: string,
    labelNames: readonly string[] = [],
    buckets: readonly number[] = DEFAULT_BUCKETS,
  ): Histogram {
    return this.#add(new Histogram(name, help, labelNames, buckets));
  }

  /** A family whose samples are computed when somebody asks. */
  collected(
    name: string,
    help: string,
    type: 'counter' | 'gauge',
    collect: () => Iterable<readonly [Labels, number]>,
  ): void {
    this.#add({
      name,
      help,
      type,
      *lines() {
        for (const [labels, value] of collect()) yield sample(name, labels, value);
      },
    });
  }

  /** Every family that is registered here, whether or not it has a sample. */
  heads(): Iterable<Pick<Family, 'name' | 'help'>> {
    return this.#families.values();
  }

  /** Families without a sample are left out, as upstream does. */
  render(): string {
    let text = '';
    for (const family of [...this.#families.values()].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const lines = [...family.lines()];
      if (lines.length > 0) text += familyHeader(family.name, family.help, family.type) + lines.join('');
    }
    return text;
  }

  #add<F extends Family>(family: F): F {
    if (this.#families.has(family.name)) throw new Error(`metric ${family.name} is registered twice`);
    this.#families.set(family.name, family);
    return family;
  }
}

export const familyHeader = (name: string, help: string, type: MetricType): string =>
  `# HELP ${name} ${help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n# TYPE ${name} ${type}\n`;

export const escapeLabel = (value: string): string =>
  value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n');

/** One exposition line; labels are printed sorted by name. */
function sample(name: string, labels: Labels, value: number, timestampMs?: number): string {
  const names = Object.keys(labels).sort();
  const set = names.length === 0 ? '' : `{${names.map((n) => `${n}="${escapeLabel(labels[n] ?? '')}"`).join(',')}}`;
  return `${name}${set} ${formatNumber(value)}${timestampMs === undefined ? '' : ` ${Math.trunc(timestampMs)}`}\n`;
}

export function formatNumber(value: number): string {
  if (value === Infinity) return '+Inf';
  if (value === -Infinity) return '-Inf';
  if (Number.isNaN(value)) return 'NaN';
  return Math.abs(value) >= 1e21 ? value.toExponential() : String(value);
}

/** The bound of a bucket is part of a series' name: it is written as Go does, `1.048576e+06`. */
function formatBound(bound: number): string {
  const size = Math.abs(bound);
  if (size === 0 || (size >= 1e-4 && size < 1e6)) return formatNumber(bound);
  return bound.toExponential().replace(/(?<=e[+-])(?=\d$)/, '0');
}

const seriesKey = (labelNames: readonly string[], labels: Labels): string =>
  labelNames.map((n) => labels[n] ?? '').join('\u0000');

const pick = (labelNames: readonly string[], labels: Labels): Labels =>
  Object.fromEntries(labelNames.map((n) => [n, labels[n] ?? '']));

abstract class Scalar implements Family {
  readonly name: string;
  readonly help: string;
  abstract readonly type: MetricType;
  readonly #labelNames: readonly string[];
  readonly #series = new Map<string, { labels: Labels; value: number }>();

  constructor(name: string, help: string, labelNames: readonly string[]) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
    if (labelNames.length === 0) this.series({});
  }

  value(labels: Labels = {}): number {
    return this.#series.get(seriesKey(this.#labelNames, labels))?.value ?? 0;
  }

  *lines(): Iterable<string> {
    for (const { labels, value } of this.#series.values()) yield sample(this.name, labels, value);
  }

  protected series(labels: Labels): { value: number } {
    const key = seriesKey(this.#labelNames, labels);
    let entry = this.#series.get(key);
    if (entry === undefined) this.#series.set(key, (entry = { labels: pick(this.#labelNames, labels), value: 0 }));
    return entry;
  }

  protected drop(labels: Labels): void {
    this.#series.delete(seriesKey(this.#labelNames, labels));
  }
}

export class Counter extends Scalar {
  readonly type = 'counter';

  inc(labels: Labels = {}, by = 1): void {
    this.series(labels).value += by;
  }

  /** For series bound to an object that is gone (a pod's probes). */
  remove(labels: Labels): void {
    this.drop(labels);
  }
}

export class Gauge extends Scalar {
  readonly type = 'gauge';

  set(value: number, labels: Labels = {}): void {
    this.series(labels).value = value;
  }

  add(by: number, labels: Labels = {}): void {
    this.series(labels).value += by;
  }

  remove(labels: Labels): void {
    this.drop(labels);
  }
}

export const DEFAULT_BUCKETS: readonly number[] = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

/** Each bound is made from the one before, as upstream's are: they are part of the names of series, to the last digit. */
export function exponentialBuckets(start: number, factor: number, count: number): number[] {
  const bounds: number[] = [];
  for (let bound = start; bounds.length < count; bound *= factor) bounds.push(bound);
  return bounds;
}

type HistogramSeries = { labels: Labels; counts: Float64Array; sum: number; count: number };

export class Histogram implements Family {
  readonly name: string;
  readonly help: string;
  readonly type = 'histogram';
  readonly #labelNames: readonly string[];
  readonly #buckets: readonly number[];
  readonly #series = new Map<string, HistogramSeries>();

  constructor(name: string, help: string, labelNames: readonly string[], buckets: readonly number[]) {
    this.name = name;
    this.help = help;
    this.#labelNames = labelNames;
    this.#buckets = buckets;
    if (labelNames.length === 0) this.#seriesOf({});
  }

  observe(value: number, labels: Labels = {}): void {
    const entry = this.#seriesOf(labels);
    entry.sum += value;
    entry.count++;
    const i = this.#buckets.findIndex((bound) => value <= bound);
    if (i >= 0) entry.counts[i] = (entry.counts[i] ?? 0) + 1;
  }

  /** A series is there from now on, also if nothing is ever observed. */
  show(labels: Labels): void {
    this.#seriesOf(labels);
  }

  remove(labels: Labels): void {
    this.#series.delete(seriesKey(this.#labelNames, labels));
  }

  *lines(): Iterable<string> {
    for (const { labels, counts, sum, count } of this.#series.values()) {
      let cumulative = 0;
      for (const [i, bound] of this.#buckets.entries()) {
        cumulative += counts[i] ?? 0;
        yield sample(`${this.name}_bucket`, { ...labels, le: formatBound(bound) }, cumulative);
      }
      yield sample(`${this.name}_bucket`, { ...labels, le: '+Inf' }, count);
      yield sample(`${this.name}_sum`, labels, sum);
      yield sample(`${this.name}_count`, labels, count);
    }
  }

  #seriesOf(labels: Labels): HistogramSeries {
    const key = seriesKey(this.#labelNames, labels);
    let entry = this.#series.get(key);
    if (entry === undefined) {
      entry = {
        labels: pick(this.#labelNames, labels),
        counts: new Float64Array(this.#buckets.length),
        sum: 0,
        count: 0,
      };
      this.#series.set(key, entry);
    }
    return entry;
  }
}
