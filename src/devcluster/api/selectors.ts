// Label and field selectors in their query-string form, as list, watch and delete-collection take them.
import { badRequest } from './api-error.ts';
import type { ApiObject } from './objects.ts';

type Labels = Readonly<Record<string, string>>;
type Requirement = { readonly key: string; readonly matches: (value: string | undefined) => boolean };

const KEY = String.raw`[A-Za-z0-9](?:[-A-Za-z0-9_./]*[A-Za-z0-9])?`;
const SET = new RegExp(String.raw`^(${KEY})\s+(in|notin)\s*\(([^)]*)\)$`);
const COMPARE = new RegExp(String.raw`^(${KEY})\s*(==|=|!=|>|<)\s*([^,]*)$`);
const EXISTS = new RegExp(String.raw`^(!?)\s*(${KEY})$`);

/** Splits at commas outside parentheses. */
function clauses(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === '(') depth++;
    else if (text[i] === ')') depth--;
    else if (text[i] === ',' && depth === 0) {
      parts.push(text.slice(start, i));
      start = i + 1;
    }
  }
  parts.push(text.slice(start));
  return parts.map((p) => p.trim()).filter((p) => p !== '');
}

function requirement(clause: string): Requirement {
  const set = SET.exec(clause);
  if (set !== null) {
    const values = new Set((set[3] ?? '').split(',').map((v) => v.trim()));
    const wanted = set[2] === 'in';
    return { key: set[1] ?? '', matches: (v) => (v === undefined ? !wanted : values.has(v) === wanted) };
  }
  const compare = COMPARE.exec(clause);
  if (compare !== null) {
    const [, key = '', operator = '', raw = ''] = compare;
    const value = raw.trim();
    if (operator === '!=') return { key, matches: (v) => v !== value };
    if (operator === '>') return { key, matches: (v) => v !== undefined && Number(v) > Number(value) };
    if (operator === '<') return { key, matches: (v) => v !== undefined && Number(v) < Number(value) };
    return { key, matches: (v) => v === value };
  }
  const exists = EXISTS.exec(clause);
  if (exists === null) throw badRequest(`unable to parse requirement: ${clause}`);
  const wanted = exists[1] === '';
  return { key: exists[2] ?? '', matches: (v) => (v !== undefined) === wanted };
}

export function labelSelector(text: string): ((labels: Labels | undefined) => boolean) | undefined {
  const requirements = clauses(text).map(requirement);
  if (requirements.length === 0) return undefined;
  return (labels) => requirements.every((r) => r.matches(labels?.[r.key]));
}

export type FieldTerm = { readonly field: string; readonly equal: boolean; readonly value: string };

export function fieldTerms(text: string): readonly FieldTerm[] {
  const terms: FieldTerm[] = [];
  for (const clause of text.split(/(?<!\\),/)) {
    if (clause === '') continue;
    const match = /^([^=!]+)(!=|==|=)(.*)$/s.exec(clause);
    if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${clause}'`);
    const value = (match[3] ?? '').replace(/\\([\\,=])/g, '$1');
    terms.push({ field: (match[1] ?? '').trim(), equal: match[2] !== '!=', value });
  }
  return terms;
}

/** `read` gives a field's text, or undefined for a field this resource cannot be selected by. */
export function fieldSelector(
  terms: readonly FieldTerm[],
  read: (field: string, object: ApiObject) => string | undefined,
): ((object: ApiObject) => boolean) | undefined {
  if (terms.length === 0) return undefined;
  return (object) => terms.every((t) => ((read(t.field, object) ?? '') === t.value) === t.equal);
}

/** The one name a field selector pins, if it does: such a list is a get in the eyes of the authorizer. */
export const pinnedName = (terms: readonly FieldTerm[]): string | undefined =>
  terms.find((t) => t.field === 'metadata.name' && t.equal)?.value;
