// Shell globs within one label of a host name: `*`, `?`, `[set]`, `\` before a literal. Patterns come from pull secrets,
// so from anybody: matching takes at most pattern × text steps, whatever they are.

type Token = { readonly any: true } | { readonly matches: (char: string) => boolean };

/** A malformed pattern matches nothing. */
export function globMatches(pattern: string, text: string): boolean {
  const tokens = tokensOf(pattern);
  if (tokens === undefined) return false;
  let at = 0;
  let i = 0;
  let star = -1;
  let starText = 0;
  while (i < text.length) {
    const token = tokens[at];
    if (token !== undefined && 'any' in token) {
      star = at++;
      starText = i;
    } else if (token?.matches(text[i] ?? '') === true) {
      at++;
      i++;
    } else if (star >= 0) {
      // Only the last star needs another try: what earlier ones took can stay as it is.
      at = star + 1;
      i = ++starText;
    } else return false;
  }
  return tokens.slice(at).every((t) => 'any' in t);
}

function tokensOf(pattern: string): readonly Token[] | undefined {
  const tokens: Token[] = [];
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i] ?? '';
    if (char === '*') tokens.push({ any: true });
    else if (char === '?') tokens.push({ matches: () => true });
    else if (char === '[') {
      const end = pattern.indexOf(']', i + (pattern[i + 1] === '^' ? 3 : 2));
      if (end < 0) return undefined;
      tokens.push({ matches: setOf(pattern.slice(i + 1, end)) });
      i = end;
    } else {
      const literal = char === '\\' ? pattern[++i] : char;
      if (literal === undefined) return undefined;
      tokens.push({ matches: (c) => c === literal });
    }
  }
  return tokens;
}

/** `abc`, `a-z`, `^a-z`. */
function setOf(body: string): (char: string) => boolean {
  const negated = body.startsWith('^');
  const ranges = [...body.slice(negated ? 1 : 0).matchAll(/(.)-(.)|(.)/gs)].map(
    ([, from, to, single]) => [from ?? single ?? '', to ?? single ?? ''] as const,
  );
  return (char) => ranges.some(([from, to]) => char >= from && char <= to) !== negated;
}
