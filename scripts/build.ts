// `npm run build`: the kubelet as JavaScript in dist/ (what bin/kubelet then runs), and as one executable, dist/kubelet.
// `--out DIR` builds elsewhere, `--no-executable` leaves the second half out, `--package-version V` names another version.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  createReadStream,
  createWriteStream,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { parseArgs } from 'node:util';
import { build, type BuildOptions, type Plugin } from 'esbuild';

const PIECE_BYTES = 64 * 1024;
const ROOT = join(import.meta.dirname, '..');
const { values } = parseArgs({
  options: { out: { type: 'string' }, 'no-executable': { type: 'boolean' }, 'package-version': { type: 'string' } },
});
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const version = values['package-version'] ?? manifest.version;
/** Empty outside of a clone. */
const commit = spawnSync('git', ['-C', ROOT, 'rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout?.trim() ?? '';
const source = (path: string): string => join(ROOT, 'src', path);

/** Parts that run in a thread or process of their own. */
const PARTS = {
  'decode-worker': source('sources/decode-worker.ts'),
  'subpath-child': source('volumes/subpath-child.ts'),
  'ownership-child': source('volumes/ownership-child.ts'),
  'quota-child': source('host/quota/quota-child.ts'),
  'held-device-child': source('host/block/held-device-child.ts'),
};

/** The page's files that need no build. */
const PAGE_FILES = ['index.html', 'style.css', 'icon.svg'];

/**
 * An `import` of a module of Node's reads all its exports, and with those of node:http comes a whole WebSocket client; as a
 * CommonJS module each of its importers would have an object with a getter for each of them, eleven thousand in all. Here
 * it exports what somebody imports.
 */
const builtins: Plugin = {
  name: 'builtins',
  setup(build) {
    const imported = importsOfBuiltins();
    build.onResolve({ filter: /^node:/ }, ({ path }) => ({ path, namespace: 'builtin' }));
    build.onLoad({ filter: /./, namespace: 'builtin' }, ({ path }) => ({
      contents: [
        `const builtin = process.getBuiltinModule('${path}');`,
        'export default builtin;',
        ...[...(imported.get(path) ?? [])].map((name) => `export const ${name} = builtin.${name};`),
      ].join('\n'),
    }));
  },
};

/** Names by module. One that is overlooked here is an error of the build (`import-is-undefined`, `No matching export`). */
function importsOfBuiltins(): ReadonlyMap<string, ReadonlySet<string>> {
  const found = new Map<string, Set<string>>();
  const sources = globSync('**/*.ts', { cwd: source('.') }).filter((path) => !path.endsWith('.test.ts'));
  for (const path of sources) {
    const text = readFileSync(source(path), 'utf8');
    for (const [, what = '', from = ''] of text.matchAll(/^import ([^;']+) from '(node:[^']+)';/gm)) {
      if (what.startsWith('type ')) continue;
      const names = found.get(from) ?? found.set(from, new Set()).get(from);
      const space = /^\* as (\w+)$/.exec(what)?.[1];
      const named =
        space === undefined
          ? (/\{([^}]*)\}/.exec(what)?.[1] ?? '').split(',').map((each) => each.trim().split(' as ')[0] ?? '')
          : [...text.matchAll(new RegExp(`\\b${space}\\.(\\w+)`, 'g'))].map((each) => each[1] ?? '');
      for (const name of named) if (name !== '' && !name.startsWith('type ')) names?.add(name);
    }
  }
  return found;
}

const common = (form: 'files' | 'executable'): BuildOptions => ({
  bundle: true,
  platform: 'node',
  target: 'node24',
  legalComments: 'none',
  minifySyntax: true,
  minifyWhitespace: true,
  // Names are a quarter of the text that V8 keeps in memory. The executable keeps them: no maps lie beside it.
  minifyIdentifiers: form === 'files',
  keepNames: false,
  logLevel: 'warning',
  logOverride: { 'import-is-undefined': 'error' },
  plugins: [builtins],
  // Its ES modules: what is not used falls away, and it can be loaded late.
  alias: { yaml: join(ROOT, 'node_modules', 'yaml', 'browser', 'index.js') },
  define: {
    KUBELET_TS_VERSION: JSON.stringify(version),
    KUBELET_TS_COMMIT: JSON.stringify(commit),
    KUBELET_TS_FORM: JSON.stringify(form),
  },
});

/**
 * In chunks: what the health port needs is loaded first, the rest behind it, as from source. The names of chunks depend on
 * the maps, and these on the way to the source: it is that from dist/, wherever the files are written.
 */
async function buildFiles(out: string): Promise<void> {
  const { outputFiles } = await build({
    ...common('files'),
    entryPoints: { kubelet: source('main.ts'), ...PARTS },
    format: 'esm',
    splitting: true,
    outdir: join(ROOT, 'dist'),
    outExtension: { '.js': '.mjs' },
    chunkNames: 'chunk-[hash]',
    sourcemap: 'external',
    sourcesContent: false,
    write: false,
  });
  for (const { path, contents } of outputFiles) writeFileSync(join(out, basename(path)), contents);
}

/** The node page for browsers: one script, the one that loads it, and the other files as they are. */
async function buildPage(out: string): Promise<void> {
  const front = source('page/front');
  await build({
    bundle: true,
    format: 'esm',
    target: 'es2024',
    minify: true,
    logLevel: 'warning',
    entryPoints: { 'page-app': join(front, 'app.ts'), 'page-boot': join(front, 'boot.ts') },
    outdir: out,
  });
  for (const name of PAGE_FILES) copyFileSync(join(front, name), join(out, `page-${name}`));
}

const ENTRY = `
if (process.argv[2] === 'subpath-child') void import('./src/volumes/subpath-child.ts');
else if (process.argv[2] === 'ownership-child') void import('./src/volumes/ownership-child.ts');
else if (process.argv[2] === 'quota-child') void import('./src/host/quota/quota-child.ts');
else if (process.argv[2] === 'held-device-child') void import('./src/host/block/held-device-child.ts');
else void import('./src/main.ts');
`;

/** One CommonJS text, since only that can carry its compiled code along. */
async function buildExecutable(out: string, v8Flags: readonly string[]): Promise<void> {
  const work = join(out, 'executable');
  mkdirSync(work, { recursive: true });
  const options: BuildOptions = {
    ...common('executable'),
    format: 'cjs',
    define: {
      ...common('executable').define,
      'import.meta.main': 'true',
      'import.meta.url': '"file:///"',
      'import.meta.dirname': '"/"',
    },
  };
  await build({ ...options, stdin: { contents: ENTRY, resolveDir: ROOT }, outfile: join(work, 'kubelet.cjs') });
  await build({ ...options, entryPoints: [PARTS['decode-worker']], outfile: join(work, 'decode-worker.cjs') });
  const config = {
    main: join(work, 'kubelet.cjs'),
    output: join(work, 'kubelet'),
    disableExperimentalSEAWarning: true,
    useCodeCache: true,
    execArgv: ['--disable-warning=ExperimentalWarning', ...v8Flags],
    execArgvExtension: 'none',
    assets: {
      'decode-worker': join(work, 'decode-worker.cjs'),
      ...Object.fromEntries(
        ['app.js', 'boot.js', ...PAGE_FILES].map((name) => [`page-${name}`, join(out, `page-${name}`)]),
      ),
    },
  };
  writeFileSync(join(work, 'sea.json'), JSON.stringify(config));
  execFileSync(process.execPath, ['--build-sea', join(work, 'sea.json')], { stdio: ['ignore', 'ignore', 'inherit'] });
  await copyInPieces(join(work, 'kubelet'), join(out, 'kubelet'));
  rmSync(work, { recursive: true });
}

/**
 * Node writes the executable with one call, and the kernel then keeps it in large pages: whoever starts it maps those whole,
 * and shows 25 to 40 MB more until the file has left the cache. Written in pieces it is mapped like any other program.
 */
async function copyInPieces(from: string, to: string): Promise<void> {
  await pipeline(
    createReadStream(from, { highWaterMark: PIECE_BYTES }),
    createWriteStream(to, { mode: 0o755, highWaterMark: PIECE_BYTES }),
  );
}

/** The launcher is the one place where they are chosen. */
function v8FlagsOfLauncher(): readonly string[] {
  const text = readFileSync(join(ROOT, 'bin', 'kubelet'), 'utf8');
  const found = /^v8_flags='([^']*)'$/m.exec(text)?.[1];
  if (found === undefined) throw new Error("bin/kubelet no longer says v8_flags='…'");
  return found.split(' ').filter((flag) => flag !== '');
}

const out = resolve(values.out ?? join(ROOT, 'dist'));
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
await buildFiles(out);
await buildPage(out);
if (values['no-executable'] !== true) {
  await buildExecutable(out, v8FlagsOfLauncher());
  console.log(`${join(out, 'kubelet')}: ${(statSync(join(out, 'kubelet')).size / 1e6).toFixed(0)} MB, one file`);
}
console.log(`${join(out, 'kubelet.mjs')}: run by bin/kubelet`);
