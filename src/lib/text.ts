// Cuts of texts of any length, in one pass: patterns without an anchor would try every position.

/** Without the characters of `ends` at the end. */
export function withoutEnd(text: string, ends: string): string {
  let end = text.length;
  while (end > 0 && ends.includes(text.charAt(end - 1))) end--;
  return text.slice(0, end);
}

/** The text before the first of `separators`, or all of it. */
export function upTo(text: string, ...separators: readonly string[]): string {
  let end = text.length;
  for (const separator of separators) {
    const at = text.indexOf(separator);
    if (at >= 0 && at < end) end = at;
  }
  return text.slice(0, end);
}

/** At most so many characters, and a mark that there were more. */
export const cutTo = (text: string, characters: number): string =>
  text.length <= characters ? text : `${text.slice(0, characters)}… (${text.length} characters)`;
