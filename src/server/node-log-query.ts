// The node log query: which services or which file, since when, how much. Read and checked as upstream does, then turned
// into arguments of journalctl; nothing of it ever reaches a shell. Pure.

export type NodeLogQuery = {
  readonly services: readonly string[];
  readonly files: readonly string[];
  readonly sinceTime?: Date;
  readonly untilTime?: Date;
  readonly boot?: number;
  readonly tailLines?: number;
  readonly pattern?: string;
};

export type NodeLogQueryResult =
  | { readonly ok: true; readonly query: NodeLogQuery }
  | { readonly ok: false; readonly status: 400 | 406; readonly body: string };

/** Where service logs come from. */
export interface NodeLogs {
  /** The units the journal knows; empty without a journal. */
  journalUnits(signal: AbortSignal): Promise<readonly string[]>;
  /** The output of journalctl with these arguments. */
  journal(args: readonly string[], signal: AbortSignal): AsyncIterable<Buffer>;
  /** Rejects with `notFound`; never leaves the log folder. */
  file(path: string, signal: AbortSignal): Promise<AsyncIterable<Buffer>>;
}

const MAX_SERVICES = 4;
const MAX_NAME = 256;
const MAX_TAIL = 100_000;
const NAME = /^[a-zA-Z\-_.:0-9@]+$/;
const RFC3339 = /^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$/;

const invalid = (field: string, value: unknown, why: string): string =>
  `${field}: Invalid value: ${JSON.stringify(value)}: ${why}`;

export function parseNodeLogQuery(params: URLSearchParams): NodeLogQueryResult {
  const errors: string[] = [];
  const named = params.getAll('query').filter((q) => q !== '');
  const files = named.filter((q) => /[/\\]/.test(q));
  const services = named.filter((q) => !/[/\\]/.test(q));
  const sinceTime = time(params, 'sinceTime', errors);
  const untilTime = time(params, 'untilTime', errors);
  const boot = integer(params, 'boot', errors);
  const tailLines = integer(params, 'tailLines', errors);
  const pattern = params.get('pattern') ?? '';
  if (errors.length > 0) return { ok: false, status: 400, body: aggregate(errors) };
  const query: NodeLogQuery = {
    services,
    files,
    ...(sinceTime === undefined ? {} : { sinceTime }),
    ...(untilTime === undefined ? {} : { untilTime }),
    ...(boot === undefined ? {} : { boot }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(pattern === '' ? {} : { pattern }),
  };
  const problems = validate(query);
  return problems.length > 0 ? { ok: false, status: 406, body: aggregate(problems) } : { ok: true, query };
}

const aggregate = (errors: readonly string[]): string =>
  errors.length === 1 ? `${errors[0]}\n` : `[${errors.join(', ')}]\n`;

function time(params: URLSearchParams, name: string, errors: string[]): Date | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  const date = new Date(text);
  if (RFC3339.test(text) && !Number.isNaN(date.getTime())) return date;
  errors.push(invalid(name, text, 'invalid time format'));
  return undefined;
}

function integer(params: URLSearchParams, name: string, errors: string[]): number | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  if (/^[+-]?\d{1,15}$/.test(text)) return Number(text);
  errors.push(invalid(name, text, `strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`));
  return undefined;
}

export const hasOptions = ({ sinceTime, untilTime, boot, tailLines, pattern }: NodeLogQuery): boolean =>
  [sinceTime, untilTime, boot, tailLines, pattern].some((option) => option !== undefined);

function validate(query: NodeLogQuery): string[] {
  const { services, files, sinceTime, untilTime, boot, tailLines, pattern } = query;
  const errors: string[] = [];
  if (files.length === 0 && services.length === 0) errors.push('query: Required value: cannot be empty with options');
  else if (files.length > 0 && services.length > 0)
    errors.push(invalid('query', [...files, ...services].join(', '), 'cannot specify a file and service'));
  else if (files.length > 1) errors.push(invalid('query', files.join(', '), 'cannot specify more than one file'));
  else if (files.length === 1 && hasOptions(query))
    errors.push(invalid('query', files[0], 'cannot specify file with options'));
  if (services.length > MAX_SERVICES)
    errors.push(`query: Too many: ${services.length}: must have at most ${MAX_SERVICES} items`);
  for (const name of services) {
    if (name.length > MAX_NAME) errors.push(invalid('query', name.slice(0, MAX_NAME), 'length must be less than 100'));
    else if (!NAME.test(name)) errors.push(invalid('query', name, 'input contains unsupported characters'));
  }
  if (sinceTime !== undefined && untilTime !== undefined && untilTime < sinceTime)
    errors.push(invalid('untilTime', untilTime.toISOString(), 'must be after `sinceTime`'));
  if (boot !== undefined && boot > 0) errors.push(invalid('boot', boot, 'must be less than 1'));
  if (tailLines !== undefined && (tailLines < 0 || tailLines > MAX_TAIL))
    errors.push(invalid('tailLines', tailLines, `must be between 0 and ${MAX_TAIL}`));
  if (pattern !== undefined && !compiles(pattern)) errors.push(invalid('pattern', pattern, 'is no regular expression'));
  return errors;
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, 'u') instanceof RegExp;
  } catch {
    // That is the answer.
    return false;
  }
}

const stamp = (date: Date): string => date.toISOString().slice(0, 19).replace('T', ' ');

export function journalArguments(query: NodeLogQuery): string[] {
  const { services, sinceTime, untilTime, boot, tailLines, pattern } = query;
  return [
    '--utc',
    '--no-pager',
    '--output=short-precise',
    ...(sinceTime === undefined ? [] : [`--since=${stamp(sinceTime)}`]),
    ...(untilTime === undefined ? [] : [`--until=${stamp(untilTime)}`]),
    ...(tailLines === undefined ? [] : ['--pager-end', `--lines=${tailLines}`]),
    ...services.map((name) => `--unit=${name}`),
    ...(pattern === undefined ? [] : [`--grep=${pattern}`]),
    ...(boot === undefined ? [] : ['--boot', String(boot)]),
  ];
}

/** Where a service that has no unit may keep its log. */
export const logFilesOf = (service: string): readonly string[] => [
  service,
  `${service}.log`,
  `${service}/${service}.log`,
];
