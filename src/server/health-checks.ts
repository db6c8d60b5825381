// The health checks of the main port, and the words their results are told in. Pure but for the checks themselves.

export type HealthCheck = {
  readonly name: string;
  /** The reason when it fails. */
  readonly failing: () => string | undefined;
};

export type HealthAnswer = { readonly ok: boolean; readonly body: string };

/** Told of every result, or how often it was the same; for /metrics/slis. */
export type HealthObserver = (name: string, ok: boolean, times?: number) => void;

export function answerHealth(
  checks: readonly HealthCheck[],
  query: URLSearchParams,
  observe: HealthObserver = () => undefined,
): HealthAnswer {
  const excluded = new Set(query.getAll('exclude'));
  const unknown = [...excluded].filter((name) => !checks.some((check) => check.name === name)).sort();
  let lines = '';
  let ok = true;
  for (const { name, failing } of checks) {
    if (excluded.has(name)) {
      lines += `[+]${name} excluded: ok\n`;
      continue;
    }
    const healthy = failing() === undefined;
    observe(name, healthy);
    ok &&= healthy;
    lines += healthy ? `[+]${name} ok\n` : `[-]${name} failed: reason withheld\n`;
  }
  if (unknown.length > 0) {
    const names = unknown.map((name) => JSON.stringify(name)).join(',');
    lines += `warn: some health checks cannot be excluded: no matches for ${names}\n`;
  }
  if (!ok) return { ok, body: `${lines}healthz check failed\n` };
  return { ok, body: query.has('verbose') ? `${lines}healthz check passed\n` : 'ok' };
}
