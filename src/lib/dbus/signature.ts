// Type signatures: text such as `a(sv)` as a tree of types, checked against the limits of the specification.
import { KubeletError } from '../errors.ts';

export type BasicCode = 'y' | 'b' | 'n' | 'q' | 'i' | 'u' | 'x' | 't' | 'd' | 's' | 'o' | 'g' | 'h';

export type DBusType =
  | { readonly code: BasicCode }
  | { readonly code: 'v' }
  | { readonly code: 'a'; readonly of: DBusType }
  /** A struct; a dict entry is marshalled as a struct of two. */
  | { readonly code: 'r'; readonly fields: readonly DBusType[] };

const BASIC = 'ybnqiuxtdsogh';
const MAX_LENGTH = 255;
const MAX_DEPTH = 32;
const CACHED = 256;

const cache = new Map<string, readonly DBusType[]>();

/** The complete types of a signature, in order. Throws `invalid`. */
export function parseSignature(text: string): readonly DBusType[] {
  const known = cache.get(text);
  if (known !== undefined) return known;
  if (text.length > MAX_LENGTH) throw bad(text, 'is longer than 255');
  const parser = new Parser(text);
  const types: DBusType[] = [];
  while (!parser.atEnd) types.push(parser.type(0, 0));
  if (cache.size >= CACHED) cache.clear();
  cache.set(text, types);
  return types;
}

/** The type of a variant: exactly one. */
export function parseSingleType(text: string): DBusType {
  const [type, ...more] = parseSignature(text);
  if (type === undefined || more.length > 0) throw bad(text, 'is not one complete type');
  return type;
}

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  get atEnd(): boolean {
    return this.#at >= this.#text.length;
  }

  type(arrays: number, structs: number): DBusType {
    if (arrays > MAX_DEPTH || structs > MAX_DEPTH) throw bad(this.#text, 'nests too deeply');
    const code = this.#next();
    if (isBasic(code)) return { code };
    if (code === 'v') return { code };
    if (code === '(') return this.#struct(arrays, structs + 1);
    if (code !== 'a') throw bad(this.#text, `has '${code}' where a type begins`);
    if (this.#text[this.#at] === '{') return { code: 'a', of: this.#entry(arrays + 1, structs + 1) };
    return { code: 'a', of: this.type(arrays + 1, structs) };
  }

  #struct(arrays: number, structs: number): DBusType {
    const fields: DBusType[] = [];
    while (this.#text[this.#at] !== ')') fields.push(this.type(arrays, structs));
    this.#at++;
    if (fields.length === 0) throw bad(this.#text, 'has an empty struct');
    return { code: 'r', fields };
  }

  #entry(arrays: number, structs: number): DBusType {
    this.#at++;
    const key = this.#next();
    if (!isBasic(key)) throw bad(this.#text, 'has a dict key that is no basic type');
    const value = this.type(arrays, structs);
    if (this.#next() !== '}') throw bad(this.#text, 'has a dict entry that is not a pair');
    return { code: 'r', fields: [{ code: key }, value] };
  }

  #next(): string {
    const code = this.#text[this.#at++];
    if (code === undefined) throw bad(this.#text, 'ends too early');
    return code;
  }
}

const isBasic = (code: string): code is BasicCode => BASIC.includes(code);

const bad = (text: string, what: string): KubeletError =>
  new KubeletError('invalid', `D-Bus signature ${JSON.stringify(text.slice(0, 64))} ${what}`);

/** Where values of this type begin. */
export function alignmentOf({ code }: DBusType): 1 | 2 | 4 | 8 {
  switch (code) {
    case 'y':
    case 'g':
    case 'v':
      return 1;
    case 'n':
    case 'q':
      return 2;
    case 'x':
    case 't':
    case 'd':
    case 'r':
      return 8;
    case 'b':
    case 'i':
    case 'u':
    case 's':
    case 'o':
    case 'h':
    case 'a':
      return 4;
    default:
      return code satisfies never;
  }
}
