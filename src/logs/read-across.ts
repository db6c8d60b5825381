// Reads the end of a container's log also where it was rotated a moment ago: what the new file is too short for comes
// from the file before it. For people who look; kubectl gets what the Go kubelet gives it.
import { readLogs, type IsRunning, type LogOptions } from './read-logs.ts';
import { rotatedNames } from './rotated-files.ts';

const NEWLINE = 10;

export async function* readAcrossRotation(
  path: string,
  options: LogOptions & { readonly tailLines: number },
  isRunning: IsRunning,
  signal: AbortSignal,
): AsyncGenerator<Buffer, void, undefined> {
  const [before] = (await rotatedNames(path)).toReversed();
  if (before !== undefined) {
    const missing = options.tailLines - (await countLines(path, options, signal));
    if (missing > 0) yield* formerLines(before, { ...options, tailLines: missing }, signal);
  }
  yield* readLogs(path, options, isRunning, signal);
}

async function countLines(path: string, options: LogOptions, signal: AbortSignal): Promise<number> {
  let count = 0;
  for await (const chunk of readLogs(path, { ...options, follow: false }, () => false, signal))
    for (const byte of chunk) if (byte === NEWLINE) count++;
  return count;
}

/** A file that is compressed or removed by now is left out. */
async function* formerLines(path: string, options: LogOptions, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    yield* readLogs(path, { ...options, follow: false }, () => false, signal);
  } catch {
    signal.throwIfAborted();
  }
}
