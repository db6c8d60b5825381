// Names and labels: what the server accepts, and the random tails it makes.
import { randomBytes } from 'node:crypto';
import { dns1123Label, dns1123Subdomain, qualifiedName } from '../../core/names.ts';
import { item, type Findings } from '../../core/validation/field-error.ts';
import { checkAnnotations, checkLabels } from '../../core/validation/labels.ts';
import type { Meta } from './objects.ts';

/** Letters and digits that make no words and are not mistaken for each other. */
const SAFE = 'bcdfghjklmnpqrstvwxz2456789';

export const randomTail = (length = 5): string =>
  [...randomBytes(length)].map((byte) => SAFE[byte % SAFE.length]).join('');

const MAX_GENERATED_BASE = 58;
export const generatedName = (base: string): string => base.slice(0, MAX_GENERATED_BASE) + randomTail();

export type NameStyle = 'subdomain' | 'label' | 'path';

export function checkName(f: Findings, meta: Meta, style: NameStyle): void {
  const field = 'metadata.name';
  const { name } = meta;
  if (name === '') f.required(field, 'name or generateName is required');
  else if (style === 'path') {
    if (name === '.' || name === '..' || /[/%]/.test(name))
      f.invalid(field, name, "may not be '.', '..' or contain '/' or '%'");
  } else f.reasons(field, name, style === 'label' ? dns1123Label(name) : dns1123Subdomain(name));
}

export function checkMetadata(f: Findings, meta: Meta): void {
  checkLabels(f, 'metadata.labels', meta.labels);
  checkAnnotations(f, 'metadata.annotations', meta.annotations);
  (meta.finalizers ?? []).forEach((name, i) => f.reasons(item('metadata.finalizers', i), name, qualifiedName(name)));
}
