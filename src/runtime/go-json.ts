/** JSON text as Go writes it: `<`, `>`, `&` and the two Unicode line separators are escaped. */
export const goJson = (value: unknown): string =>
  JSON.stringify(value).replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`);
