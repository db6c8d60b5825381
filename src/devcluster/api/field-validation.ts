// Unknown fields: silence, warnings or a refusal, as the client asked (`fieldValidation`).
import { badRequest, type ApiError } from './api-error.ts';
import type { RequestContext } from './strategy.ts';

type Kind = { readonly kind: string; readonly version: string };

export const undecodable = ({ kind, version }: Kind, why: string): ApiError =>
  badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${why}`);

export function complainAbout(unknownFields: readonly string[], kind: Kind, context: RequestContext): void {
  if (unknownFields.length === 0 || context.fieldValidation === 'Ignore') return;
  const texts = unknownFields.map((field) => `unknown field "${field}"`);
  if (context.fieldValidation === 'Strict') throw undecodable(kind, `strict decoding error: ${texts.join(', ')}`);
  context.warnings.push(...texts);
}
