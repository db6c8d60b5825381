// The page's frame: which view the address asks for, the navigation, what the head says of the node.
import type { NowView } from '../model.ts';
import { fill, h } from './dom.ts';
import { ImagesPage } from './images.ts';
import { Live, type Listeners } from './live.ts';
import { NowPage } from './now.ts';
import { growAges } from './parts.ts';
import { PodPage } from './pod.ts';
import { PodsPage } from './pods.ts';
import { TimelinePage } from './timeline.ts';
import { WorkersPage } from './workers.ts';

export interface View {
  readonly title: string;
  readonly element: HTMLElement;
  readonly query: Readonly<Record<string, string>>;
  readonly listeners: Listeners;
  /** The address changed within this view. */
  update?(params: URLSearchParams): void;
  close?(): void;
}

const NAV = [
  ['#/', 'Now'],
  ['#/pods', 'Pods'],
  ['#/images', 'Images'],
  ['#/timeline', 'Timeline'],
  ['#/workers', 'Reconcile'],
] as const;

const byId = (id: string): HTMLElement => document.getElementById(id) ?? document.body;

let shown: { readonly path: string; readonly view: View } | undefined;
let wasReady: boolean | undefined;
let canWrite = false;

const announce = (text: string): void => fill(byId('announce'), text);

const live = new Live((text) => {
  fill(byId('line-state'), text);
  document.body.classList.toggle('stale', text !== '');
});

function head(now: NowView): void {
  const { node, ready } = now;
  canWrite = node.write;
  fill(byId('node-name'), node.name);
  const state = byId('node-state');
  state.className = `pill ${ready.ready ? 'ok' : 'bad'}`;
  fill(state, ready.ready ? 'Ready' : 'Not ready');
  if (wasReady !== undefined && wasReady !== ready.ready) announce(ready.why.sentence);
  wasReady = ready.ready;
}

function make(path: string, params: URLSearchParams): View {
  const [, first = '', namespace = '', name = ''] = path.split('/').map(decodeURIComponent);
  switch (first) {
    case 'pods':
      return new PodsPage(params);
    case 'pod':
      return new PodPage(namespace, name, () => canWrite);
    case 'images':
      return new ImagesPage();
    case 'timeline':
      return new TimelinePage(params);
    case 'workers':
      return new WorkersPage();
    default:
      return new NowPage(head);
  }
}

function route(): void {
  const [path = '/', query = ''] = (location.hash.slice(1) || '/').split('?');
  const params = new URLSearchParams(query);
  if (shown?.path === path) {
    shown.view.update?.(params);
    return;
  }
  shown?.view.close?.();
  const view = make(path, params);
  shown = { path, view };
  document.title = `${view.title} · ${byId('node-name').textContent ?? ''}`;
  const main = byId('main');
  fill(main, h('h1', { class: 'unseen' }, view.title), view.element);
  for (const link of byId('nav').querySelectorAll('a')) {
    const target = link.getAttribute('href') ?? '';
    const isHere = target === `#${path}` || (target === '#/pods' && path.startsWith('/pod/'));
    if (isHere) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  live.follow(view.query, view.listeners);
}

function themes(): void {
  const root = document.documentElement;
  const saved = localStorage.getItem('theme');
  if (saved !== null) root.dataset['theme'] = saved;
  byId('theme').addEventListener('click', () => {
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    const next = (root.dataset['theme'] ?? (dark ? 'dark' : 'light')) === 'dark' ? 'light' : 'dark';
    root.dataset['theme'] = next;
    localStorage.setItem('theme', next);
  });
}

fill(byId('nav'), h('ul', {}, ...NAV.map(([href, text]) => h('li', {}, h('a', { href }, text)))));
themes();
addEventListener('hashchange', () => {
  const before = shown?.path;
  route();
  if (shown?.path !== before) {
    byId('main').focus();
    scrollTo(0, 0);
  }
});
document.addEventListener('keydown', (event) => {
  const isTyping =
    event.target instanceof HTMLElement && event.target.matches('input, textarea, select, [tabindex].screen');
  if (event.key !== '/' || isTyping || event.ctrlKey || event.metaKey) return;
  const filter = document.querySelector<HTMLInputElement>('input[type=search]');
  if (filter === null) return;
  event.preventDefault();
  filter.focus();
});
setInterval(() => document.hidden || growAges(Date.now()), 10_000);
const readHead = (): void =>
  void fetch('api/now')
    .then((answer) => answer.json())
    .then((now) => head(now as NowView))
    .catch(() => setTimeout(readHead, 2000));
readHead();
route();
