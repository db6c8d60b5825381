// The query of a log request: the fields of v1 PodLogOptions, read and checked as the API machinery does. Pure.

export type LogQuery = {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly sinceNanos?: bigint;
  readonly tailLines?: number;
  readonly limitBytes?: number;
  readonly stream?: 'All' | 'Stdout' | 'Stderr';
};

export type LogQueryResult =
  | { readonly ok: true; readonly options: LogQuery }
  | { readonly ok: false; readonly status: 400 | 422; readonly body: string };

const UNDECODABLE: LogQueryResult = { ok: false, status: 400, body: '{"message": "Unable to decode query."}' };
const INVALID: LogQueryResult = { ok: false, status: 422, body: '{"message": "Invalid request."}' };
const INT64 = /^[+-]?\d{1,19}$/;
const MAX_INT64 = 2n ** 63n - 1n;
const RFC3339 = /^(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})([.,]\d+)?(Z|[+-]\d{2}:\d{2})$/;

class Undecodable extends Error {}

export function parseLogQuery(query: URLSearchParams, splitStreams: boolean, nowMs: number): LogQueryResult {
  try {
    return checked(query, splitStreams, nowMs);
  } catch (err) {
    if (err instanceof Undecodable) return UNDECODABLE;
    throw err;
  }
}

function checked(query: URLSearchParams, splitStreams: boolean, nowMs: number): LogQueryResult {
  const tail = query.get('tail') ?? '';
  const tailLines = tail === 'all' ? undefined : integer(tail === '' ? query.get('tailLines') : tail);
  const limitBytes = integer(query.get('limitBytes'));
  const sinceSeconds = integer(query.get('sinceSeconds'));
  const sinceTime = time(query.get('sinceTime'));
  const stream = query.get('stream') ?? 'All';
  if (stream !== 'All' && stream !== 'Stdout' && stream !== 'Stderr') return INVALID;
  if (stream !== 'All' && tailLines !== undefined) return INVALID;
  if ((tailLines ?? 0n) < 0n || (limitBytes ?? 1n) < 1n || (sinceSeconds ?? 1n) < 1n) return INVALID;
  if (sinceSeconds !== undefined && sinceTime !== undefined) return INVALID;
  if (stream !== 'All' && !splitStreams) return streamsOff(stream);
  const since = sinceSeconds === undefined ? sinceTime : BigInt(nowMs) * 1_000_000n - sinceSeconds * 1_000_000_000n;
  return {
    ok: true,
    options: {
      follow: flag(query.get('follow')),
      previous: flag(query.get('previous')),
      timestamps: flag(query.get('timestamps')),
      ...(since === undefined ? {} : { sinceNanos: since }),
      ...(tailLines === undefined ? {} : { tailLines: Number(tailLines) }),
      ...(limitBytes === undefined ? {} : { limitBytes: Number(limitBytes) }),
      ...(splitStreams ? { stream } : {}),
    },
  };
}

const streamsOff = (stream: string): LogQueryResult => ({
  ok: false,
  status: 400,
  body: `unable to return the given log stream: "${stream}". Please enable PodLogsQuerySplitStreams feature gate in kubelet`,
});

/** Everything but absence, `0` and `false` is yes. */
const flag = (value: string | null): boolean => value !== null && value !== '0' && value.toLowerCase() !== 'false';

function integer(value: string | null): bigint | undefined {
  if (value === null) return undefined;
  if (!INT64.test(value)) throw new Undecodable();
  const number = BigInt(value.replace('+', ''));
  if (number > MAX_INT64 || number < -MAX_INT64 - 1n) throw new Undecodable();
  return number;
}

function time(value: string | null): bigint | undefined {
  if (value === null || value === '' || value === 'null') return undefined;
  const parts = RFC3339.exec(value);
  const seconds = parts === null ? NaN : Date.parse(`${parts[1] ?? ''}${parts[3] ?? ''}`);
  if (parts === null || Number.isNaN(seconds)) throw new Undecodable();
  const fraction = (parts[2] ?? '.').slice(1).padEnd(9, '0').slice(0, 9);
  return BigInt(seconds) * 1_000_000n + BigInt(fraction);
}
