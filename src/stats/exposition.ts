// Families of samples in Prometheus' text format: families sorted by name, one header each, none without a sample.
import { escapeLabel, familyHeader, formatNumber, type Labels } from '../lib/metrics.ts';

export type FamilyType = 'counter' | 'gauge';
export type FamilyHead = { readonly name: string; readonly type: FamilyType; readonly help: string };

/** Labels that many samples share, sorted and escaped once. */
export class SharedLabels {
  readonly #parts: readonly (readonly [name: string, text: string])[];
  readonly #alone: string;

  constructor(labels: Labels) {
    this.#parts = partsOf(labels);
    this.#alone = setOf(this.#parts);
  }

  /** The label set of one sample. */
  text(extra?: Labels): string {
    if (extra === undefined) return this.#alone;
    return setOf([...this.#parts, ...partsOf(extra)].sort(([a], [b]) => (a < b ? -1 : 1)));
  }
}

const partsOf = (labels: Labels): (readonly [string, string])[] =>
  Object.entries(labels)
    .map(([name, value]) => [name, `${name}="${escapeLabel(value)}"`] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1));

const setOf = (parts: readonly (readonly [string, string])[]): string =>
  parts.length === 0 ? '' : `{${parts.map(([, text]) => text).join(',')}}`;

export class Exposition {
  readonly #families = new Map<string, { readonly head: FamilyHead; readonly lines: string[] }>();

  add(head: FamilyHead, labels: Labels, value: number, atMs?: number): void {
    this.addShared(head, new SharedLabels(labels), undefined, value, atMs);
  }

  addShared(head: FamilyHead, labels: SharedLabels, extra: Labels | undefined, value: number, atMs?: number): void {
    let family = this.#families.get(head.name);
    if (family === undefined) this.#families.set(head.name, (family = { head, lines: [] }));
    const stamp = atMs === undefined ? '' : ` ${Math.trunc(atMs)}`;
    family.lines.push(`${head.name}${labels.text(extra)} ${formatNumber(value)}${stamp}\n`);
  }

  text(): string {
    return [...this.#families.values()]
      .sort((a, b) => (a.head.name < b.head.name ? -1 : 1))
      .map(({ head, lines }) => familyHeader(head.name, head.help, head.type) + lines.join(''))
      .join('');
  }
}
