// Logs of one or all containers of a pod by time, followed over rotations. Keeps what fits on a few screens.
import type { ContainerView } from '../model.ts';
import { fill, h } from './dom.ts';

type LogLine = { readonly c: string; readonly t: string; readonly s: string };

const MAX_LINES = 5000;
const COLORS = 6;
const AGAIN_MS = 2000;

export class LogPanel {
  readonly element: HTMLElement;
  readonly #namespace: string;
  readonly #name: string;
  readonly #screen = h('div', {
    class: 'log',
    role: 'log',
    tabindex: 0,
    'aria-label': 'Log lines',
    'aria-live': 'off',
    'data-empty': 'No container has started yet, so nothing was written.',
  });
  readonly #state = h('span', { class: 'dim', role: 'status' });
  readonly #choice = h('select', { 'aria-label': 'Container', onchange: () => this.#open() });
  readonly #follow = h('input', { type: 'checkbox', checked: true, onchange: () => this.#open() });
  readonly #previous = h('input', { type: 'checkbox', onchange: () => this.#open() });
  readonly #find = h('input', {
    type: 'search',
    placeholder: 'Find in lines',
    'aria-label': 'Find in lines',
    oninput: () => this.#filter(),
  });
  #names: readonly string[] = [];
  #source: EventSource | undefined;

  constructor(namespace: string, name: string) {
    this.#namespace = namespace;
    this.#name = name;
    this.element = h(
      'section',
      { class: 'card wide', 'aria-labelledby': 'h-logs' },
      h('h2', { id: 'h-logs' }, 'Logs'),
      h(
        'div',
        { class: 'controls' },
        this.#choice,
        this.#find,
        h('label', {}, this.#follow, ' Follow'),
        h('label', {}, this.#previous, ' Previous instance'),
        this.#state,
      ),
      this.#screen,
    );
  }

  containers(views: readonly ContainerView[]): void {
    const names = views.filter((c) => c.hasLogs).map((c) => c.name);
    if (names.join() === this.#names.join()) return;
    const isFirst = this.#names.length === 0;
    this.#names = names;
    const chosen = this.#choice.value;
    fill(this.#choice, h('option', { value: '' }, 'All containers'), ...names.map((n) => h('option', { value: n }, n)));
    this.#choice.value = names.includes(chosen) ? chosen : '';
    if (isFirst) this.#open();
  }

  close(): void {
    this.#source?.close();
    this.#source = undefined;
  }

  #open(): void {
    this.#source?.close();
    this.#screen.replaceChildren();
    this.#screen.dataset['empty'] = this.#previous.checked
      ? 'The previous instance wrote nothing.'
      : 'Nothing was written yet.';
    const params = new URLSearchParams({ tail: '500', follow: this.#follow.checked ? '1' : '0' });
    if (this.#previous.checked) params.set('previous', '1');
    for (const name of this.#choice.value === '' ? this.#names : [this.#choice.value]) params.append('container', name);
    const where = `api/logs/${encodeURIComponent(this.#namespace)}/${encodeURIComponent(this.#name)}`;
    const source = new EventSource(`${where}?${params}`);
    this.#source = source;
    fill(this.#state, 'Reading …');
    source.addEventListener('lines', (e: MessageEvent<string>) => this.#add(JSON.parse(e.data) as LogLine[]));
    source.addEventListener('problem', (e: MessageEvent<string>) => this.#problem(JSON.parse(e.data) as LogLine));
    source.addEventListener('open', () => fill(this.#state, this.#follow.checked ? 'Following' : ''));
    source.addEventListener('end', () => {
      source.close();
      fill(this.#state, 'All there is');
    });
    // What was read is read again after a break. One that the server has ended stays so.
    source.addEventListener('error', () => {
      const isBreak = source.readyState === EventSource.CONNECTING && this.#follow.checked;
      source.close();
      fill(this.#state, isBreak ? 'Not connected, trying again …' : 'Ended');
      if (isBreak) setTimeout(() => this.#source === source && this.#open(), AGAIN_MS);
    });
  }

  #add(lines: readonly LogLine[]): void {
    const screen = this.#screen;
    const isAtEnd = screen.scrollHeight - screen.scrollTop - screen.clientHeight < 40;
    const many = this.#choice.value === '' && this.#names.length > 1;
    const words = this.#find.value.toLowerCase();
    const fresh = document.createDocumentFragment();
    for (const line of lines) {
      const color = Math.max(0, this.#names.indexOf(line.c)) % COLORS;
      const element = h(
        'div',
        {},
        h('time', { title: line.t }, line.t.slice(11, 23)),
        many && h('span', { class: `who c${color}` }, line.c),
        h('span', { class: 'text' }, line.s),
      );
      element.hidden = words !== '' && !line.s.toLowerCase().includes(words);
      fresh.append(element);
    }
    screen.append(fresh);
    while (screen.childElementCount > MAX_LINES) screen.firstElementChild?.remove();
    if (isAtEnd) screen.scrollTop = screen.scrollHeight;
  }

  #problem({ c, s }: LogLine): void {
    this.#screen.append(h('div', { class: 'dim' }, `${c}: ${s}`));
  }

  #filter(): void {
    const words = this.#find.value.toLowerCase();
    for (const line of this.#screen.children)
      if (line instanceof HTMLElement)
        line.hidden = words !== '' && !(line.textContent ?? '').toLowerCase().includes(words);
  }
}
