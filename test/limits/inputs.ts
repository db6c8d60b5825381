// From a seed and a number to an input: a surface, a few places in it, a value for each. Pure.
import { seeded, type Random } from '../fuzz/mutate.ts';
import { put, type Path, type Place, type Shape } from './shapes.ts';
import { valuesOf, type Value } from './values.ts';

export type Schema = {
  readonly shape: Shape;
  readonly sample: unknown;
  readonly places: readonly Place[];
  /** Only values that the schema allows can be said. */
  readonly typed?: boolean;
};

export type Input = {
  readonly number: number;
  readonly what: readonly { readonly path: Path; readonly value: Value }[];
  readonly isLarge: boolean;
  readonly make: () => unknown;
};

/** Of all inputs, those with a large value. */
const LARGE_SHARE = 0.06;

export function inputOf(schema: Schema, seed: number, number: number, most = 1, largeShare = LARGE_SHARE): Input {
  const random = seeded((seed + number * 7919) >>> 0);
  const isLarge = random() < largeShare;
  const count = isLarge ? 1 : 1 + Math.floor(random() * most);
  const what = Array.from({ length: count }, () => draw(schema, random, isLarge));
  const make = (): unknown =>
    what.reduce((sample, { path, value }) => put(sample, schema.shape, path, value.make()), schema.sample);
  return { number, what, isLarge: what.some(({ value }) => value.large), make };
}

function draw({ places, typed }: Schema, random: Random, large: boolean): { path: Path; value: Value } {
  const place = pick(random, places);
  const values = valuesOf(place.shape, typed);
  const fitting = values.filter((value) => value.large === large);
  return { path: place.path, value: pick(random, fitting.length > 0 ? fitting : values) };
}

const pick = <T>(random: Random, list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;

export const described = ({ number, what }: Input): string =>
  `INPUT=${number} (${what.map(({ path, value }) => `${path.join('.')}: ${value.name}`).join('; ')})`;
