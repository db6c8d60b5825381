// The plan of a test run: each test file says itself how it runs, and durations of the last run decide the order.
//   // runs: gate, alone          a line of the file's opening comment; the words are below
//   // shows: <row>               the row of the README's table "What works" that a gate file tests on a real runtime
// Pure, but for reading the files.
import { globSync, readFileSync } from 'node:fs';

/**
 * gate: part of `npm test`; all other files in test/ run in `npm run test:all` only.
 * alone: nothing runs beside it, because it measures.
 * at rest: it waits most of its time and runs in a lane of its own.
 * spare time: it only computes and runs at a low priority.
 * own process: a unit test that changes what belongs to its process.
 * default ports: it starts a cluster on default ports, so only one such file runs at a time.
 */
const WORDS = ['gate', 'alone', 'at rest', 'spare time', 'own process', 'default ports'] as const;
export type Word = (typeof WORDS)[number];
export type TestFile = { readonly file: string; readonly words: ReadonlySet<Word>; readonly shows: readonly string[] };
export type Scope = 'gate' | 'all';
/** Seconds by test file. */
export type Durations = Readonly<Record<string, number>>;
/** Files that run one after the other. */
export type Job = readonly string[];
export type Lane = 'usual' | 'at rest' | 'spare time' | 'alone';
export type Plan = {
  readonly unitTests: readonly Job[];
  readonly ownProcess: Job;
  readonly lanes: Readonly<Record<Lane, readonly Job[]>>;
};

const OPENING = /^(?:\/\/[^\n]*\n)*/;
const isWord = (word: string): word is Word => (WORDS as readonly string[]).includes(word);

export function parseTestFile(file: string, text: string): TestFile {
  const opening = OPENING.exec(text)?.[0] ?? '';
  const lines = (key: string): string[] =>
    opening.split('\n').flatMap((line) => (line.startsWith(`// ${key}: `) ? [line.slice(`// ${key}: `.length)] : []));
  const words = lines('runs').flatMap((line) => line.split(', '));
  const unknown = words.filter((word) => !isWord(word));
  if (unknown.length > 0)
    throw new Error(`${file}: "// runs: ${unknown.join(', ')}" is unknown; known: ${WORDS.join(', ')}`);
  return { file, words: new Set(words.filter(isWord)), shows: lines('shows') };
}

export const readTestFiles = (): TestFile[] =>
  globSync(['src/**/*.test.ts', 'test/**/*.test.ts'])
    .sort()
    .map((file) => parseTestFile(file, readFileSync(file, 'utf8')));

const isUnitTest = ({ file }: TestFile): boolean => file.startsWith('src/');

/** The longest first; a file without a known duration may be long. */
export const longestFirst = (files: readonly string[], durations: Durations): string[] =>
  files.toSorted((a, b) => (durations[b] ?? Infinity) - (durations[a] ?? Infinity) || (a < b ? -1 : 1));

/** Deals files out so that each process has about the same to do. */
export function deal(files: readonly string[], processes: number, durations: Durations): Job[] {
  const known = files.flatMap((file) => durations[file] ?? []).toSorted((a, b) => a - b);
  const usual = known[Math.floor(known.length / 2)] ?? 1;
  const parts = Array.from({ length: processes }, () => ({ files: [] as string[], seconds: 0 }));
  for (const file of longestFirst(files, durations)) {
    const least = parts.reduce((a, b) => (b.seconds < a.seconds ? b : a));
    least.files.push(file);
    least.seconds += durations[file] ?? usual;
  }
  return parts.map((part) => part.files);
}

function laneOf({ words }: TestFile): Lane {
  if (words.has('alone')) return 'alone';
  if (words.has('at rest')) return 'at rest';
  return words.has('spare time') ? 'spare time' : 'usual';
}

export function planRun(files: readonly TestFile[], scope: Scope, processes: number, durations: Durations): Plan {
  const unitTests = files.filter(isUnitTest);
  const names = (list: readonly TestFile[]): string[] => list.map(({ file }) => file);
  const others = files.filter((test) => !isUnitTest(test) && (scope === 'all' || test.words.has('gate')));
  const jobsOf = (lane: Lane): Job[] => {
    const inLane = others.filter((test) => laneOf(test) === lane);
    const inTurn = names(inLane.filter(({ words }) => words.has('default ports')));
    const free = longestFirst(names(inLane.filter(({ words }) => !words.has('default ports'))), durations);
    return [...(inTurn.length > 0 ? [inTurn] : []), ...free.map((file) => [file])];
  };
  return {
    unitTests: deal(names(unitTests.filter(({ words }) => !words.has('own process'))), processes, durations),
    ownProcess: names(unitTests.filter(({ words }) => words.has('own process'))),
    lanes: {
      usual: jobsOf('usual'),
      'at rest': jobsOf('at rest'),
      'spare time': jobsOf('spare time'),
      alone: jobsOf('alone'),
    },
  };
}
