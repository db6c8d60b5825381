// Which files beside a log go, which get compressed. Pure; at most `maxFiles` files of a log remain, the current one
// among them, and the newest rotated one stays plain so that readers can finish it.
import { COMPRESSED, isCompressed, isRotated, TEMPORARY } from './rotated-files.ts';

export type RotationPlan = {
  /** What a crash left: unfinished files, and plain ones beside their compressed selves. Or a compression under way. */
  readonly leftovers: readonly string[];
  /** Good files that are too many. */
  readonly excess: readonly string[];
  readonly compress: readonly string[];
};

/** `siblings`: everything beside the log that carries its name, oldest first. `rotating`: one more will come now. */
export function planRotated(
  log: string,
  siblings: readonly string[],
  maxFiles: number,
  rotating: boolean,
): RotationPlan {
  const rotated = siblings.filter((path) => isRotated(log, path));
  const packed = new Set(rotated.filter(isCompressed).map((path) => path.slice(0, -COMPRESSED.length)));
  const leftovers = siblings.filter((path) => path.endsWith(TEMPORARY) || packed.has(path));
  const kept = rotated.filter((path) => !packed.has(path));
  const room = Math.max(0, maxFiles - 1 - (rotating ? 1 : 0));
  const tooMany = Math.max(0, kept.length - room);
  const rest = kept.slice(tooMany);
  const plain = rest.filter((path) => !isCompressed(path));
  return {
    leftovers,
    excess: kept.slice(0, tooMany),
    compress: rotating ? plain : plain.filter((path) => path !== rest.at(-1)),
  };
}

const two = (n: number): string => String(n).padStart(2, '0');

/** `<log>.<YYYYMMDD-HHMMSS>`, local time as upstream has it; later than every name there is, so that names sort. */
export function rotatedName(log: string, siblings: readonly string[], nowMs: number): string {
  const newest = siblings.filter((path) => isRotated(log, path)).at(-1) ?? '';
  for (let second = 0; ; second++) {
    const name = stamped(log, nowMs + second * 1000);
    // Past a clock that went far back, order is worth less than a name that says when.
    if (name > newest.slice(0, name.length)) return name;
    if (second >= MAX_SECONDS_AHEAD && !siblings.some((path) => path.startsWith(name))) return name;
  }
}

const MAX_SECONDS_AHEAD = 3600;

function stamped(log: string, ms: number): string {
  const at = new Date(ms);
  const date = `${at.getFullYear()}${two(at.getMonth() + 1)}${two(at.getDate())}`;
  return `${log}.${date}-${two(at.getHours())}${two(at.getMinutes())}${two(at.getSeconds())}`;
}

/** When to look again: before the fastest growing log is full, but not more than once a second. */
export function nextLookMs(
  logs: Iterable<{ readonly size: number; readonly bytesPerMs: number }>,
  maxBytes: number,
  intervalMs: number,
): number {
  let next = intervalMs;
  for (const { size, bytesPerMs } of logs)
    if (bytesPerMs > 0) next = Math.min(next, Math.max((maxBytes - size) / bytesPerMs, 0));
  return Math.max(next, Math.min(1000, intervalMs));
}
