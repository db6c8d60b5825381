// Where in the source a failure of the bundle was: its names are short and its lines long, so a stack is of little use
// without the maps that lie beside it. They are read only when the process is about to end.
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { fileURLToPath } from 'node:url';

type SourceMapPayload = ConstructorParameters<typeof SourceMap>[0];

const PLACE = /(file:\/\/[^\s()]+\.mjs):(\d+):(\d+)/g;

/** The stack with places in the source; those without a map stay as they are. */
export function sourceTrace(stack: string): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replace(PLACE, (place: string, url: string, line: string, column: string) => {
    if (!maps.has(url)) maps.set(url, mapOf(url));
    const origin = maps.get(url)?.findOrigin(Number(line), Number(column));
    if (origin === undefined || !('fileName' in origin)) return place;
    return `${origin.fileName.replace(/^(\.\.\/)+/, '')}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function mapOf(url: string): SourceMap | undefined {
  try {
    return new SourceMap(JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    // Run from source, or the maps were taken away.
    return undefined;
  }
}
