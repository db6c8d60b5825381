// Structured logging: a constant message and fields, in klog's text format or JSON. Parts get a child logger and never
// see the sink. Values are shortened and never include a stack; secrets must not be passed in at all.
import type { Clock } from './clock.ts';
import { messageOf } from './errors.ts';

export type Fields = Readonly<Record<string, unknown>>;

export interface Logger {
  error(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  /** Shown from `-v=4` on. */
  debug(message: string, fields?: Fields): void;
  /** Whether `-v` (or `--vmodule` for this component) is at least `level`. */
  enabled(level: number): boolean;
  child(fields: Fields): Logger;
}

export type Severity = 'E' | 'W' | 'I';
export type Line = { severity: Severity; level: number; atMs: number; message: string; fields: Fields };

/** Where lines go. `write` must not throw. */
export interface LogSink {
  write(line: Line): void;
}

const DEBUG_LEVEL = 4;

export class LeveledLogger implements Logger {
  readonly #clock: Clock;
  readonly #sink: LogSink;
  readonly #verbosity: (component: string) => number;
  readonly #fields: Fields;

  /** `verbosity` is asked for every line, so it may change while the process runs. */
  constructor(clock: Clock, sink: LogSink, verbosity: (component: string) => number, fields: Fields = {}) {
    this.#clock = clock;
    this.#sink = sink;
    this.#verbosity = verbosity;
    this.#fields = fields;
  }

  error(message: string, fields?: Fields): void {
    this.#write('E', 0, message, fields);
  }

  warn(message: string, fields?: Fields): void {
    this.#write('W', 0, message, fields);
  }

  info(message: string, fields?: Fields): void {
    this.#write('I', 0, message, fields);
  }

  debug(message: string, fields?: Fields): void {
    if (this.enabled(DEBUG_LEVEL)) this.#write('I', DEBUG_LEVEL, message, fields);
  }

  enabled(level: number): boolean {
    return level <= this.#verbosity(componentOf(this.#fields));
  }

  child(fields: Fields): Logger {
    return new LeveledLogger(this.#clock, this.#sink, this.#verbosity, { ...this.#fields, ...fields });
  }

  #write(severity: Severity, level: number, message: string, fields: Fields | undefined): void {
    this.#sink.write({
      severity,
      level,
      atMs: this.#clock.now(),
      message,
      fields: fields === undefined ? this.#fields : { ...this.#fields, ...fields },
    });
  }
}

const componentOf = (fields: Fields): string => (typeof fields['component'] === 'string' ? fields['component'] : '');

const MAX_VALUE = 4096;

/** A field's value as one JSON-safe thing: errors become their message chain, bigints strings, long strings are cut. */
function plainValue(value: unknown): unknown {
  if (value instanceof Error) {
    const cause =
      value.cause instanceof Error && value.cause.message !== value.message ? `: ${messageOf(value.cause)}` : '';
    return clip(value.message + cause);
  }
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return clip(value);
  return value;
}

const clip = (text: string): string => (text.length > MAX_VALUE ? `${text.slice(0, MAX_VALUE)}…` : text);

const pad = (n: number, width: number): string => String(n).padStart(width, '0');

/** `I1115 03:12:00.180867  1234 component] "message" key="value"` */
export function formatText(line: Line, pid: number): string {
  const at = new Date(line.atMs);
  const stamp = `${pad(at.getMonth() + 1, 2)}${pad(at.getDate(), 2)} ${pad(at.getHours(), 2)}:${pad(at.getMinutes(), 2)}:${pad(at.getSeconds(), 2)}.${pad(at.getMilliseconds(), 3)}000`;
  const { component: _, ...rest } = line.fields;
  let text = `${line.severity}${stamp} ${String(pid).padStart(7)} ${componentOf(line.fields) || 'kubelet'}] ${JSON.stringify(line.message)}`;
  for (const [key, raw] of Object.entries(rest)) {
    if (raw === undefined) continue;
    const value = plainValue(raw);
    text += ` ${key}=${typeof value === 'number' || typeof value === 'boolean' ? String(value) : JSON.stringify(value)}`;
  }
  return `${text}\n`;
}

/** `{"ts":1763176320180.0,"caller":"component","msg":"…","v":0,…}`, upstream's keys. */
export function formatJson(line: Line): string {
  const { component, ...rest } = line.fields;
  const out: Record<string, unknown> = { ts: line.atMs, caller: component ?? 'kubelet', msg: line.message };
  if (line.severity === 'I') out['v'] = line.level;
  else out['severity'] = line.severity === 'E' ? 'error' : 'warning';
  for (const [key, value] of Object.entries(rest)) if (value !== undefined) out[key] = plainValue(value);
  return `${JSON.stringify(out)}\n`;
}

/** A logger that drops everything, for tests that look elsewhere. */
export const silentLogger: Logger = {
  error: () => undefined,
  warn: () => undefined,
  info: () => undefined,
  debug: () => undefined,
  enabled: () => false,
  child: () => silentLogger,
};
