// /flagz and /statusz: for people, as text; for programs that ask for it, as JSON.
import type { Clock } from '../../lib/clock.ts';
import { reply } from '../replies.ts';
import { exactly, type Endpoint, type Exchange } from '../router.ts';

const WARNING =
  'Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.';
/** One is chosen per answer, so that nobody comes to rely on it. */
const DELIMITERS = [':', ': ', '=', ' '];

export type FlagzDeps = { readonly clock: Clock; readonly flags: ReadonlyMap<string, string> };

const delimiterOf = (clock: Clock): string => DELIMITERS[Math.floor(clock.random() * DELIMITERS.length)] ?? '=';

const VERSIONS = ['v1beta1', 'v1alpha1'] as const;
const FORMS = ['application/json', 'application/yaml', 'text/plain'] as const;

type Structured = {
  readonly type: 'application/json' | 'application/yaml';
  readonly version: (typeof VERSIONS)[number];
};

/** Programs ask for a kind and version (`application/json;as=Flagz;v=v1beta1;g=config.k8s.io`), everybody else gets text. */
export function negotiate(accept: string, kind: string): Structured | 'text' | 'notAcceptable' {
  if (accept.trim() === '') return 'text';
  const clauses = accept.split(',').map((clause) => {
    const [range = '', ...rest] = clause.split(';').map((part) => part.trim());
    const params = new Map(rest.map((p) => p.split('=', 2) as [string, string]));
    return { range, params, q: Number(params.get('q') ?? 1) };
  });
  for (const { range, params } of clauses.sort((x, y) => y.q - x.q))
    for (const type of FORMS) {
      if (range !== type && range !== '*/*' && range !== `${type.split('/', 1)[0]}/*`) continue;
      const isConverted = ['as', 'g', 'v'].some((key) => params.has(key));
      if (type === 'text/plain') {
        if (!isConverted) return 'text';
        continue;
      }
      const version = VERSIONS.find((known) => known === params.get('v'));
      if (version !== undefined && params.get('as') === kind && params.get('g') === 'config.k8s.io')
        return { type, version };
    }
  return 'notAcceptable';
}

const PEOPLE = /^(curl|Wget|Mozilla\/5\.0)/;

async function respond(exchange: Exchange, kind: string, fields: object, text: () => string): Promise<void> {
  const { query, request, response } = exchange;
  const asked = negotiate(request.headers.accept ?? '', kind);
  if (asked === 'text') return reply(response, 200, text());
  if (asked === 'notAcceptable') {
    const message = `only the following media types are accepted: ${FORMS.join(', ')}`;
    const status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message };
    const body = JSON.stringify({ ...status, reason: 'NotAcceptable', code: 406 });
    return reply(response, 406, `${body}\n`, { contentType: 'application/json' });
  }
  const { type, version } = asked;
  const deprecated = `This version of the ${kind.toLowerCase()} endpoint is deprecated. Please use a newer version.`;
  const headers = version === 'v1alpha1' ? { Warning: `299 - "${deprecated}"` } : {};
  const value = { kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: 'kubelet' }, ...fields };
  const isPretty =
    ['1', 'true'].includes(query.get('pretty') ?? '') || PEOPLE.test(request.headers['user-agent'] ?? '');
  const json = `${JSON.stringify(value, null, isPretty ? 2 : 0)}\n`;
  const body = type === 'application/json' ? json : (await import('yaml')).stringify(value, { sortMapEntries: true });
  reply(response, 200, body, { contentType: `${type};g=config.k8s.io;v=${version};as=${kind}`, headers });
}

export const flagzRoutes = ({ clock, flags }: FlagzDeps): Endpoint =>
  exactly('/flagz', (exchange) => {
    const sorted = [...flags].sort(([a], [b]) => (a < b ? -1 : 1));
    return respond(exchange, 'Flagz', { flags: Object.fromEntries(sorted) }, () =>
      flagzText(sorted, delimiterOf(clock)),
    );
  });

export const flagzText = (flags: readonly (readonly [string, string])[], delimiter: string): string =>
  `\nkubelet flagz\n${WARNING}\n${flags.map(([name, value]) => `${name}${delimiter}${value}\n`).join('')}`;

export type StatuszDeps = {
  readonly clock: Clock;
  readonly startedAtMs: number;
  /** `1.36.0` */
  readonly version: string;
  readonly runtimeVersion: string;
  /** The single-path endpoints of this server. */
  readonly paths: () => readonly string[];
};

export const statuszRoutes = (deps: StatuszDeps): Endpoint =>
  exactly('/statusz', (exchange) => {
    const { clock, startedAtMs, version, runtimeVersion } = deps;
    const upSeconds = Math.max(0, Math.floor((clock.now() - startedAtMs) / 1000));
    const emulated = version.split('.').slice(0, 2).join('.');
    const fields: StatuszFields = {
      startTime: new Date(startedAtMs).toISOString().replace(/\.\d+Z$/, 'Z'),
      uptimeSeconds: upSeconds,
      goVersion: runtimeVersion,
      binaryVersion: version,
      emulationVersion: emulated,
      paths: foldersOf(deps.paths()),
    };
    return respond(exchange, 'Statusz', fields, () => statuszText(fields, delimiterOf(clock)));
  });

export type StatuszFields = {
  /** RFC 3339 */
  readonly startTime: string;
  readonly uptimeSeconds: number;
  readonly goVersion: string;
  readonly binaryVersion: string;
  readonly emulationVersion: string;
  readonly paths: readonly string[];
};

export function statuszText(fields: StatuszFields, delimiter: string): string {
  const lines: [string, string][] = [
    ['Started', unixDate(fields.startTime)],
    ['Up', upText(fields.uptimeSeconds)],
    ['Go version', fields.goVersion],
    ['Binary version', fields.binaryVersion],
    ['Emulation version', fields.emulationVersion],
    ['Paths', fields.paths.join(' ')],
  ];
  return `\nkubelet statusz\n${WARNING}\n\n${lines.map(([key, value]) => `${key}${delimiter} ${value}\n`).join('')}`;
}

/** `/metrics` stands for everything below it. */
export const foldersOf = (paths: readonly string[]): readonly string[] =>
  [...new Set(paths.map((path) => `/${path.split('/')[1] ?? ''}`))].filter((folder) => folder !== '/').sort();

/** As `date` writes it: `Wed Nov 18 23:07:08 UTC 2026`. */
function unixDate(time: string): string {
  const [, weekday = '', day = '', month = '', year = '', clock = ''] =
    /^(\w+), 0?(\d+) (\w+) (\d+) (\S+)/.exec(new Date(time).toUTCString()) ?? [];
  return `${weekday} ${month} ${day.padStart(2)} ${clock} UTC ${year}`;
}

const two = (n: number): string => String(n).padStart(2, '0');
const upText = (seconds: number): string =>
  `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
