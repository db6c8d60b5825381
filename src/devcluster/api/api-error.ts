// Refusals as the API server words them: an HTTP code, a machine-readable reason, details and a text people know.
import { formatFieldError, formatFieldErrors, type FieldError } from '../../core/validation/field-error.ts';
import type { Json } from './objects.ts';

export type Cause = { readonly reason: string; readonly message: string; readonly field?: string };
export type Details = {
  readonly name?: string;
  readonly group?: string;
  readonly kind?: string;
  readonly uid?: string;
  readonly causes?: readonly Cause[];
  readonly retryAfterSeconds?: number;
};

export type StatusBody = Json & { readonly code: number; readonly message: string; readonly reason: string };

export class ApiError extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: Details | undefined;

  constructor(code: number, reason: string, message: string, details?: Details) {
    super(message);
    this.name = 'ApiError';
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  status(): StatusBody {
    return {
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: this.message,
      reason: this.reason,
      ...(this.details === undefined ? {} : { details: this.details }),
      code: this.code,
    };
  }
}

/** What a refusal is about: the plural resource for most reasons. */
export type Subject = { readonly group: string; readonly resource: string; readonly kind: string };

const qualified = (subject: Subject): string =>
  subject.group === '' ? subject.resource : `${subject.resource}.${subject.group}`;
const grouped = (group: string): { group?: string } => (group === '' ? {} : { group });
const aboutResource = (subject: Subject, name: string): Details => ({
  name,
  ...grouped(subject.group),
  kind: subject.resource,
});

export const notFound = (subject: Subject, name: string): ApiError =>
  new ApiError(404, 'NotFound', `${qualified(subject)} "${name}" not found`, aboutResource(subject, name));

export const alreadyExists = (subject: Subject, name: string): ApiError =>
  new ApiError(409, 'AlreadyExists', `${qualified(subject)} "${name}" already exists`, aboutResource(subject, name));

export const conflict = (subject: Subject, name: string, why: string): ApiError =>
  new ApiError(
    409,
    'Conflict',
    `Operation cannot be fulfilled on ${qualified(subject)} "${name}": ${why}`,
    aboutResource(subject, name),
  );

export const staleObject = (subject: Subject, name: string): ApiError =>
  conflict(
    subject,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  );

export const uidMismatch = (subject: Subject, namespace: string, name: string, asked: string, has: string): ApiError =>
  conflict(
    subject,
    name,
    `StorageError: invalid object, Code: 4, Key: /registry/${subject.resource}/${namespace === '' ? '' : `${namespace}/`}${name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${asked}, UID in object meta: ${has}`,
  );

export const forbidden = (subject: Subject, name: string, why: string, causes?: readonly Cause[]): ApiError =>
  new ApiError(403, 'Forbidden', `${qualified(subject)}${name === '' ? '' : ` "${name}"`} is forbidden: ${why}`, {
    ...(name === '' ? {} : { name }),
    ...grouped(subject.group),
    kind: subject.resource,
    ...(causes === undefined ? {} : { causes }),
  });

export const badRequest = (message: string): ApiError => new ApiError(400, 'BadRequest', message);
export const unauthorized = (): ApiError => new ApiError(401, 'Unauthorized', 'Unauthorized');
export const gone = (message: string): ApiError => new ApiError(410, 'Expired', message);
export const internal = (message: string): ApiError =>
  new ApiError(500, 'InternalError', `Internal error occurred: ${message}`, {
    causes: [{ reason: 'InternalError', message }],
  });
export const unavailable = (message: string): ApiError => new ApiError(503, 'ServiceUnavailable', message);
export const noSuchPath = (): ApiError =>
  new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
export const methodNotAllowed = (): ApiError =>
  new ApiError(405, 'MethodNotAllowed', 'the server does not allow this method on the requested resource', {});
export const notAcceptable = (): ApiError =>
  new ApiError(
    406,
    'NotAcceptable',
    'only the following media types are accepted: application/json, application/yaml',
    {},
  );
export const unsupportedMediaType = (accepted: string): ApiError =>
  new ApiError(
    415,
    'UnsupportedMediaType',
    `the body of the request was in an unknown format - accepted media types include: ${accepted}`,
    {},
  );

/** A problem's text without its field, as the causes of a Status show it. */
const bareText = (error: FieldError): string => formatFieldError(error).slice(error.field.length + 2);

export function invalid(subject: Subject, name: string, errors: readonly FieldError[]): ApiError {
  const kind = subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`;
  return new ApiError(422, 'Invalid', `${kind} "${name}" is invalid: ${formatFieldErrors(errors)}`, {
    name,
    ...grouped(subject.group),
    kind: subject.kind,
    causes: errors.map((e) => ({ reason: `FieldValue${e.kind}`, message: bareText(e), field: e.field })),
  });
}
