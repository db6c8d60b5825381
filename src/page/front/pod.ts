// One pod: why, how it started, its containers, probes, volumes, events, values and logs.
import type { ContainerView, EventView, PodRow, PodView, ProbeView, VolumeView } from '../model.ts';
import type { View } from './app.ts';
import { arrange, fill, h, Parts, type Child } from './dom.ts';
import { age, bytes, clockTime, cores, count, duration } from './format.ts';
import { LogPanel } from './logs.ts';
import { card, dot, empty, pill, table, when, whyBox } from './parts.ts';
import { useCell } from './pods.ts';
import { TerminalPanel } from './terminal.ts';
import { waterfall } from './waterfall.ts';

export class PodPage implements View {
  readonly title: string;
  readonly element = h('div', { class: 'grid' });
  readonly query: Readonly<Record<string, string>>;
  readonly listeners = {
    pod: (data: unknown) => this.#show(data as PodView),
    gone: () => this.#gone(),
  };
  readonly #parts = new Parts();
  readonly #logs: LogPanel;
  readonly #terminal: TerminalPanel;
  readonly #canWrite: () => boolean;
  readonly #where: string;

  constructor(namespace: string, name: string, canWrite: () => boolean) {
    this.title = name;
    this.#where = `${namespace}/${name}`;
    this.query = { view: 'pod', namespace, name };
    this.#logs = new LogPanel(namespace, name);
    this.#terminal = new TerminalPanel(namespace, name);
    this.#canWrite = canWrite;
  }

  close(): void {
    this.#logs.close();
    this.#terminal.close();
  }

