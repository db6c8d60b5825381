// The file format of `fileKeyRef`: KEY='value' assignments as a shell would read them, with comments and blank lines.
// A value may span lines; nothing in it is expanded.
import { goQuote } from '../core/downward.ts';
import { isFault, KubeletError } from '../lib/errors.ts';

export class EnvFile {
  readonly #values = new Map<string, string>();
  /** Only keys before it have a value. */
  #problem: KubeletError | undefined;

  constructor(text: string, file: string) {
    try {
      parse(text, file, (name, value) => {
        if (!this.#values.has(name)) this.#values.set(name, value);
      });
    } catch (err) {
      if (!isFault(err)) throw err;
      this.#problem = err;
    }
  }

  /** The first value of a key, or undefined. Anything of another form before it makes the file invalid. */
  value(key: string): string | undefined {
    const value = this.#values.get(key);
    if (value === undefined && this.#problem !== undefined) throw this.#problem;
    return value;
  }
}

function parse(text: string, file: string, found: (name: string, value: string) => void): void {
  const lines = text.split(/\r?\n/);
  const invalid = (line: number, what: string): KubeletError =>
    new KubeletError('invalid', `couldn't parse env file ${goQuote(file)}: line ${line}: ${what}`);
  for (let i = 0; i < lines.length; i++) {
    const line = (lines[i] ?? '').replace(/^[ \t]+/, '');
    if (line === '' || line.startsWith('#')) continue;
    const equals = line.indexOf('=');
    if (equals < 0) throw invalid(i + 1, "missing '='");
    const name = line.slice(0, equals);
    if (name === '') throw invalid(i + 1, 'empty variable name');
    if (/[ \t]$/.test(name)) throw invalid(i + 1, "whitespace before '='");
    let rest = line.slice(equals + 1);
    // To a shell the value ends before the blank.
    if (/^[ \t]/.test(rest)) {
      found(name, '');
      continue;
    }
    if (!rest.startsWith("'")) throw invalid(i + 1, 'the value is not in single quotes');
    rest = rest.slice(1);
    const [begin, parts]: [number, string[]] = [i + 1, []];
    let end = rest.indexOf("'");
    while (end < 0) {
      parts.push(rest);
      const next = lines[++i];
      if (next === undefined) throw invalid(begin, 'the single quote is not closed');
      rest = next;
      end = rest.indexOf("'");
    }
    if (!/^[ \t]*(#.*)?$/.test(rest.slice(end + 1))) throw invalid(i + 1, 'text behind the closing quote');
    parts.push(rest.slice(0, end));
    found(name, parts.join('\n'));
  }
}
