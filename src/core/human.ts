// Durations, sizes and progress as people read them. Pure.

/** `17 s`, `3 min 20 s`, `2 h 5 min`, `4 d 3 h`. */
export function humanSpan(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  const [d, h] = [Math.floor(seconds / 86_400), Math.floor(seconds / 3600) % 24];
  const [m, s] = [Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (a: string, b: number, unit: string): string => (b === 0 ? a : `${a} ${b} ${unit}`);
  if (d > 0) return two(`${d} d`, h, 'h');
  if (h > 0) return two(`${h} h`, m, 'min');
  return m > 0 ? two(`${m} min`, s, 's') : `${s} s`;
}

const UNITS = ['B', 'kB', 'MB', 'GB', 'TB'];

/** `734 B`, `5.2 MB`; powers of 1000, as registries and disks count. */
export function humanBytes(count: number): string {
  let [value, unit] = [count, 0];
  while (value >= 999.5 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${unit === 0 || value >= 99.5 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit] ?? ''}`;
}

type Progress = {
  readonly doneBytes: number;
  readonly totalBytes?: number;
  readonly bytesPerSecond?: number;
  readonly remainingSeconds?: number;
};

/** `45 % of 812 MB, 5.0 MB/s, 1 min 30 s left`, as much of it as is known. */
export function humanProgress(progress: Progress | undefined, elapsedMs: number): string {
  const elapsed = `${humanSpan(elapsedMs)} so far`;
  if (progress === undefined) return elapsed;
  const { doneBytes, totalBytes = 0, bytesPerSecond, remainingSeconds } = progress;
  if (totalBytes > 0 && doneBytes >= totalBytes)
    return `all of ${humanBytes(totalBytes)} is here, being unpacked, ${elapsed}`;
  const done =
    totalBytes === 0
      ? `${humanBytes(doneBytes)} done`
      : `${Math.floor((doneBytes / totalBytes) * 100)} % of ${humanBytes(totalBytes)}`;
  const rate = bytesPerSecond === undefined ? [] : [`${humanBytes(bytesPerSecond)}/s`];
  const left = remainingSeconds === undefined ? elapsed : `${humanSpan(remainingSeconds * 1000)} left`;
  return [done, ...rate, left].join(', ');
}
