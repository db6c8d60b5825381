// Which form of the metrics a scraper gets: upstream's choice by Accept and Accept-Encoding, header for header. Pure.

export type MetricsFormat = { readonly kind: 'text' | 'delimited'; readonly contentType: string };

const PROTOBUF = 'application/vnd.google.protobuf';
const FAMILY = 'io.prometheus.client.MetricFamily';
const TEXT_VERSION = '0.0.4';
const ESCAPINGS = new Set(['allow-utf-8', 'underscores', 'dots', 'values']);

type Clause = { readonly value: string; readonly params: ReadonlyMap<string, string>; readonly q: number };

function clausesOf(header: string): readonly Clause[] {
  return header.split(',').map((text) => {
    const [value = '', ...rest] = text.split(';').map((part) => part.trim());
    const params = new Map(
      rest.map((p) => p.split('=', 2).map((side) => side.trim())).map(([key = '', of = key]) => [key, of]),
    );
    const q = Number(params.get('q') ?? 1);
    return { value: value.toLowerCase(), params, q: Number.isNaN(q) ? 1 : q };
  });
}

const wildness = ({ value }: Clause): number => (value.startsWith('*') ? 2 : value.endsWith('/*') ? 1 : 0);

/**
 * The first clause, by preference, that names a form there is; text where none does. OpenMetrics is not offered, as
 * upstream. A scheme for names that need escaping is confirmed whatever clause asked for it: ours never need it.
 */
export function metricsFormat(accept = ''): MetricsFormat {
  let escaping = 'underscores';
  for (const { value, params } of clausesOf(accept).toSorted((a, b) => b.q - a.q || wildness(a) - wildness(b))) {
    const wanted = params.get('escaping') ?? '';
    if (ESCAPINGS.has(wanted)) escaping = wanted;
    if (value === PROTOBUF && params.get('proto') === FAMILY && params.get('encoding') === 'delimited')
      return {
        kind: 'delimited',
        contentType: `${PROTOBUF}; proto=${FAMILY}; encoding=delimited; escaping=${escaping}`,
      };
    if (value === 'text/plain' && (params.get('version') ?? TEXT_VERSION) === TEXT_VERSION) break;
  }
  return { kind: 'text', contentType: `text/plain; version=${TEXT_VERSION}; charset=utf-8; escaping=${escaping}` };
}

/** Packed only where that is preferred to sending it as it is: `*` does not ask for it, `q=0` refuses it. */
export function wantsGzip(acceptEncoding = ''): boolean {
  const clauses = clausesOf(acceptEncoding);
  const best = (name: string): number =>
    Math.max(-1, ...clauses.filter((c) => c.value === name || c.value === '*').map((c) => c.q));
  return best('gzip') > 0 && best('gzip') > best('identity');
}
