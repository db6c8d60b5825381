// Regular expressions that can take more than one pass over a text: V8 tries a pattern without an anchor at every position,
// and a repetition in it, followed by something that may not match, runs to the end of the text from each of them.

type Expression = { readonly source: string; readonly flags: string };

/** The regular expressions of a TypeScript text. */
export function regularExpressions(code: string): Expression[] {
  const found: Expression[] = [];
  for (let at = 0, last = ''; at < code.length;) {
    const rest = code.slice(at, at + 2);
    if (rest === '//') at = after(code, '\n', at);
    else if (rest === '/*') at = after(code, '*/', at);
    else if (/['"`]/.test(rest.charAt(0))) {
      at = endOfText(code, at);
      last = "'";
    } else if (
      rest.startsWith('/') &&
      (/[=(,:[!&|?{};+>]|^$/.test(last) || /\breturn\s+$/.test(code.slice(Math.max(0, at - 12), at)))
    ) {
      const expression = literalAt(code, at);
      found.push(expression);
      at += expression.source.length + expression.flags.length + 2;
      last = '/';
    } else {
      if (!/\s/.test(rest.charAt(0))) last = rest.charAt(0);
      at++;
    }
  }
  return found;
}

function after(code: string, what: string, from: number): number {
  const at = code.indexOf(what, from);
  return at < 0 ? code.length : at + what.length;
}

function endOfText(code: string, from: number): number {
  let at = from + 1;
  while (at < code.length && code[at] !== code[from]) at += code[at] === '\\' ? 2 : 1;
  return at + 1;
}

function literalAt(code: string, from: number): Expression {
  let at = from + 1;
  for (let inClass = false; at < code.length && (inClass || code[at] !== '/'); at++) {
    if (code[at] === '\\') at++;
    else if (code[at] === '[') inClass = true;
    else if (code[at] === ']') inClass = false;
  }
  const [flags = ''] = /^[a-z]*/.exec(code.slice(at + 1, at + 10)) ?? [];
  return { source: code.slice(from + 1, at), flags };
}

type Atom = { readonly text: string; readonly unbounded: boolean; readonly inside?: readonly (readonly Atom[])[] };

/** Whether some text makes the pattern run to its end from many positions. */
export function isSlow({ source, flags }: Expression): boolean {
  if (flags.includes('y')) return false;
  return alternatives(source).some((atoms) => {
    const [first] = atoms;
    if (first === undefined || (!flags.includes('m') && startsAnchored(first))) return false;
    // A run that cannot pass the next beginning is not repeated from there.
    const begin = /^(?:\\[^\w\s]|[^\\[(^$.])$/.test(first.text) ? first.text : undefined;
    const passes = ({ text, inside }: Atom): boolean =>
      begin === undefined || inside !== undefined || matches(text, flags, begin.replace('\\', ''));
    return hasOpenRepetition(atoms, { isFollowed: false, passes });
  });
}

const matches = (text: string, flags: string, character: string): boolean =>
  new RegExp(`^(?:${text})$`, flags.replace('g', '')).test(character);

const startsAnchored = ({ text, inside }: Atom): boolean =>
  text === '^' || (inside?.every(([first]) => first !== undefined && startsAnchored(first)) ?? false);

type Place = { readonly isFollowed: boolean; readonly passes: (atom: Atom) => boolean };

/** A repetition without a bound, with something behind it that may not match. */
function hasOpenRepetition(atoms: readonly Atom[], { isFollowed, passes }: Place): boolean {
  return atoms.some((atom, i) => {
    const { unbounded, inside } = atom;
    const mayFail = isFollowed || atoms.slice(i + 1).some((next) => !isOptional(next));
    if (unbounded && passes(atom) && (mayFail || inside?.some((some) => some.length > 1) === true)) return true;
    return inside?.some((some) => hasOpenRepetition(some, { isFollowed: mayFail, passes })) ?? false;
  });
}

const isOptional = ({ text }: Atom): boolean => /[^\\](?:[*?]|\{0,\d*\})\??$/.test(text.slice(-12));

const QUANTIFIER = /^(?:[*+?]|\{\d+(?:,\d*)?\})\??/;

function alternatives(source: string): Atom[][] {
  const all: Atom[][] = [[]];
  for (let at = 0; at < source.length;) {
    if (source[at] === '|') {
      all.push([]);
      at++;
      continue;
    }
    const end = endOfAtom(source, at);
    const [quantifier = ''] = QUANTIFIER.exec(source.slice(end)) ?? [];
    const unbounded = /^[*+]|^\{\d+,\}/.test(quantifier);
    const atom = source.slice(at, end);
    const inside = atom.startsWith('(') ? alternatives(atom.slice(1, -1).replace(/^\?(?:[:=!]|<[=!]|<\w+>)/, '')) : [];
    all.at(-1)?.push({ text: atom + quantifier, unbounded, ...(inside.length === 0 ? {} : { inside }) });
    at = end + quantifier.length;
  }
  return all;
}

function endOfAtom(source: string, at: number): number {
  const ESCAPE = /^\\(?:u\{\w+\}|u\w{4}|x\w\w|[pP]\{[^}]*\}|k<\w+>|.)/;
  if (source[at] === '\\') return at + (ESCAPE.exec(source.slice(at))?.[0].length ?? 1);
  if (source[at] === '[') return at + (/^\[(?:\\.|[^\]\\])*\]/.exec(source.slice(at))?.[0].length ?? 1);
  if (source[at] !== '(') return at + 1;
  let inner = at + 1;
  while (inner < source.length && source[inner] !== ')') inner = endOfAtom(source, inner);
  return inner + 1;
}
