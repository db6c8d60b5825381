// Timeline: what happened on this node, newest first, over restarts of the agent.
import type { TimelineEntry, TimelineKind, TimelineView } from '../model.ts';
import type { View } from './app.ts';
import { fill, h } from './dom.ts';
import { clockTime, count, day, iso } from './format.ts';
import { dot, empty } from './parts.ts';
import { podLink } from './pods.ts';
import { strip } from './strip.ts';

const KINDS: readonly (readonly [TimelineKind | '', string])[] = [
  ['', 'All'],
  ['start', 'Starts'],
  ['exit', 'Exits'],
  ['oom', 'Out of memory'],
  ['probe', 'Probes'],
  ['eviction', 'Evictions'],
  ['pressure', 'Pressure'],
  ['agent', 'Agent'],
  ['runtime', 'Runtime'],
  ['other', 'Other'],
];
const SHOWN = 500;
const KIND_WORDS: Readonly<Record<TimelineKind, string>> = {
  start: 'start',
  exit: 'exit',
  oom: 'memory',
  probe: 'probe',
  eviction: 'eviction',
  pressure: 'pressure',
  agent: 'agent',
  runtime: 'runtime',
  other: 'event',
};

export class TimelinePage implements View {
  readonly title = 'Timeline';
  readonly query = { view: 'timeline' };
  readonly listeners = { timeline: (data: unknown) => this.#take(data as TimelineView) };
  readonly element: HTMLElement;
  readonly #kinds = h('div', { class: 'chips', role: 'group', 'aria-label': 'Kind' });
  readonly #count = h('span', { class: 'dim', role: 'status' });
  readonly #filter: HTMLInputElement;
  readonly #strip = h('figure', { class: 'strip' });
  readonly #list = h('div', { class: 'timeline' });
  #params: URLSearchParams;
  #entries: readonly TimelineEntry[] = [];
  #atMs = Date.now();

  constructor(params: URLSearchParams) {
    this.#params = params;
    this.#filter = h('input', {
      type: 'search',
      placeholder: 'Filter by pod or text',
      'aria-label': 'Filter the timeline',
      value: params.get('q') ?? '',
      oninput: () => this.#go({ q: this.#filter.value }),
    });
    this.element = h(
      'div',
      { class: 'card wide' },
      h('div', { class: 'controls' }, this.#filter, this.#kinds, this.#count),
      this.#strip,
      this.#list,
    );
    this.#draw();
  }

  update(params: URLSearchParams): void {
    this.#params = params;
    this.#draw();
  }

  #go(change: Readonly<Record<string, string>>): void {
    const params = new URLSearchParams(this.#params);
    for (const [key, value] of Object.entries(change)) {
      if (value === '') params.delete(key);
      else params.set(key, value);
    }
    history.replaceState(null, '', `#/timeline${params.size === 0 ? '' : `?${params}`}`);
    this.update(params);
  }

  #take({ entries, atMs }: TimelineView): void {
    this.#entries = entries;
    this.#atMs = atMs;
    this.#draw();
  }

  #draw(): void {
    const kind = this.#params.get('kind') ?? '';
    fill(
      this.#kinds,
      ...KINDS.map(([key, label]) =>
        h(
          'button',
          { type: 'button', 'aria-pressed': String(key === kind), onclick: () => this.#go({ kind: key }) },
          label,
        ),
      ),
    );
    const words = (this.#params.get('q') ?? '').toLowerCase();
    const fitting = this.#entries
      .filter((e) => kind === '' || e.kind === kind)
      .filter((e) => `${e.pod ?? ''} ${e.container ?? ''} ${e.text}`.toLowerCase().includes(words))
      .toSorted((a, b) => b.atMs - a.atMs || b.id - a.id);
    fill(this.#count, `${count(fitting.length)} of ${count(this.#entries.length)}`);
    fill(this.#strip, ...strip(fitting, this.#atMs));
    const days = Map.groupBy(fitting.slice(0, SHOWN), (e) => day(e.atMs));
    fill(
      this.#list,
      fitting.length === 0 && empty('Nothing of this kind has happened.'),
      ...[...days].map(([title, entries]) => h('section', {}, h('h2', {}, title), h('ol', {}, ...entries.map(line)))),
    );
  }
}

function line(e: TimelineEntry): HTMLElement {
  const [namespace = '', name = ''] = (e.pod ?? '').split('/');
  return h(
    'li',
    { class: e.tone },
    h('time', { datetime: iso(e.atMs) }, clockTime(e.atMs)),
    dot(e.tone),
    h('span', { class: 'kind dim' }, KIND_WORDS[e.kind]),
    h(
      'span',
      {},
      e.pod !== undefined && h('a', { href: podLink(namespace, name) }, e.pod),
      e.container !== undefined && h('span', { class: 'dim' }, ` ${e.container}`),
      e.pod === undefined ? '' : ' ',
      h('span', { class: 'what' }, e.text),
    ),
  );
}
