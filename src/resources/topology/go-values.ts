// Values as Go's strconv reads them, with its words for what it cannot read.

const TRUE = ['1', 't', 'T', 'TRUE', 'true', 'True'];
const FALSE = ['0', 'f', 'F', 'FALSE', 'false', 'False'];

export const parseGoBool = (text: string): boolean | undefined =>
  TRUE.includes(text) ? true : FALSE.includes(text) ? false : undefined;

/** The number, or what is wrong with the text. */
export function parseGoInt(text: string): number | string {
  if (!/^[+-]?\d+$/.test(text)) return `strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
  const value = Number(text);
  return Number.isSafeInteger(value) ? value : `strconv.Atoi: parsing ${JSON.stringify(text)}: value out of range`;
}

const MAX_CPU = 65_536;

/** A list of CPUs, or what is wrong with the text. */
export function parseGoCpuSet(text: string): ReadonlySet<number> | string {
  const out = new Set<number>();
  for (const part of text === '' ? [] : text.split(',')) {
    const dash = part.indexOf('-');
    const first = parseGoInt(dash < 0 ? part : part.slice(0, dash));
    const last = dash < 0 ? first : parseGoInt(part.slice(dash + 1));
    if (typeof first === 'string') return first;
    if (typeof last === 'string') return last;
    if (first > last) return `invalid range "${part}" (${first} > ${last})`;
    if (last > MAX_CPU) return `there is no CPU ${last}`;
    for (let cpu = first; cpu <= last; cpu++) out.add(cpu);
  }
  return out;
}
