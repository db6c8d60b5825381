// `$(VAR)` references in commands, arguments, environment values and sub-paths. `$$` is a literal dollar sign.
import { KubeletError } from '../lib/errors.ts';

/** Returns undefined for a variable that is not known. */
export type Lookup = (name: string) => string | undefined;

/** Unknown references stay as they are written. */
export function expand(text: string, lookup: Lookup): string {
  return substitute(text, (name, written) => lookup(name) ?? written);
}

/** For sub-paths: unknown or empty variables are an error. */
export function expandStrictly(text: string, lookup: Lookup): string {
  const missing = new Set<string>();
  const out = substitute(text, (name) => {
    const value = lookup(name) ?? '';
    if (value === '') missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new KubeletError('invalid', `missing value for ${[...missing].sort().join(', ')}`);
  return out;
}

function substitute(text: string, value: (name: string, written: string) => string): string {
  let out = '';
  let at = 0;
  for (;;) {
    const dollar = text.indexOf('$', at);
    if (dollar < 0 || dollar + 1 >= text.length) return out + text.slice(at);
    out += text.slice(at, dollar);
    const next = text[dollar + 1];
    const close = next === '(' ? text.indexOf(')', dollar + 2) : -1;
    if (close >= 0) {
      out += value(text.slice(dollar + 2, close), text.slice(dollar, close + 1));
      at = close + 1;
    } else if (next === '$' || next === '(') {
      // An escaped dollar, or an opening that is never closed: `$(` as written.
      out += next === '$' ? '$' : '$(';
      at = dollar + 2;
    } else {
      out += text.slice(dollar, dollar + 2);
      at = dollar + 2;
    }
  }
}
