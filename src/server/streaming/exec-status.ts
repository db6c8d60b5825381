// How a command ended: from what the runtime says on its error stream to the Status clients of v5 are told. Pure.

type Cause = { readonly reason?: string; readonly message?: string };
type RuntimeStatus = {
  readonly status?: string;
  readonly message?: string;
  readonly reason?: string;
  readonly details?: { readonly causes?: readonly Cause[] };
};

const SUCCESS = { metadata: {}, status: 'Success' } as const;

export const internalError = (message: string): object => ({
  metadata: {},
  status: 'Failure',
  message: `Internal error occurred: ${message}`,
  reason: 'InternalError',
  details: { causes: [{ message }] },
  code: 500,
});

const exited = (code: number): object => ({
  metadata: {},
  status: 'Failure',
  message: `command terminated with non-zero exit code: command terminated with exit code ${code}`,
  reason: 'NonZeroExitCode',
  details: { causes: [{ reason: 'ExitCode', message: String(code) }] },
});

/** `said` is all of the runtime's error stream; nothing means success. */
export function statusOf(said: string): object {
  if (said === '') return SUCCESS;
  let status: RuntimeStatus;
  try {
    status = (JSON.parse(said) as RuntimeStatus | null) ?? {};
  } catch {
    // Not a Status: the text is all there is to tell.
    return internalError(`error stream protocol error: ${said}`);
  }
  if (status.status === 'Success') return SUCCESS;
  if (status.status !== 'Failure') return internalError('error stream protocol error: unknown error');
  if (status.reason !== 'NonZeroExitCode') return internalError(status.message ?? '');
  if (status.details === undefined) return internalError('error stream protocol error: details must be set');
  const cause = status.details.causes?.find((c) => c.reason === 'ExitCode');
  if (cause === undefined) return internalError('error stream protocol error: no ExitCode cause given');
  const code = Number(cause.message);
  const valid = /^\d+$/.test(cause.message ?? '') && code <= 255;
  return valid
    ? exited(code)
    : internalError(`error stream protocol error: invalid exit code value ${JSON.stringify(cause.message)}`);
}
