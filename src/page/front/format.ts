// Numbers and times as people read them.

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function bytes(value: number): string {
  let amount = value;
  let unit = 0;
  while (Math.abs(amount) >= 1024 && unit < UNITS.length - 1) {
    amount /= 1024;
    unit++;
  }
  return `${unit === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[unit]}`;
}

/** `250m`, `1.25` */
export function cores(value: number): string {
  if (value >= 0.9995) return value.toFixed(2);
  const milli = value * 1000;
  return milli >= 10 ? `${Math.round(milli)}m` : milli < 0.05 ? '0m' : `${milli.toFixed(1)}m`;
}

export function duration(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`;
  const seconds = ms / 1000;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return age(ms);
}

/** Coarse, as in tables: `45s`, `12m`, `3h`, `9d`. */
export function age(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 120) return `${minutes}m`;
  const hours = Math.floor(minutes / 60);
  return hours < 48
    ? `${hours}h${minutes % 60 === 0 || hours > 9 ? '' : ` ${minutes % 60}m`}`
    : `${Math.floor(hours / 24)}d`;
}

export const percent = (part: number, whole: number): number =>
  whole > 0 ? Math.min(100, Math.max(0, (part / whole) * 100)) : 0;

export const count = (value: number): string => value.toLocaleString('en');

export const clockTime = (ms: number): string => {
  const date = new Date(ms);
  const two = (n: number): string => String(n).padStart(2, '0');
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
};

export const day = (ms: number): string =>
  new Date(ms).toLocaleDateString('en', { weekday: 'short', month: 'short', day: 'numeric' });

export const iso = (ms: number): string => new Date(ms).toISOString();
