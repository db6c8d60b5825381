// A pod that was admitted and turns out to be impossible on this node: it fails with a reason, as if it had been refused.
import { isFault, KubeletError } from '../lib/errors.ts';

export const rejection = (reason: string, message: string): KubeletError =>
  new KubeletError('exhausted', message, { detail: { rejectedFor: reason } });

/** The reason, if the error is such a rejection. */
export function rejectedFor(err: unknown): string | undefined {
  const reason = isFault(err) ? err.detail['rejectedFor'] : undefined;
  return typeof reason === 'string' ? reason : undefined;
}
