// Families of samples in Prometheus' text format: families sorted by name, one header each, none without a sample.
import { familyHeader, sample, type Labels } from '../lib/metrics.ts';

export type FamilyType = 'counter' | 'gauge';
export type FamilyHead = { readonly name: string; readonly type: FamilyType; readonly help: string };

export class Exposition {
  readonly #families = new Map<string, { readonly head: FamilyHead; readonly lines: string[] }>();

  add(head: FamilyHead, labels: Labels, value: number, atMs?: number): void {
    let family = this.#families.get(head.name);
    if (family === undefined) this.#families.set(head.name, (family = { head, lines: [] }));
    family.lines.push(sample(head.name, labels, value, atMs));
  }

  text(): string {
    return [...this.#families.values()]
      .sort((a, b) => (a.head.name < b.head.name ? -1 : 1))
      .map(({ head, lines }) => familyHeader(head.name, head.help, head.type) + lines.join(''))
      .join('');
  }
}
