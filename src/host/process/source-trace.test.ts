import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { pathToFileURL } from 'node:url';
import { buildSync } from 'esbuild';
import { sourceTrace } from './source-trace.ts';

const SOURCE = `const aLongName = (text: string): never => {
  throw new TypeError(text);
};

export default class {
  work(): void {
    aLongName('it broke');
  }
}
`;

it('names the places in the source that places in the bundle come from, and leaves those it does not know', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'kts-trace-'));
  try {
    writeFileSync(join(dir, 'worker.ts'), SOURCE);
    const outfile = join(dir, 'out.mjs');
    buildSync({
      entryPoints: [join(dir, 'worker.ts')],
      outfile,
      format: 'esm',
      bundle: true,
      minify: true,
      sourcemap: 'external',
      sourcesContent: false,
    });
    const { default: Worker } = (await import(pathToFileURL(outfile).href)) as { default: new () => { work(): void } };
    const stack = stackOf(() => new Worker().work());
    assert.match(stack, /out\.mjs:1:\d+/);
    const lines = sourceTrace(stack).split('\n');
    assert.equal(lines[0], 'TypeError: it broke');
    assert.match(lines[1] ?? '', /worker\.ts:2:9\)$/);
    assert.match(lines[2] ?? '', /worker\.ts:7:5\)$/);
    assert.deepEqual(lines.slice(3), stack.split('\n').slice(3), 'this file has no map');
    writeFileSync(`${outfile}.map`, '{"version":3,"sour');
    assert.equal(sourceTrace(stack), stack, 'a damaged map is none');
    rmSync(`${outfile}.map`);
    assert.equal(sourceTrace(stack), stack);
  } finally {
    rmSync(dir, { recursive: true });
  }
});

function stackOf(fn: () => void): string {
  try {
    fn();
  } catch (err) {
    assert.ok(err instanceof Error);
    return err.stack ?? '';
  }
  return assert.fail('should have failed');
}
