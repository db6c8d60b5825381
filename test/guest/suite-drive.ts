// The drive with the suites: what runs in the guest, apart from its disk, so that a machine that waits can be told anew.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { build } from 'esbuild';

const ROOT = join(import.meta.dirname, '..', '..');
/** The guest remembers it from its boot. */
const SIZE_BYTES = 32 * 2 ** 20;

/** An archive below `work`; the cluster's suite is one file, since a slow machine would strip types from hundreds. */
export async function suiteDrive(work: string): Promise<string> {
  const [folder, drive] = [join(work, 'suite'), join(work, 'suite.tar')];
  mkdirSync(folder);
  await build({
    entryPoints: [join(import.meta.dirname, 'cluster-suite.ts')],
    outfile: join(folder, 'cluster-suite.mjs'),
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node24',
    logLevel: 'warning',
    alias: { yaml: join(ROOT, 'node_modules', 'yaml', 'browser', 'index.js') },
  });
  cpSync(join(import.meta.dirname, 'suite.sh'), join(folder, 'suite.sh'));
  // Where the bundled modules look for it.
  for (const name of ['scenarios', 'statuses', 'objects.json'])
    cpSync(join(ROOT, 'test', 'golden', name), join(folder, name), { recursive: true });
  execFileSync('tar', ['-cf', drive, '-C', folder, '.']);
  truncateSync(drive, SIZE_BYTES);
  rmSync(folder, { recursive: true });
  return drive;
}
