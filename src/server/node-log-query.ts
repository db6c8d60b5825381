// The node log query: which services or which file, since when, how much. Read and checked as upstream does, then turned
// into arguments of journalctl; nothing of it ever reaches a shell. Pure.
import { join } from 'node:path';

/** A time, and the way it was written. */
type Moment = { readonly date: Date; readonly text: string };

export type NodeLogQuery = {
  readonly services: readonly string[];
  readonly files: readonly string[];
  readonly sinceTime?: Moment;
  readonly untilTime?: Moment;
  readonly boot?: number;
  readonly tailLines?: number;
  readonly pattern?: string;
};

export type NodeLogQueryResult =
  /** Undefined when nothing of a query was asked for. */
  { readonly ok: true; readonly query: NodeLogQuery | undefined } | { readonly ok: false; readonly body: string };

/** Where service logs come from. */
export interface NodeLogs {
  /** Whether the journal knows the service. */
  isInJournal(service: string, signal: AbortSignal): Promise<boolean>;
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

/** Values as upstream shows them. */
const invalid = (field: string, value: string | number | readonly string[], why: string): string =>
  `${field}: Invalid value: ${JSON.stringify(value)}: ${why}`;

export function readNodeLogQuery(params: URLSearchParams): NodeLogQueryResult {
  const errors: string[] = [];
  const asked = params.getAll('query');
  const files = asked.filter((q) => /[/\\]/.test(q));
  const services = asked.filter((q) => !/[/\\]/.test(q) && q.trim() !== '');
  if (params.has('query') && files.length === 0 && services.length === 0)
    errors.push(invalid('query', asked, 'may not be empty'));
  const sinceTime = time(params, 'sinceTime', errors);
  const untilTime = time(params, 'untilTime', errors);
  const boot = integer(params, 'boot', errors);
  const tailLines = integer(params, 'tailLines', errors);
  const pattern = params.get('pattern') ?? '';
  if (errors.length > 0) return { ok: false, body: aggregate(errors) };
  const query: NodeLogQuery = {
    services,
    files,
    ...(sinceTime === undefined ? {} : { sinceTime }),
    ...(untilTime === undefined ? {} : { untilTime }),
    ...(boot === undefined ? {} : { boot }),
    ...(tailLines === undefined ? {} : { tailLines }),
    ...(pattern === '' ? {} : { pattern }),
  };
  const isQuery = files.length > 0 || services.length > 0 || hasOptions(query);
  return { ok: true, query: isQuery ? query : undefined };
}

/** Nothing is told twice. */
function aggregate(errors: readonly string[]): string {
  const different = [...new Set(errors)];
  return different.length === 1 ? `${different[0]}\n` : `[${different.join(', ')}]\n`;
}

function time(params: URLSearchParams, name: string, errors: string[]): Moment | undefined {
  const text = params.get(name) ?? '';
  if (text === '') return undefined;
  const date = new Date(text);
  if (RFC3339.test(text) && !Number.isNaN(date.getTime())) return { date, text };
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

/** Why the query cannot be answered, if it cannot. */
export function problemsOf(query: NodeLogQuery): string | undefined {
  const { services, files, sinceTime, untilTime, boot, tailLines, pattern } = query;
  const errors: string[] = [];
  for (const name of services) {
    if (Buffer.byteLength(name) > MAX_NAME) errors.push(invalid('query', name, `length must be less than ${MAX_NAME}`));
    else if (!NAME.test(name)) errors.push(invalid('query', name, 'input contains unsupported characters'));
  }
  if (services.length > MAX_SERVICES)
    errors.push(`query: Too many: ${services.length}: must have at most ${MAX_SERVICES} items`);
  if (files.length === 0 && services.length === 0) errors.push('query: Required value: cannot be empty with options');
  else if (files.length > 0 && services.length > 0)
    errors.push(invalid('query', `[${files.join(' ')}], [${services.join(' ')}]`, 'cannot specify a file and service'));
  else if (files.length > 1) errors.push(invalid('query', files, 'cannot specify more than one file'));
  else if (files.length === 1 && hasOptions(query))
    errors.push(invalid('query', files, 'cannot specify file with options'));
  if (sinceTime !== undefined && untilTime !== undefined && sinceTime.date > untilTime.date)
    errors.push(invalid('untilTime', untilTime.text, 'must be after `sinceTime`'));
  if (boot !== undefined && boot > 0) errors.push(invalid('boot', boot, 'must be less than 1'));
  if (tailLines !== undefined && (tailLines < 0 || tailLines > MAX_TAIL))
    errors.push(invalid('tailLines', tailLines, `must be between 0 and ${MAX_TAIL}, inclusive`));
  if (pattern !== undefined && !compiles(pattern)) errors.push(invalid('pattern', pattern, 'is no regular expression'));
  return errors.length === 0 ? undefined : aggregate(errors);
}

/** What is wrong with a file that is not there. */
export const missingFile = (root: string, file: string): string =>
  `${invalid('query', [file], `stat ${join(root, file)}: no such file or directory`)}\n`;

/** The journal's and Go's expressions know groups that JavaScript writes otherwise or not at all. */
function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern.replaceAll(/\(\?[a-zA-Z-]+\)/g, '').replaceAll('(?P<', '(?<')) instanceof RegExp;
  } catch {
    // That is the answer.
    return false;
  }
}

const stamp = ({ date }: Moment): string => date.toISOString().slice(0, 19).replace('T', ' ');

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
