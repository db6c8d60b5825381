// What a failed pull is called and how it is told. Pure.
import { ContainerStartError, type WaitingReason } from '../core/reasons.ts';
import { GrpcError } from '../lib/grpc/status.ts';
import { messageOf } from '../lib/errors.ts';

/** An image that is not there (yet). `retryAt` is the wall time in milliseconds at which a try makes sense again. */
export class ImageError extends ContainerStartError {
  readonly retryAt: number | undefined;

  constructor(reason: WaitingReason, message: string, retryAt?: number, cause?: unknown) {
    super(reason, message, cause);
    this.name = 'ImageError';
    this.retryAt = retryAt;
  }
}

/** A runtime's own words come with the code Unknown and are shown bare; other codes say something and are kept. */
export const pullErrorText = (err: unknown): string =>
  err instanceof GrpcError && err.codeName !== 'Unknown' ? err.fullText : messageOf(err);

/** Several credentials failed: each distinct text once. */
export function joinErrors(texts: readonly string[]): string {
  const distinct = [...new Set(texts)];
  const joined = distinct.join(', ');
  return distinct.length === 1 ? joined : `[${joined}]`;
}

const SPECIAL: readonly (readonly [WaitingReason, string])[] = [
  ['RegistryUnavailable', 'the registry is unavailable'],
  ['SignatureValidationFailed', 'the signature validation failed'],
];

/** Runtimes tell two kinds of failure by how their text begins. */
export function pullFailure(image: string, text: string): { reason: WaitingReason; message: string } {
  for (const [reason, words] of SPECIAL)
    if (text.startsWith(reason))
      return { reason, message: `image pull failed for ${image} because ${words}${text.slice(reason.length)}` };
  return { reason: 'ErrImagePull', message: text };
}
