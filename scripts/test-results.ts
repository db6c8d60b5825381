// A reporter of Node's test runner: writes the results of one process as JSON, beside the text for people.
import type { TestEvent } from 'node:test/reporters';
import { relative } from 'node:path';

export type Failure = { readonly file: string; readonly name: string; readonly message: string };
export type Timed = { readonly file: string; readonly name: string; readonly ms: number };
export type Results = {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: readonly { readonly file: string; readonly name: string; readonly why: string }[];
  readonly failures: readonly Failure[];
  /** Milliseconds by file: the sum of its outermost tests. */
  readonly files: Readonly<Record<string, number>>;
  readonly slowest: readonly Timed[];
};

const SLOWEST = 10;

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}

async function* results(source: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  const found = { passed: 0, failed: 0, skipped: [] as Results['skipped'][number][], failures: [] as Failure[] };
  const files: Record<string, number> = {};
  const timed: Timed[] = [];
  for await (const event of source) {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') continue;
    const { name, details, nesting, skip } = event.data;
    const file = event.data.file === undefined ? '' : relative(process.cwd(), event.data.file);
    if (nesting === 0) files[file] = (files[file] ?? 0) + details.duration_ms;
    if (skip !== undefined && skip !== false) {
      found.skipped.push({ file, name, why: skip === true ? '' : skip });
    } else if (event.type === 'test:fail') {
      const error: unknown = 'error' in details ? details.error : undefined;
      // A suite fails with its tests, which have the reason.
      const isByTests = error instanceof Error && 'failureType' in error && error.failureType === 'subtestsFailed';
      if (!isByTests) {
        found.failed++;
        found.failures.push({ file, name, message: messageOf(error) });
      }
    } else if (details.type !== 'suite') {
      found.passed++;
      timed.push({ file, name, ms: details.duration_ms });
    }
  }
  const slowest = timed.sort((a, b) => b.ms - a.ms).slice(0, SLOWEST);
  yield JSON.stringify({ ...found, files, slowest } satisfies Results);
}

/** Node's test runner takes a reporter by this name. */
export { results as default };
