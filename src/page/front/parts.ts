// Small things that several views are made of: dots, bars, lines, cards.
import type { Tone, WhyView } from '../model.ts';
import { h, svg, type Child } from './dom.ts';
import { age, iso } from './format.ts';

const TONE_WORDS: Readonly<Record<Tone, string>> = {
  ok: 'well',
  busy: 'under way',
  warn: 'needs attention',
  bad: 'failing',
  idle: 'not running',
};

export const dot = (tone: Tone): HTMLElement =>
  h('span', { class: `dot ${tone}` }, h('span', { class: 'unseen' }, `${TONE_WORDS[tone]}: `));

export const pill = (tone: Tone, text: string): HTMLElement => h('span', { class: `pill ${tone}` }, text);

/** With a word about it at the right of its title, if there is one. */
export function card(title: string | readonly [string, string], ...children: readonly Child[]): HTMLElement {
  const [name, aside] = typeof title === 'string' ? [title] : title;
  const id = `h-${name.toLowerCase().replaceAll(/[^a-z]+/g, '-')}`;
  const head = h('h2', { id }, name, aside !== undefined && h('span', { class: 'aside' }, aside));
  return h('section', { class: 'card', 'aria-labelledby': id }, head, ...children);
}

/** A share of a whole, with a mark where something begins. */
export function bar(share: number, options: { tone?: Tone; mark?: number; label: string }): HTMLElement {
  const fillBar = h('span', { class: 'fill' });
  fillBar.style.width = `${Math.min(100, Math.max(0, share))}%`;
  const mark = options.mark === undefined ? undefined : h('span', { class: 'mark' });
  if (mark !== undefined) mark.style.left = `${Math.min(100, Math.max(0, options.mark ?? 0))}%`;
  return h('span', { class: `bar ${options.tone ?? 'ok'}`, role: 'img', 'aria-label': options.label }, fillBar, mark);
}

/** The last hour as a line. Gaps stay gaps, a value between two of them is a dot. */
export function sparkline(
  values: readonly (number | null)[],
  options: { readonly label: string; readonly max?: number; readonly min?: number },
): SVGElement {
  const known = values.filter((v) => v !== null);
  const top = Math.max(options.max ?? 0, ...known, 1e-9);
  const bottom = Math.min(options.min ?? 0, ...known);
  const width = Math.max(1, values.length - 1);
  const y = (v: number): number => 30 - ((v - bottom) / (top - bottom)) * 28;
  let line = '';
  let area = '';
  let from = -1;
  for (const [x, v] of values.entries()) {
    if (v === null) continue;
    const isFirst = x === 0 || values[x - 1] === null;
    line += `${isFirst ? 'M' : 'L'}${x} ${y(v).toFixed(2)}${isFirst ? 'h0' : ''}`;
    if (isFirst) from = x;
    area += `${isFirst ? `M${x} 31L` : 'L'}${x} ${y(v).toFixed(2)}`;
    if (x === values.length - 1 || values[x + 1] === null) area += `L${x} 31L${from} 31Z`;
  }
  return svg(
    'svg',
    {
      class: 'spark',
      viewBox: `0 0 ${width} 32`,
      preserveAspectRatio: 'none',
      role: 'img',
      'aria-label': options.label,
    },
    svg('path', { class: 'area', d: area }),
    svg('path', { class: 'line', d: line, 'vector-effect': 'non-scaling-stroke' }),
  );
}

export const when = (ms: number, nowMs: number): HTMLElement =>
  h('time', { class: 'age', datetime: iso(ms), title: new Date(ms).toLocaleString() }, age(nowMs - ms));

/** Ages go on while nothing else changes. */
export function growAges(nowMs: number): void {
  for (const element of document.querySelectorAll<HTMLTimeElement>('time.age'))
    element.textContent = age(nowMs - Date.parse(element.dateTime));
}

export function whyBox(why: WhyView, tone: Tone): HTMLElement {
  return h(
    'div',
    { class: `why ${tone}` },
    h('p', { class: 'sentence' }, why.sentence),
    why.fix !== undefined && h('p', { class: 'fix' }, h('strong', {}, 'What to do: '), why.fix),
    why.evidence.length > 0 &&
      h(
        'details',
        {},
        h('summary', {}, `Evidence (${why.evidence.length})`),
        h('ul', {}, ...why.evidence.map((e) => h('li', {}, h('code', {}, e)))),
      ),
  );
}

export const empty = (text: string): HTMLElement => h('p', { class: 'dim empty' }, text);

/** A table whose cells say their column where there is no room for a head. */
export function table(
  caption: string,
  columns: readonly string[],
  rows: readonly (readonly Child[])[],
  className = '',
): HTMLElement {
  return h(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': caption },
    h(
      'table',
      { class: className },
      h('caption', { class: 'unseen' }, caption),
      h('thead', {}, h('tr', {}, ...columns.map((c) => h('th', { scope: 'col' }, c)))),
      h(
        'tbody',
        {},
        ...rows.map((row) => h('tr', {}, ...row.map((cell, i) => h('td', { 'data-label': columns[i] ?? '' }, cell)))),
      ),
    ),
  );
}