  #gone(): void {
    fill(this.element, card(this.#where, empty('This pod is not on the node any more.')));
  }

  #show(view: PodView): void {
    const { row, atMs } = view;
    this.#logs.containers(view.containers);
    const writable = this.#canWrite() && view.containers.some((c) => c.state === 'Running');
    if (writable) this.#terminal.containers(view.containers);
    const part = (key: string, data: unknown, make: () => HTMLElement): HTMLElement =>
      this.#parts.show(key, data, make);
    const isMoving = view.waterfalls.some((w) => w.now.tookMs === undefined);
    arrange(this.element, [
      part('head', [row, view.worker, this.#canWrite()], () => headCard(view, this.#canWrite())),
      part('waterfalls', [view.waterfalls, isMoving && atMs], () => waterfallCard(view)),
      part('containers', [view.containers, Math.floor(atMs / 10_000)], () => containersCard(view)),
      this.#logs.element,
      ...(writable ? [this.#terminal.element] : []),
      part('probes', view.probes, () => probesCard(view.probes, atMs)),
      part('volumes', view.volumes, () => volumesCard(view.volumes)),
      part('conditions', view.conditions, () => conditionsCard(view)),
      part('compared', view.compared, () => comparedCard(view)),
      part('cgroup', view.cgroup, () => cgroupCard(view)),
      part('events', [view.events, Math.floor(atMs / 10_000)], () => eventsCard(view)),
      part('spec', view.spec, () => specCard(view)),
    ]);
  }
}

function headCard({ row, worker, atMs }: PodView, canWrite: boolean): HTMLElement {
  const facts: [string, Child][] = [
    ['Namespace', row.namespace],
    ['Address', row.ip ?? '–'],
    ['Age', row.createdAtMs === undefined ? '–' : when(row.createdAtMs, atMs)],
    ['Quality of service', row.qos ?? '–'],
    ['Source', row.source],
    ['Restarts', count(row.restarts)],
    [
      'Worker',
      worker === undefined
        ? '–'
        : `${worker.phase}${worker.busy ? ', busy' : ''}${worker.waitsFor === undefined ? '' : `: ${worker.waitsFor}`}`,
    ],
  ];
  return h(
    'section',
    { class: `card wide hero ${row.tone}`, 'aria-label': 'Pod' },
    h('p', { class: 'dim' }, h('a', { href: '#/pods' }, 'Pods'), ` / ${row.namespace} /`),
    h('h2', {}, row.name, ' ', pill(row.tone, row.state)),
    row.why !== undefined && whyBox(row.why, row.tone),
    canWrite && row.tone === 'bad' && retryButton(row),
    h('dl', { class: 'facts' }, ...facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
  );
}

/** Ends the pod's back-offs. */
function retryButton({ namespace, name }: PodRow): HTMLElement {
  const button = h('button', { type: 'button', class: 'retry', onclick: () => void press() }, 'Retry now');
  const press = async (): Promise<void> => {
    button.disabled = true;
    const where = `api/retry/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
    const answer = await fetch(where, { method: 'POST' }).catch(() => undefined);
    button.textContent = answer?.ok === true ? 'Being tried …' : 'Could not be asked for';
  };
  return button;
}

const waterfallCard = ({ waterfalls, atMs }: PodView): HTMLElement => {
  const section = card(
    'Start and stop',
    ...(waterfalls.length === 0
      ? [empty('This pod has run since before the agent was started.')]
      : waterfalls.map((w) => waterfall(w, atMs))),
  );
  section.classList.add('wide');
  return section;
};

function containersCard({ containers, atMs }: PodView): HTMLElement {
  const section = card('Containers', ...containers.map((c) => containerBox(c, atMs)));
  section.classList.add('wide');
  return section;
}

function containerBox(c: ContainerView, atMs: number): HTMLElement {
  const exit = c.exit ?? (c.lastExit === undefined ? undefined : `last time ${c.lastExit}`);
  return h(
    'article',
    { class: `container ${c.tone}`, 'aria-label': `Container ${c.name}` },
    h(
      'h3',
      {},
      dot(c.tone),
      ` ${c.name} `,
      c.kind !== 'main' && pill('idle', c.kind),
      h('span', { class: 'dim' }, ` ${c.state}`),
    ),
    c.message !== undefined && h('p', { class: 'error' }, c.message),
    h(
      'dl',
      { class: 'pairs' },
      field('Image', h('span', { class: 'mono' }, c.image)),
      field('Running for', c.startedAtMs === undefined ? '–' : when(c.startedAtMs, atMs)),
      field(
        'Restarts',
        `${count(c.restarts)}${exit === undefined ? '' : `, ${exit}`}${c.lastExitMs === undefined ? '' : ` ${age(atMs - c.lastExitMs)} ago`}`,
      ),
      field('CPU', useCell(c.cpuCores, c.cpuLimitCores, cores)),
      field('Memory', useCell(c.memoryBytes, c.memoryLimitBytes, bytes)),
      c.id !== undefined && field('Id', h('span', { class: 'mono' }, c.id.replace(/^.*:\/\//, '').slice(0, 13))),
    ),
  );
}

const field = (name: string, value: Child): HTMLElement => h('div', {}, h('dt', {}, name), h('dd', {}, value));

const RESULTS = { success: 'ok', failure: 'bad', unknown: 'warn' } as const;

const probesCard = (probes: readonly ProbeView[], atMs: number): HTMLElement =>
  card(
    'Probes',
    probes.length === 0
      ? empty('No container has a probe.')
      : h(
          'ul',
          { class: 'probes' },
          ...probes.map((p) => {
            const last = p.runs.at(-1);
            return h(
              'li',
              {},
              h(
                'p',
                {},
                h('strong', {}, p.type),
                ` of ${p.container} `,
                h('span', { class: 'dim' }, `every ${p.periodSeconds} s`),
              ),
              h('p', { class: 'mono' }, p.what),
              h(
                'ol',
                { class: 'runs', 'aria-label': `The last ${p.runs.length} runs, newest last` },
                ...p.runs.map((r) =>
                  h(
                    'li',
                    {
                      class: RESULTS[r.result],
                      title: `${clockTime(r.atMs)} ${r.result} in ${duration(r.tookMs)} ${r.output}`,
                    },
                    h('span', { class: 'unseen' }, r.result),
                  ),
                ),
              ),
              last === undefined
                ? h('p', { class: 'dim' }, 'Not asked yet.')
                : h(
                    'p',
                    { class: 'dim' },
                    `${last.result} in ${duration(last.tookMs)}, ${age(atMs - last.atMs)} ago${last.output === '' ? '' : `: ${last.output}`}`,
                  ),
            );
          }),
        ),
  );

const volumesCard = (volumes: readonly VolumeView[]): HTMLElement =>
  card(
    'Volumes',
    volumes.length === 0
      ? empty('It has none.')
      : h(
          'ul',
          { class: 'plain' },
          ...volumes.map((v) =>
            h(
              'li',
              {},
              h('span', {}, dot(v.tone), ` ${v.name} `, h('span', { class: 'dim' }, v.kind)),
              h(
                'span',
                { class: v.waitsFor === undefined ? 'dim' : 'error' },
                v.waitsFor ?? (v.usedBytes === undefined ? (v.tone === 'ok' ? 'mounted' : '') : bytes(v.usedBytes)),
              ),
            ),
          ),
        ),
  );

const conditionsCard = ({ conditions, atMs }: PodView): HTMLElement =>
  card(
    'Conditions',
    conditions.length === 0
      ? empty('None yet.')
      : h(
          'ul',
          { class: 'plain' },
          ...conditions.map((c) =>
            h(
              'li',
              { title: c.message },
              h('span', {}, dot(c.tone === 'bad' ? 'warn' : c.tone), ` ${c.type}`),
              h(
                'span',
                { class: 'dim' },
                `${c.status}${c.reason === undefined ? '' : ` (${c.reason})`}${c.sinceMs === undefined ? '' : ` for ${age(atMs - c.sinceMs)}`}`,
              ),
            ),
          ),
        ),
  );

function comparedCard({ compared }: PodView): HTMLElement {
  const section = card(
    'Spec against what runs',
    compared.length === 0
      ? empty('Nothing runs that could be compared.')
      : table(
          'Spec against what runs',
          ['What', 'Spec', 'Running'],
          compared.map((c) => [
            h('span', { class: 'state' }, dot(c.same ? 'ok' : 'warn'), c.what),
            h('span', { class: 'mono' }, c.wanted),
            h('span', { class: c.same ? 'mono' : 'mono error' }, c.running),
          ]),
        ),
  );
  section.classList.add('half');
  return section;
}

/** `spec.containers{web}` → `web` */
const containerOf = ({ about }: EventView): Child => {
  const name = /\{(.+)\}$/.exec(about ?? '')?.[1];
  return name !== undefined && h('span', { class: 'dim' }, `${name} `);
};

const eventsCard = ({ events, atMs }: PodView): HTMLElement => {
  const section = card(
    'Events',
    events.length === 0
      ? empty('Nothing has happened yet.')
      : table(
          'Events',
          ['Age', 'Reason', 'Message'],
          events.map((e) => [
            when(e.atMs, atMs),
            h(
              'span',
              { class: 'state' },
              dot(e.type === 'Warning' ? 'warn' : 'ok'),
              e.reason,
              e.count > 1 && h('span', { class: 'dim times' }, `×${e.count}`),
            ),
            [containerOf(e), e.message],
          ]),
          'cards',
        ),
  );
  section.classList.add('wide');
  return section;
};

const cgroupCard = ({ cgroup }: PodView): HTMLElement => {
  const files = [...new Set(cgroup.flatMap((c) => Object.keys(c.values)))];
  const section = card(
    'Cgroup values',
    cgroup.length === 0
      ? empty('It has no cgroup now.')
      : table(
          'Cgroup values',
          ['Value', ...cgroup.map((c) => c.name)],
          files.map((file) => [
            h('code', {}, file),
            ...cgroup.map((c) => h('span', { class: 'mono' }, readable(file, c.values[file]))),
          ]),
        ),
  );
  section.classList.add('half');
  return section;
};

const UNLIMITED = 2 ** 62;

function readable(file: string, value: string | undefined): string {
  if (value === undefined) return '';
  const amount = Number(value);
  if (!file.startsWith('memory.') || !/^\d+$/.test(value) || file.endsWith('failcnt')) return value;
  return amount > UNLIMITED ? 'unlimited' : bytes(amount);
}

const specCard = ({ spec }: PodView): HTMLElement => {
  const section = card('Spec', h('details', {}, h('summary', {}, 'Show as YAML'), h('pre', { tabindex: 0 }, spec)));
  section.classList.add('wide');
  return section;
};
