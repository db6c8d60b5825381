// Rules of the house that a type checker does not know: what assembly may contain, what may be exported, and words.
// Each is precise enough to be kept: see `src/assembly/README.md` and CONTRIBUTING.md for the reasons.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

const root = join(import.meta.dirname, '..');
const problems: string[] = [];
const sources = globSync(join(root, '{src,test,bench,scripts}/**/*.ts')).filter((file) => !file.includes('/gen/'));
const texts = new Map(sources.map((file) => [file, readFileSync(file, 'utf8')]));
const shown = (file: string): string => relative(root, file);
/** Code without comments, strings and templates' texts. */
const bare = (text: string): string =>
  text
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/\/\/[^\n]*/g, '')
    .replace(/'(?:\\.|[^'\\\n])*'/g, "''")
    .replace(/`(?:\\.|[^`\\])*`/g, '``');

// ---- assembly: constructors and adapters ----

/** Statements that make a rule. What has to be decided is decided in a feature, where it has a table. */
const RULES = ['if', 'for', 'while', 'do', 'switch', 'try', 'catch', 'throw'];
const MAX_LINES = 1300;

let lines = 0;
for (const [file, text] of texts) {
  if (!shown(file).startsWith('src/assembly/') || file.endsWith('.test.ts')) continue;
  lines += text.split('\n').length - 1;
  const code = bare(text);
  for (const word of RULES)
    if (new RegExp(String.raw`(?<![.\w])${word}(?=\s*[({]|\s+new\b)`).test(code))
      problems.push(`${shown(file)}: \`${word}\` is a rule; it belongs to the feature it is about`);
  if (/\.catch\(|\.then\(|clock\.(?:after|sleep)\(|withDeadline\(|runEvery\(/.test(code))
    problems.push(`${shown(file)}: waiting, retrying and falling back are rules; they belong to a feature`);
}
if (lines > MAX_LINES) problems.push(`src/assembly has ${lines} lines, at most ${MAX_LINES}`);

// ---- exports: no value that nobody imports; tests count. Types name parts of signatures and may stand alone ----

const imported = new Map<string, Set<string>>();
const use = (file: string, name: string): void =>
  void (imported.get(file) ?? imported.set(file, new Set()).get(file))?.add(name);
for (const [file, text] of texts) {
  const path = /from '(\.[^']+)'|import\('(\.[^']+)'\)|new URL\('(\.[^']+)'/g;
  for (const match of text.matchAll(/(?:import|export) (?:type )?(\{[^}]*\}|\* as \w+|\w+)[^;{}]*from '(\.[^']+)';/g)) {
    const target = join(dirname(file), match[2] ?? '');
    const list = match[1] ?? '';
    if (!list.startsWith('{')) use(target, '*');
    else
      for (const part of list.slice(1, -1).split(','))
        use(
          target,
          part
            .trim()
            .replace(/^type /, '')
            .split(' as ')[0]
            ?.trim() ?? '',
        );
  }
  for (const match of text.matchAll(path)) {
    const target = match[2] ?? match[3];
    if (target !== undefined) use(join(dirname(file), target), '*');
  }
}
for (const [file, text] of texts) {
  if (!shown(file).startsWith('src/')) continue;
  const used = imported.get(file) ?? new Set<string>();
  if (used.has('*')) continue;
  for (const match of text.matchAll(/^export (?:abstract )?(?:async )?(?:const|let|function\*?|class) (\w+)/gm)) {
    const name = match[1] ?? '';
    if (!used.has(name)) problems.push(`${shown(file)}: ${name} is exported and nobody imports it`);
  }
}

// ---- calls that block: each has an owner that says why it may ----

/** The machine's own files (ADR 10), programs that do nothing else, what is read first, what the kernel answers at once. */
const MAY_BLOCK = [
  'src/host/',
  'src/cli/',
  'src/devcluster/',
  'src/lib/version.ts',
  'src/lib/x509/keys.ts',
  'src/oom/kmsg.ts',
  'src/stats/process-metrics.ts',
];
for (const [file, text] of texts) {
  const name = shown(file);
  if (!name.startsWith('src/') || /\.(?:test|fixture)\.ts$/.test(name)) continue;
  if (MAY_BLOCK.some((owner) => name.startsWith(owner))) continue;
  for (const [, list = ''] of text.matchAll(/^import \{([^}]*)\} from 'node:/gm))
    for (const [call] of list.matchAll(/\w+Sync\b/g))
      problems.push(
        `${name}: \`${call}\` blocks everything else; use the call that does not, or a file that owns such calls`,
      );
}

// ---- words: upstream's where it has one, plain English elsewhere ----

/** Private idiom of the first version (STYLE R17), as identifiers. */
const IDIOM = ['takeInHand', 'letGo', 'forgive', 'lastWords', 'doers', 'noted', 'kit', 'around'];
const idiom = new RegExp(String.raw`(?<![\w$])(?:${IDIOM.join('|')})(?![\w$])`, 'g');
for (const [file, text] of texts)
  if (shown(file) !== 'scripts/check-house.ts')
    for (const [word] of bare(text).matchAll(idiom))
      problems.push(`${shown(file)}: \`${word}\` is private idiom, say what it is`);

for (const problem of [...new Set(problems)].sort()) console.error(problem);
if (problems.length > 0) process.exit(1);
console.log('house: assembly only assembles, exports are used, words are plain');
