// Text to plain objects, and a field's place in the text. YAML as Kubernetes tools read it: YAML 1.1 booleans and octal
// numbers, no dates, no base-60 numbers; JSON is a subset. Bounded in depth, aliases and documents, never throws.
import { isAlias, isCollection, isMap, isPair, isScalar, isSeq, LineCounter, parseAllDocuments } from 'yaml';
import type { Document, Node, Tags } from 'yaml';

export type Position = { readonly line: number; readonly column: number };
export type TextError = Position & { readonly message: string };
export type Decoded = {
  /** Plain values of the documents that are not empty, with their number in the text. */
  readonly documents: readonly { readonly index: number; readonly value: unknown }[];
  readonly errors: readonly TextError[];
  /** What is odd and read all the same. */
  readonly warnings: readonly TextError[];
};

const MAX_DEPTH = 100;
const TOO_DEEP = `nested more than ${MAX_DEPTH} levels deep`;
const MAX_ALIASES = 100;
const MAX_DOCUMENTS = 1000;
const MAX_ERRORS = 10;
/** YAML 1.1 types that Kubernetes has never read. */
const NOT_READ = new Set(['tag:yaml.org,2002:timestamp', 'tag:yaml.org,2002:binary', 'tag:yaml.org,2002:set']);
const NOT_READ_FORMATS = new Set(['TIME']);

const tags = (all: Tags): Tags => [
  ...all.filter(
    (tag) =>
      typeof tag === 'string' ||
      (!NOT_READ.has(tag.tag) && !NOT_READ_FORMATS.has(('format' in tag && tag.format) || '')),
  ),
  'intOct',
];

type Parsed = { readonly documents: readonly Document[]; readonly lines: LineCounter };

function parse(text: string): Parsed {
  const lines = new LineCounter();
  const documents = parseAllDocuments(text, {
    lineCounter: lines,
    version: '1.1',
    schema: 'yaml-1.1',
    merge: true,
    customTags: tags,
    // Its check compares every key with every other; ours is below.
    uniqueKeys: false,
    prettyErrors: false,
    logLevel: 'silent',
  });
  return { documents: documents as readonly Document[], lines };
}

const START: Position = { line: 1, column: 1 };

export function decodeText(text: string): Decoded {
  try {
    return decodeParsed(parse(text));
  } catch (err) {
    // The composer recurses; text nested deep enough to end its stack is refused like any other that is too deep.
    const message = err instanceof RangeError ? TOO_DEEP : String(err);
    return { documents: [], errors: [{ ...START, message }], warnings: [] };
  }
}

function decodeParsed({ documents, lines }: Parsed): Decoded {
  if (documents.length > MAX_DOCUMENTS)
    return { documents: [], errors: [{ ...START, message: `more than ${MAX_DOCUMENTS} documents` }], warnings: [] };
  const errors: TextError[] = [];
  const warnings: TextError[] = [];
  const values: { index: number; value: unknown }[] = [];
  const reportTo =
    (found: TextError[]): Report =>
    (offset, message) => {
      if (found.length < MAX_ERRORS) found.push({ ...at(lines, offset), message });
    };
  const report = reportTo(errors);
  documents.forEach((document, index) => {
    const before = errors.length;
    for (const error of document.errors) report(error.pos[0], reasonOf(error.message));
    checkTree(document, report, reportTo(warnings));
    if (errors.length > before || document.contents === null) return;
    try {
      const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
      if (value !== null && value !== undefined) values.push({ index, value });
    } catch (err) {
      report(offsetOf(document.contents), oneLine(String(err instanceof Error ? err.message : err)));
    }
  });
  return { documents: values, errors, warnings };
}

const oneLine = (text: string): string => text.split('\n', 1)[0] ?? '';
/** The composer reports the end of its stack as an error of the text. */
const reasonOf = (message: string): string => (/call stack/.test(message) ? TOO_DEEP : oneLine(message));
const at = (lines: LineCounter, offset: number): Position => {
  const { line, col } = lines.linePos(offset);
  return { line: Math.max(line, 1), column: Math.max(col, 1) };
};
const offsetOf = (node: Node | null | undefined): number => node?.range?.[0] ?? 0;

const MERGE_KEY = '<<';
/** The text a key has in JSON. */
const keyText = (key: unknown): string | undefined => {
  if (typeof key === 'string') return key;
  if (typeof key === 'number' || typeof key === 'boolean' || typeof key === 'bigint') return `${key}`;
  return key === null ? 'null' : undefined;
};

type Report = (offset: number, message: string) => void;

/** Depth and duplicate keys, with a stack of its own. Of a key that is there twice the last one counts, as for upstream. */
function checkTree(document: Document, report: Report, warn: Report): void {
  const stack: { node: unknown; depth: number }[] = [{ node: document.contents, depth: 0 }];
  for (let next = stack.pop(); next !== undefined; next = stack.pop()) {
    const { node, depth } = next;
    if (!isCollection(node)) continue;
    if (depth >= MAX_DEPTH) {
      report(offsetOf(node), TOO_DEEP);
      return;
    }
    const keys = new Set<string>();
    for (const entry of node.items) {
      if (!isPair(entry)) {
        stack.push({ node: entry, depth: depth + 1 });
        continue;
      }
      const name = isScalar(entry.key) ? keyText(entry.key.value) : undefined;
      if (name !== undefined) {
        if (keys.has(name))
          warn(offsetOf(entry.key as Node), `key ${JSON.stringify(name)} is already set above; this one counts`);
        if (name !== MERGE_KEY) keys.add(name);
      } else if (!isScalar(entry.key) && !isAlias(entry.key)) {
        report(offsetOf(entry.key as Node), 'keys must be plain values');
      }
      stack.push({ node: entry.value, depth: depth + 1 });
    }
  }
}

/** Where fields (`spec.containers[0].name`) are in a document, or where the nearest thing around them is. */
export function locateFields(text: string, index: number, fields: readonly string[]): readonly Position[] {
  try {
    const { documents, lines } = parse(text);
    const document = documents[index];
    if (document === undefined) return fields.map(() => START);
    return fields.map((field) => at(lines, nearestOffset(document, fieldSegments(field))));
  } catch {
    // Only text that decoded is asked about, and that parses again; should it not, the start is still a true place.
    return fields.map(() => START);
  }
}

/** `a.b[0].c[x.y/z]` → `['a', 'b', '0', 'c', 'x.y/z']` */
export function fieldSegments(field: string): readonly string[] {
  const segments: string[] = [];
  // Beyond the last `]` none is closed.
  const lastClose = field.lastIndexOf(']');
  const part = /\[([^\]]*)\]|([^.[]+)/y;
  for (let at = 0; at < field.length; at = Math.max(at + 1, part.lastIndex)) {
    part.lastIndex = at;
    const match = field[at] === '[' && at > lastClose ? null : part.exec(field);
    const segment = match?.[1] ?? match?.[2];
    if (segment !== undefined) segments.push(segment);
  }
  return segments;
}

function nearestOffset(document: Document, segments: readonly string[]): number {
  let node: unknown = document.contents;
  let offset = offsetOf(document.contents);
  for (const segment of segments) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.findLast((p) => isScalar(p.key) && keyText(p.key.value) === segment);
      if (pair === undefined) return offset;
      offset = offsetOf(pair.key as Node);
      node = pair.value;
    } else if (isSeq(node)) {
      const entry: unknown = node.items[Number(segment)];
      if (entry === undefined) return offset;
      node = entry;
      offset = offsetOf(entry as Node);
    } else {
      return offset;
    }
  }
  return offset;
}
