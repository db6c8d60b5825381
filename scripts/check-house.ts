// Rules of the house that a type checker does not know: what assembly may contain, what may be exported, and words.
// Each is precise enough to be kept: see `src/assembly/README.md` and CONTRIBUTING.md for the reasons.
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isSlow, regularExpressions } from './regular-expressions.ts';

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

// ---- what reaches past the ports: each has an owner that says why it may ----

type Owned = { readonly calls: RegExp; readonly owners: readonly string[]; readonly instead: string };

/** `owners` are the beginnings of paths. The page's front runs in a browser; tests and fixtures may. */
const OWNED: readonly Owned[] = [
  {
    calls: /(?<![.\w])(?:setTimeout|setInterval|setImmediate)\b|'(?:node:)?timers(?:\/promises)?'/g,
    owners: ['src/lib/clock.ts'],
    instead: '`Clock.after`, `Clock.sleep`, `runEvery` or `nextTurn`',
  },
  {
    calls: /\bDate\.now\b|\bnew Date\(\)|\bperformance\.(?:now|timeOrigin)\b|\bhrtime\b|\bprocess\.uptime\b/g,
    owners: ['src/lib/clock.ts'],
    instead: '`Clock.now`, `Clock.monotonic` or `processStartMs`',
  },
  {
    calls:
      /\bMath\.random\b|(?<!\.)\brandom(?:Bytes|UUID|Int|Fill|FillSync)\b(?=[^;]*'node:crypto')|\bgetRandomValues\b/g,
    owners: [
      'src/lib/clock.ts',
      'src/lib/atomic-file.ts', // a name that no other process holds
      'src/lib/x509/certificate.ts', // serial numbers nobody may guess
      'src/page/token.ts', // a secret
      'src/devcluster/', // what an API server makes up: UIDs, names, tokens
    ],
    instead: '`Clock.random` or `randomBytes` of lib/clock.ts',
  },
  {
    calls: /\bsystemClock\b/g,
    owners: [
      'src/lib/clock.ts',
      'src/main.ts', // makes the one that everything else is given
      'src/volumes/subpath-child.ts', // a process of its own
      'src/host/kernel-files.ts', // guards the real file threads, of which a process has one set
      'src/host/mounts/hung-children.ts', // gives the real kernel a moment to end a process
      'src/devcluster/', // programs of their own
    ],
    instead: 'the clock that the part is given',
  },
  {
    calls: /\b\w+Sync\b(?=[^;]*'node:)/g,
    owners: [
      'src/host/', // the machine's own files (ADR 10)
      'src/cli/', // programs that do nothing else
      'src/devcluster/',
      'src/lib/version.ts', // read before anything else
      'src/lib/x509/keys.ts',
      'src/oom/kmsg.ts', // what the kernel answers at once
      'src/stats/process-metrics.ts',
    ],
    instead: 'the call that does not block',
  },
  {
    // A name that a container can write to may be a pipe, a device or a link by the time it is opened.
    calls:
      /\bO_(?:WRONLY|RDWR|CREAT|TRUNC|APPEND)\b|(?<![.\w])open(?:Sync)?\([^;]*?'(?:r\+|[wa]x?\+?)'|(?<!\.)\b(?:writeFile|appendFile|truncate|copyFile|cp)(?:Sync)?\b(?=[^;]*'node:fs)|\bcreateWriteStream\b(?=[^;]*'node:fs)/g,
    owners: [
      'src/host/files/', // through the directory's descriptor
      'src/lib/atomic-file.ts', // a name that is new
      'src/host/cgroups/', // the kernel's own files
      'src/host/process/',
      'src/host/mounts/child.ts',
      'src/host/quota/', // in /etc
      'src/shutdown/logind.ts',
      'src/cli/support-bundle.ts', // a new file or none
      'src/page/timeline.ts', // in directories that only the kubelet writes to
      'src/volumes/block/device-map.ts',
      'src/volumes/plugins/attached-disk.ts',
      'src/volumes/plugins/empty-dir-backing.ts',
      'src/volumes/subpath.ts',
      'src/devcluster/', // programs of their own
    ],
    instead: '`OpenDir.createFile` or `writeFileAtomic`',
  },
];
for (const [file, text] of texts) {
  const name = shown(file);
  if (!name.startsWith('src/') || name.startsWith('src/page/front/') || /\.(?:test|fixture)\.ts$/.test(name)) continue;
  const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/[^\n]*/g, '');
  for (const { calls, owners, instead } of OWNED) {
    if (owners.some((owner) => name.startsWith(owner))) continue;
    for (const [call] of code.matchAll(calls)) problems.push(`${name}: \`${call}\` is not its own; use ${instead}`);
  }
}

// ---- regular expressions: one pass over texts of any length; `lib/text.ts` has what cuts without a pattern ----

/** Where a pattern may be tried from every position, because its texts are short. */
const SHORT_TEXTS: readonly { readonly files: string; readonly why: string }[] = [
  { files: 'src/host/', why: 'files and records of the kernel' },
  { files: 'src/oom/', why: 'records of the kernel log' },
  { files: 'src/why/', why: 'texts cut by cut-facts.ts' },
  { files: 'src/config/load.ts', why: 'names of configuration fields' },
  { files: 'src/server/metric-families.ts', why: 'lines of our own metrics' },
  { files: 'src/page/assets.ts', why: 'our own sources' },
  { files: 'src/page/front/', why: 'runs in the browser, on texts that the page has cut' },
  { files: 'src/devcluster/', why: 'programs for development' },
];
for (const [file, text] of texts) {
  const name = shown(file);
  if (!name.startsWith('src/') || /\.(?:test|fixture)\.ts$/.test(name)) continue;
  if (SHORT_TEXTS.some(({ files }) => name.startsWith(files))) continue;
  for (const expression of regularExpressions(text))
    if (isSlow(expression))
      problems.push(
        `${name}: /${expression.source}/ may run to the end from every position; use an anchor or lib/text.ts`,
      );
}

// ---- children: each gets an environment and an input on purpose; `lib/child-environment.ts` has the choices ----

/** The text between the parenthesis at `from` and its partner. */
function inParentheses(code: string, from: number): string {
  for (let at = from, depth = 0; at < code.length; at++) {
    if (code[at] === '(') depth++;
    else if (code[at] === ')' && --depth === 0) return code.slice(from, at);
  }
  return code.slice(from);
}

for (const [file, text] of texts) {
  const name = shown(file);
  if (!name.startsWith('src/') || name.startsWith('src/devcluster/') || /\.(?:test|fixture)\.ts$/.test(name)) continue;
  if (!text.includes('node:child_process')) continue;
  const code = bare(text);
  for (const match of code.matchAll(/(?<![.\w])(?:spawn|execFile|exec|fork)(?=\()/g)) {
    const given = inParentheses(code, match.index + match[0].length);
    if (!/\benv\b/.test(given))
      problems.push(`${name}: \`${match[0]}\` without \`env\` gives its child the whole environment of the agent`);
    if (!/\bstdio\b/.test(given) && !code.includes('endInput('))
      problems.push(
        `${name}: \`${match[0]}\` without \`stdio\` or \`endInput\` gives its child an input that never ends`,
      );
  }
}

// ---- tests wait for conditions; where it is time they wait for, they say what for ----

/** Beginnings of paths. */
const TIMERS_IN_TESTS: readonly string[] = [
  'test/harness/until.ts', // `until` and `timePasses`
  'test/harness/registry.ts', // as slow as a test wants it
  'test/fakes/fake-cri.ts', // likewise
  'test/faults/cri-proxy.ts', // likewise
  'test/contracts/reflector/scripted-server.ts', // likewise
  'test/fuzz/targets-wire.ts', // a bound
  'test/simulation/', // time is simulated there
];
for (const [file, text] of texts) {
  const name = shown(file);
  if (!name.startsWith('test/') || TIMERS_IN_TESTS.some((owner) => name.startsWith(owner))) continue;
  for (const [call] of text.matchAll(/\bsetTimeout\(|\bsystemClock\s*\.sleep\(|'(?:node:)?timers\/promises'/g))
    problems.push(`${name}: \`${call}\`: wait with \`until\`, or with \`timePasses\` and the reason`);
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
console.log(
  'house: assembly only assembles, exports are used, clocks and blocking calls have owners, children get no environment and no open input by accident, patterns take one pass, tests wait for conditions, words are plain',
);
