// Reconcile: what every pod worker is at, which calls have no answer yet, and what is wrong with manifests.
import type { CallView, ProblemView, WorkersView, WorkerView } from '../model.ts';
import type { View } from './app.ts';
import { arrange, h, Parts } from './dom.ts';
import { age, duration } from './format.ts';
import { card, dot, empty, pill, table } from './parts.ts';
import { podLink } from './pods.ts';

const SLOW_CALL_MS = 10_000;
/** Long by nature. */
const LONG_CALLS = new Set(['pullImage', 'stopContainer', 'execSync']);

const isSlow = ({ call, sinceMs }: CallView, atMs: number): boolean =>
  atMs - sinceMs > SLOW_CALL_MS && !LONG_CALLS.has(call);

export class WorkersPage implements View {
  readonly title = 'Reconcile';
  readonly element = h('div', { class: 'grid' });
  readonly query = { view: 'workers' };
  readonly listeners = { workers: (data: unknown) => this.#show(data as WorkersView) };
  readonly #parts = new Parts();

  #show(view: WorkersView): void {
    const { atMs } = view;
    arrange(this.element, [
      this.#parts.show('problems', view.problems, () => problemsCard(view.problems)),
      this.#parts.show('calls', [view.calls, atMs], () => callsCard(view.calls, atMs)),
      this.#parts.show('workers', [view.workers, Math.floor(atMs / 2000)], () => workersCard(view.workers, atMs)),
    ]);
  }
}

function problemsCard(problems: readonly ProblemView[]): HTMLElement {
  const section = card(
    'Problems in manifests',
    problems.length === 0
      ? empty('None: every manifest could be read.')
      : h(
          'ul',
          { class: 'plain problems' },
          ...problems.map((p) =>
            h(
              'li',
              {},
              dot(p.severity === 'error' ? 'bad' : 'warn'),
              h(
                'div',
                {},
                h('p', { class: 'mono' }, `${p.where}${p.line === undefined ? '' : `:${p.line}:${p.column ?? 1}`}`),
                h('p', {}, p.message),
                h('p', { class: 'dim' }, `${p.source}, since ${new Date(p.since).toLocaleString()}`),
              ),
            ),
          ),
        ),
  );
  section.classList.add('half');
  return section;
}

function callsCard(calls: readonly CallView[], atMs: number): HTMLElement {
  const section = card(
    'Calls in flight',
    calls.length === 0
      ? empty('Every call has been answered.')
      : table(
          'Calls in flight',
          ['For', 'To', 'Call'],
          calls.map((c) => [
            h('span', { class: isSlow(c, atMs) ? 'num error' : 'num' }, duration(atMs - c.sinceMs)),
            c.to === 'runtime' ? 'runtime' : 'API server',
            h('span', { class: 'mono' }, c.call),
          ]),
        ),
  );
  section.classList.add('half');
  return section;
}

const weight = (w: WorkerView): number => (w.lastError !== undefined ? 0 : w.busy ? 1 : w.phase === 'syncing' ? 3 : 2);

function workersCard(workers: readonly WorkerView[], atMs: number): HTMLElement {
  const sorted = workers.toSorted((a, b) => weight(a) - weight(b) || (a.pod < b.pod ? -1 : 1));
  const busy = workers.filter((w) => w.busy).length;
  const section = card(
    'Pod workers',
    h('p', { class: 'dim' }, `${workers.length} workers, ${busy} busy.`),
    workers.length === 0
      ? empty('No pod is known to this node.')
      : table(
          'Pod workers',
          ['Pod', 'Phase', 'Waits for', 'Since', 'Looks again'],
          sorted.map((w) => {
            const [namespace = '', name = ''] = w.pod.split('/');
            return [
              h('a', { href: podLink(namespace, name) }, w.pod),
              pill(
                w.lastError !== undefined ? 'bad' : w.busy ? 'busy' : w.phase === 'syncing' ? 'ok' : 'idle',
                w.busy ? `${w.phase}, busy` : w.phase,
              ),
              w.lastError === undefined
                ? (w.waitsFor ?? h('span', { class: 'dim' }, 'nothing'))
                : h('span', { class: 'error' }, w.lastError),
              w.waitsSinceMs !== undefined
                ? age(atMs - w.waitsSinceMs)
                : w.sinceMs === undefined
                  ? ''
                  : age(atMs - w.sinceMs),
              w.nextMs === undefined ? '' : `in ${age(w.nextMs - atMs)}`,
            ];
          }),
          'cards workers',
        ),
  );
  section.classList.add('wide');
  return section;
}
