// One problem with one field, and how it reads: `spec.containers[0].name: Required value: …`.

export type FieldErrorKind =
  | 'Required'
  | 'Invalid'
  | 'NotSupported'
  | 'Duplicate'
  | 'Forbidden'
  | 'TooLong'
  | 'TooMany'
  | 'NotFound';

export type FieldError = {
  readonly field: string;
  /** The exact place, where `field` as people know it is something larger: a label among `metadata.labels`. */
  readonly at?: string;
  readonly kind: FieldErrorKind;
  /** The value complained about, for the kinds that show it. */
  readonly value?: unknown;
  readonly message: string;
};

const TITLE: Record<FieldErrorKind, string> = {
  Required: 'Required value',
  Invalid: 'Invalid value',
  NotSupported: 'Unsupported value',
  Duplicate: 'Duplicate value',
  Forbidden: 'Forbidden',
  TooLong: 'Too long',
  TooMany: 'Too many',
  NotFound: 'Not found',
};
const SHOWS_VALUE: ReadonlySet<FieldErrorKind> = new Set([
  'Invalid',
  'NotSupported',
  'Duplicate',
  'NotFound',
  'TooMany',
]);
const MAX_SHOWN = 256;

export function formatFieldError(error: FieldError): string {
  const value = SHOWS_VALUE.has(error.kind) ? `: ${shown(error.value)}` : '';
  return `${error.field}: ${TITLE[error.kind]}${value}${error.message === '' ? '' : `: ${error.message}`}`;
}

/** Several problems on one line, in brackets as upstream prints a list of them. */
export function formatFieldErrors(errors: readonly FieldError[]): string {
  const texts = [...new Set(errors.map(formatFieldError))];
  return texts.length === 1 ? (texts[0] ?? '') : `[${texts.join(', ')}]`;
}

function shown(value: unknown): string {
  if (value === undefined || value === null) return 'null';
  const text = JSON.stringify(value);
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}

export const item = (path: string, index: number): string => `${path}[${index}]`;
export const key = (path: string, name: string): string => `${path}[${name}]`;

const quoted = (values: Iterable<string>): string => [...values].map((v) => JSON.stringify(v)).join(', ');

/** Collects problems; the checks add to it and never stop. */
export class Findings {
  readonly list: FieldError[] = [];

  required(field: string, message = ''): void {
    this.list.push({ field, kind: 'Required', message });
  }
  invalid(field: string, value: unknown, message: string, at?: string): void {
    this.list.push({ field, kind: 'Invalid', value, message, ...(at === undefined ? {} : { at }) });
  }
  notSupported(field: string, value: unknown, supported: Iterable<string>): void {
    this.list.push({ field, kind: 'NotSupported', value, message: `supported values: ${quoted(supported)}` });
  }
  duplicate(field: string, value: unknown): void {
    this.list.push({ field, kind: 'Duplicate', value, message: '' });
  }
  forbidden(field: string, message: string): void {
    this.list.push({ field, kind: 'Forbidden', message });
  }
  tooLong(field: string, max: number): void {
    this.list.push({ field, kind: 'TooLong', message: `may not be more than ${max} bytes` });
  }
  tooMany(field: string, count: number, max: number): void {
    this.list.push({ field, kind: 'TooMany', value: count, message: `must have at most ${max} items` });
  }
  notFound(field: string, value: unknown, message = ''): void {
    this.list.push({ field, kind: 'NotFound', value, message });
  }

  /** One `Invalid` for every reason. */
  reasons(field: string, value: unknown, reasons: readonly string[], at?: string): void {
    for (const reason of reasons) this.invalid(field, value, reason, at);
  }
  /** Required when empty, otherwise one `Invalid` for every reason the check gives. */
  name(field: string, value: string | undefined, check: (text: string) => readonly string[]): void {
    if (value === undefined || value === '') this.required(field);
    else this.reasons(field, value, check(value));
  }
  /** Required when empty, otherwise one of the listed values. */
  oneOf(field: string, value: string | undefined, supported: readonly string[]): void {
    if (value === undefined || value === '') this.required(field);
    else if (!supported.includes(value)) this.notSupported(field, value, supported);
  }
  nonNegative(field: string, value: number | undefined): void {
    if (value !== undefined && value < 0) this.invalid(field, value, 'must be greater than or equal to 0');
  }
}
