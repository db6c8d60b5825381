// How a failed allocation shows in the pod's status. Pure.
import { KubeletError, messageOf } from '../../lib/errors.ts';

export type AllocationRejection = { readonly reason: string; readonly message: string };

/** Errors that name a reason of their own keep their words; of others upstream says that they are unexpected. */
export function allocationRejection(err: unknown): AllocationRejection {
  const reason = err instanceof KubeletError ? err.detail['reason'] : undefined;
  return typeof reason === 'string'
    ? { reason, message: messageOf(err) }
    : {
        reason: 'UnexpectedAdmissionError',
        message: `Allocate failed due to ${messageOf(err)}, which is unexpected`,
      };
}
