// Unknown fields: silence, warnings or a refusal, as the client asked (`fieldValidation`).
import { badRequest } from './api-error.ts';
import type { RequestContext } from './strategy.ts';

export function complainAbout(unknownFields: readonly string[], context: RequestContext): void {
  if (unknownFields.length === 0 || context.fieldValidation === 'Ignore') return;
  const texts = unknownFields.map((field) => `unknown field "${field}"`);
  if (context.fieldValidation === 'Strict') throw badRequest(`strict decoding error: ${texts.join(', ')}`);
  context.warnings.push(...texts);
}
