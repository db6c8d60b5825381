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

/** `Accept: application/json;as=Flagz;v=v1beta1;g=config.k8s.io` */
function wantsStructured({ request }: Exchange, kind: string): string | undefined {
  for (const range of (request.headers.accept ?? '').split(',')) {
    const [type = '', ...rest] = range.split(';').map((part) => part.trim());
    const params = new Map(rest.map((p) => p.split('=', 2) as [string, string]));
    const version = params.get('v');
    if (type !== 'application/json' || params.get('as') !== kind || params.get('g') !== 'config.k8s.io') continue;
    if (version === 'v1beta1' || version === 'v1alpha1') return version;
  }
  return undefined;
}

const structured = (exchange: Exchange, kind: string, version: string, fields: object): void =>
  reply(
    exchange.response,
    200,
    `${JSON.stringify({ kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: 'kubelet' }, ...fields })}\n`,
    { contentType: 'application/json' },
  );

export const flagzRoutes = ({ clock, flags }: FlagzDeps): Endpoint =>
  exactly('/flagz', (exchange) => {
    const sorted = [...flags].sort(([a], [b]) => (a < b ? -1 : 1));
    const version = wantsStructured(exchange, 'Flagz');
    if (version !== undefined) return structured(exchange, 'Flagz', version, { flags: Object.fromEntries(sorted) });
    const delimiter = delimiterOf(clock);
    const lines = sorted.map(([name, value]) => `${name}${delimiter}${value}\n`);
    reply(exchange.response, 200, `\nkubelet flagz\n${WARNING}\n\n${lines.join('')}`);
  });

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
    const paths = [...deps.paths()].sort();
    const asked = wantsStructured(exchange, 'Statusz');
    if (asked !== undefined)
      return structured(exchange, 'Statusz', asked, {
        startTime: new Date(startedAtMs).toISOString().replace(/\.\d+Z$/, 'Z'),
        uptimeSeconds: upSeconds,
        goVersion: runtimeVersion,
        binaryVersion: version,
        emulationVersion: emulated,
        paths,
      });
    const delimiter = delimiterOf(clock);
    const lines: [string, string][] = [
      ['Started', new Date(startedAtMs).toUTCString()],
      ['Up', upText(upSeconds)],
      ['Go version', runtimeVersion],
      ['Binary version', version],
      ['Emulation version', emulated],
      ['Paths', paths.join(' ')],
    ];
    const body = lines.map(([key, value]) => `${key}${delimiter}${value}\n`).join('');
    reply(exchange.response, 200, `\nkubelet statusz\n${WARNING}\n\n${body}`);
  });

const two = (n: number): string => String(n).padStart(2, '0');
const upText = (seconds: number): string =>
  `${Math.floor(seconds / 3600)} hr ${two(Math.floor(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
