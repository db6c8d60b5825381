// `$(VAR)` references in commands, arguments, environment values and sub paths. `$$` is a literal dollar sign. One pass
// over the text, whatever is in it.
import type { Budget } from './budget.ts';
import { KubeletError } from './errors.ts';

/** Returns undefined for a variable that is not known. */
export type Lookup = (name: string) => string | undefined;

/** What pays for the result, and the field it is for. */
export type Spending = { readonly budget: Budget; readonly field: string };

const MAX_NAMES_CHARACTERS = 1024;

/** Unknown references stay as they are written. */
export function expand(text: string, lookup: Lookup, spending: Spending): string {
  return substitute(text, (name, written) => lookup(name) ?? written, spending);
}

/** For sub paths: unknown or empty variables are an error. */
export function expandStrictly(text: string, lookup: Lookup, spending: Spending): string {
  const missing = new Set<string>();
  const value = (name: string): string => {
    const found = lookup(name) ?? '';
    if (found === '') missing.add(name);
    return found;
  };
  const out = substitute(text, value, spending);
  if (missing.size > 0) {
    const names = [...missing].sort().join(', ');
    throw new KubeletError('invalid', `missing value for ${names.slice(0, MAX_NAMES_CHARACTERS)}`);
  }
  return out;
}

function substitute(text: string, value: (name: string, written: string) => string, spending: Spending): string {
  const { budget, field } = spending;
  // Covers all that is copied from the text itself.
  budget.take(Buffer.byteLength(text), field);
  // Beyond the last `)` no reference is closed: looking for one from every `$(` would be quadratic.
  const lastClose = text.lastIndexOf(')');
  let out = '';
  let at = 0;
  for (;;) {
    const dollar = text.indexOf('$', at);
    if (dollar < 0 || dollar + 1 >= text.length) return out + text.slice(at);
    out += text.slice(at, dollar);
    const next = text[dollar + 1];
    if (next === '(' && dollar < lastClose) {
      const close = text.indexOf(')', dollar + 2);
      const found = value(text.slice(dollar + 2, close), text.slice(dollar, close + 1));
      budget.take(Buffer.byteLength(found), field);
      out += found;
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
