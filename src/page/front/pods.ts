// Pods: one line each, with why it is not ready. Filter and order live in the address.
import type { PodRow, PodsView } from '../model.ts';
import type { View } from './app.ts';
import { arrange, fill, h, type Child } from './dom.ts';
import { age, bytes, cores, count, percent } from './format.ts';
import { bar, dot, empty, when } from './parts.ts';

type Column = {
  readonly key: string;
  readonly label: string;
  /** Absent: not to be ordered by. */
  readonly order?: (row: PodRow) => number | string;
  /** Largest first when it is chosen. */
  readonly falling?: boolean;
  readonly cell: (row: PodRow, nowMs: number) => Child;
};

const TONES = ['bad', 'warn', 'busy', 'ok', 'idle'];
const STATES = [
  ['', 'All'],
  ['bad', 'Not ready'],
  ['busy', 'Starting'],
  ['ok', 'Ready'],
  ['stopping', 'Stopping'],
  ['idle', 'Ended'],
] as const;

export const podLink = (namespace: string, name: string): string =>
  `#/pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;

/** Use against its limit: a bar only where there is one. */
export function useCell(used: number | undefined, limit: number | undefined, text: (n: number) => string): Child {
  if (used === undefined) return h('span', { class: 'dim none' }, '–');
  const words = text(used);
  if (limit === undefined) return h('span', { class: 'use' }, words);
  const share = percent(used, limit);
  const tone = share > 92 ? 'bad' : share > 80 ? 'warn' : 'ok';
  return h(
    'span',
    { class: 'use' },
    words,
    h('span', { class: 'dim' }, ` / ${text(limit)}`),
    bar(share, { tone, label: `${Math.round(share)} percent of the limit` }),
  );
}

const COLUMNS: readonly Column[] = [
  {
    key: 'state',
    label: 'State',
    order: (r) => TONES.indexOf(r.tone),
    cell: (r) => h('span', { class: 'state' }, dot(r.tone), r.state),
  },
  {
    key: 'name',
    label: 'Pod',
    order: (r) => `${r.name}/${r.namespace}`,
    cell: (r) => [
      h('a', { href: podLink(r.namespace, r.name) }, r.name),
      h('span', { class: 'dim block' }, r.namespace, r.source === 'api' ? '' : ` · ${r.source}`),
    ],
  },
  {
    key: 'why',
    label: 'Why',
    cell: (r) =>
      r.why === undefined
        ? ''
        : [h('span', {}, r.why.sentence), r.why.fix !== undefined && h('span', { class: 'dim block' }, r.why.fix)],
  },
  {
    key: 'ready',
    label: 'Ready',
    order: (r) => r.readyContainers / Math.max(1, r.containers),
    cell: (r) => h('span', { class: 'num' }, `${r.readyContainers}/${r.containers}`),
  },
  {
    key: 'restarts',
    label: 'Restarts',
    order: (r) => r.restarts,
    falling: true,
    cell: (r, nowMs) => [
      h('span', { class: 'num' }, count(r.restarts)),
      r.lastExit !== undefined &&
        h(
          'span',
          { class: 'dim block' },
          `${r.lastExit}${r.lastExitMs === undefined ? '' : ` ${age(nowMs - r.lastExitMs)} ago`}`,
        ),
    ],
  },
  {
    key: 'age',
    label: 'Age',
    order: (r) => -(r.createdAtMs ?? 0),
    cell: (r, nowMs) => (r.createdAtMs === undefined ? '–' : when(r.createdAtMs, nowMs)),
  },
  {
    key: 'cpu',
    label: 'CPU',
    order: (r) => r.cpuCores ?? -1,
    falling: true,
    cell: (r) => useCell(r.cpuCores, r.cpuLimitCores, cores),
  },
  {
    key: 'memory',
    label: 'Memory',
    order: (r) => r.memoryBytes ?? -1,
    falling: true,
    cell: (r) => useCell(r.memoryBytes, r.memoryLimitBytes, bytes),
  },
];

type Line = { row: PodRow; text: string; readonly element: HTMLTableRowElement };

export class PodsPage implements View {
  readonly title = 'Pods';
  readonly query = { view: 'pods' };
  readonly listeners = {
    pods: (data: unknown) => this.#all(data as PodsView),
    rows: (data: unknown) => this.#some(data as { rows: readonly PodRow[]; gone: readonly string[] }),
  };
  readonly element: HTMLElement;
  readonly #lines = new Map<string, Line>();
  readonly #body = h('tbody');
  readonly #heads: HTMLElement[];
  readonly #filter: HTMLInputElement;
  readonly #states = h('div', { class: 'chips', role: 'group', 'aria-label': 'State' });
  readonly #count = h('span', { class: 'dim', role: 'status' });
  #params: URLSearchParams;

  constructor(params: URLSearchParams) {
    this.#params = params;
    this.#filter = h('input', {
      type: 'search',
      placeholder: 'Filter by name, namespace, state or reason',
      'aria-label': 'Filter pods',
      value: params.get('q') ?? '',
      oninput: () => this.#go({ q: this.#filter.value }),
    });
    this.#heads = COLUMNS.map((column) => this.#head(column));
    this.element = h(
      'div',
      { class: 'card wide' },
      h('div', { class: 'controls' }, this.#filter, this.#states, this.#count),
      h(
        'div',
        { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Pods' },
        h(
          'table',
          { class: 'pods cards' },
          h('caption', { class: 'unseen' }, 'Pods on this node'),
          h('thead', {}, h('tr', {}, ...this.#heads)),
          this.#body,
        ),
      ),
    );
    this.#mark();
  }

  update(params: URLSearchParams): void {
    this.#params = params;
    if (document.activeElement !== this.#filter) this.#filter.value = params.get('q') ?? '';
    this.#mark();
    this.#arrange();
  }

  #head(column: Column): HTMLElement {
    if (column.order === undefined) return h('th', { scope: 'col' }, column.label);
    const choose = (): void => {
      const isSame = this.#sort().column === column;
      const falls = isSame ? !this.#sort().falling : column.falling === true;
      this.#go({ sort: column.key, order: falls ? 'desc' : 'asc' });
    };
    return h('th', { scope: 'col' }, h('button', { type: 'button', class: 'sort', onclick: choose }, column.label));
  }

  #sort(): { column: Column; falling: boolean } {
    const column = COLUMNS.find((c) => c.key === this.#params.get('sort') && c.order !== undefined) ?? COLUMNS[0];
    return { column: column as Column, falling: this.#params.get('order') === 'desc' };
  }

  /** The address is where the choice is kept. */
  #go(change: Readonly<Record<string, string>>): void {
    const params = new URLSearchParams(this.#params);
    for (const [key, value] of Object.entries(change)) {
      if (value === '') params.delete(key);
      else params.set(key, value);
    }
    history.replaceState(null, '', `#/pods${params.size === 0 ? '' : `?${params}`}`);
    this.update(params);
  }

  #mark(): void {
    const { column, falling } = this.#sort();
    for (const [i, head] of this.#heads.entries())
      if (COLUMNS[i] === column) head.setAttribute('aria-sort', falling ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    const chosen = this.#params.get('state') ?? '';
    fill(
      this.#states,
      ...STATES.map(([key, label]) =>
        h(
          'button',
          { type: 'button', 'aria-pressed': String(key === chosen), onclick: () => this.#go({ state: key }) },
          label,
        ),
      ),
    );
  }

  #all({ pods, atMs }: PodsView): void {
    const known = new Set(pods.map((p) => p.uid));
    for (const uid of this.#lines.keys()) if (!known.has(uid)) this.#lines.delete(uid);
    for (const row of pods) this.#put(row, atMs);
    this.#arrange();
  }

  #some({ rows, gone }: { rows: readonly PodRow[]; gone: readonly string[] }): void {
    for (const uid of gone) this.#lines.delete(uid);
    for (const row of rows) this.#put(row, Date.now());
    this.#arrange();
  }

  #put(row: PodRow, nowMs: number): void {
    const text = JSON.stringify(row);
    const known = this.#lines.get(row.uid);
    if (known?.text === text) return;
    const line = known ?? { row, text, element: h('tr') };
    line.row = row;
    line.text = text;
    fill(
      line.element,
      ...COLUMNS.map((c) => h('td', { 'data-label': c.label, class: `c-${c.key}` }, c.cell(row, nowMs))),
    );
    this.#lines.set(row.uid, line);
  }

  #arrange(): void {
    const { column, falling } = this.#sort();
    const words = (this.#params.get('q') ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const state = this.#params.get('state') ?? '';
    const shown = [...this.#lines.values()].filter(({ row }) => fits(row, words, state));
    const key = column.order ?? (() => 0);
    const name = (row: PodRow): string => `${row.namespace}/${row.name}`;
    shown.sort((a, b) => (falling ? -1 : 1) * compare(key(a.row), key(b.row)) || compare(name(a.row), name(b.row)));
    fill(this.#count, `${count(shown.length)} of ${count(this.#lines.size)}`);
    if (shown.length > 0)
      arrange(
        this.#body,
        shown.map((line) => line.element),
      );
    else fill(this.#body, h('tr', {}, h('td', { colspan: COLUMNS.length }, empty('No pod fits.'))));
  }
}

const compare = (a: number | string, b: number | string): number => (a < b ? -1 : a > b ? 1 : 0);

function fits(row: PodRow, words: readonly string[], state: string): boolean {
  if (state === 'bad' && row.tone !== 'bad' && row.tone !== 'warn') return false;
  if (state === 'stopping' && row.state !== 'Terminating') return false;
  if (state === 'busy' && (row.tone !== 'busy' || row.state === 'Terminating')) return false;
  if ((state === 'ok' || state === 'idle') && row.tone !== state) return false;
  const text =
    `${row.namespace}/${row.name} ${row.state} ${row.why?.sentence ?? ''} ${row.lastExit ?? ''}`.toLowerCase();
  return words.every((word) => text.includes(word));
}
