// Now: is the node well, how full is it, how is the agent itself, and how did the last hour look.
import type { HistoryView, NowView, PsiView, SeriesName, SignalView, Tone } from '../model.ts';
import type { View } from './app.ts';
import { arrange, h, Parts } from './dom.ts';
import { age, bytes, count, duration, percent } from './format.ts';
import { bar, card, dot, empty, pill, sparkline, whyBox } from './parts.ts';
import { pullList } from './pulls.ts';

const SAMPLES = 360;

export class NowPage implements View {
  readonly title = 'Now';
  readonly element = h('div', { class: 'grid' });
  readonly query = { view: 'now' };
  readonly listeners = { now: (data: unknown) => this.#show(data as NowView) };
  readonly #head: (now: NowView) => void;
  readonly #parts = new Parts();
  #history: HistoryView | undefined;

  constructor(head: (now: NowView) => void) {
    this.#head = head;
  }

  #show(now: NowView): void {
    this.#head(now);
    this.#history = merged(this.#history, now.history);
    const { series } = this.#history;
    const part = (key: string, data: unknown, make: () => HTMLElement): HTMLElement =>
      this.#parts.show(key, data, make);
    arrange(this.element, [
      part('ready', [now.ready, now.node, now.problems], () => readyCard(now)),
      part('pods', [now.pods, series.pods.length], () => podsCard(now)),
      part('cpu', [now.use, series.cpu], () => cpuCard(now, series)),
      part('memory', [now.use, series.memory], () => memoryCard(now, series)),
      part('disk', [now.use.disks, series.disk], () => diskCard(now, series)),
      part('psi', [now.use.psi, series.psiCpu], () => psiCard(now, series)),
      part('signals', now.signals, () => tall(signalsCard(now.signals))),
      part('agent', [now.agent, series.agentCpu], () => agentCard(now, series)),
      part('latency', [now.latency, series.runtimeMs], () => latencyCard(now, series)),
      part('pulls', now.pulls, () => card('Image pulls', pullList(now.pulls, now.atMs))),
      part('slowest', now.slowest, () => slowestCard(now)),
      part('conditions', now.conditions, () => conditionsCard(now)),
    ]);
  }
}

/** New samples behind the old ones; those of the same moment are replaced. */
function merged(before: HistoryView | undefined, now: HistoryView): HistoryView {
  if (before === undefined || now.series.cpu.length >= SAMPLES) return now;
  const fresh = Math.round((now.endMs - before.endMs) / now.everyMs);
  const overlap = now.series.cpu.length - fresh;
  if (fresh < 0 || overlap < 0) return now;
  const series = { ...now.series };
  for (const name of Object.keys(series) as SeriesName[]) {
    const old = before.series[name];
    series[name] = [...old.slice(0, Math.max(0, old.length - overlap)), ...now.series[name]].slice(-SAMPLES);
  }
  return { ...now, series };
}

/** Beside two others. */
function tall(element: HTMLElement): HTMLElement {
  element.classList.add('tall');
  return element;
}

type Series = HistoryView['series'];

const big = (value: string, unit = ''): HTMLElement =>
  h('p', { class: 'big' }, value, unit !== '' && h('small', {}, ` ${unit}`));

const tight = (share: number): Tone => (share > 92 ? 'bad' : share > 80 ? 'warn' : 'ok');

function readyCard({ ready, node, problems }: NowView): HTMLElement {
  const facts: [string, string][] = [
    ['Kubelet', node.version],
    ['Runtime', node.runtime],
    ['Machine', `${node.cpus} CPUs, ${bytes(node.memoryBytes)}, ${node.architecture}`],
    ...(node.os === undefined
      ? []
      : ([['System', `${node.os}${node.kernel === undefined ? '' : `, ${node.kernel}`}`]] as [string, string][])),
    ['Pods from', node.standalone ? 'manifests on this node' : 'the cluster and manifests'],
  ];
  return h(
    'section',
    { class: `card wide hero ${ready.ready ? 'ok' : 'bad'}`, 'aria-label': 'Readiness' },
    h('h2', {}, ready.ready ? 'Ready' : 'Not ready'),
    whyBox(ready.why, ready.ready ? 'ok' : 'bad'),
    problems > 0 &&
      h('p', {}, h('a', { href: '#/workers' }, `${problems} problem${problems === 1 ? '' : 's'} in manifests`)),
    h('dl', { class: 'facts' }, ...facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
  );
}

function podsCard({ pods }: NowView): HTMLElement {
  const kinds: [Tone, string, number, string][] = [
    ['ok', 'ready', pods.ready, 'ok'],
    ['busy', 'starting', pods.starting, 'busy'],
    ['bad', 'not ready', pods.notReady, 'bad'],
    ['busy', 'stopping', pods.stopping, 'stopping'],
    ['idle', 'ended', pods.ended, 'idle'],
  ];
  const stack = h('span', {
    class: 'stack',
    role: 'img',
    'aria-label': `${pods.ready} of ${pods.total} pods are ready`,
  });
  for (const [tone, , n] of kinds) {
    const piece = h('span', { class: tone });
    piece.style.flexGrow = String(n);
    if (n > 0) stack.append(piece);
  }
  return card(
    'Pods',
    big(count(pods.total), `of at most ${count(pods.max)}`),
    stack,
    h(
      'ul',
      { class: 'legend' },
      ...kinds
        .filter(([, , n]) => n > 0)
        .map(([tone, word, n, key]) =>
          h('li', {}, dot(tone), h('a', { href: `#/pods?state=${key}` }, `${count(n)} ${word}`)),
        ),
    ),
  );
}

function cpuCard({ use, node }: NowView, series: Series): HTMLElement {
  const share = percent(use.cpuCores ?? 0, node.cpus);
  return card(
    'CPU',
    big(use.cpuCores === undefined ? '–' : use.cpuCores.toFixed(2), `of ${node.cpus} cores`),
    bar(share, { tone: tight(share), label: `${Math.round(share)} percent of the CPU is used` }),
    sparkline(series.cpu, { label: 'CPU in the last hour', max: node.cpus }),
  );
}

function memoryCard({ use, node }: NowView, series: Series): HTMLElement {
  const used = use.memoryWorkingSetBytes ?? 0;
  const whole = used + (use.memoryAvailableBytes ?? Math.max(0, node.memoryBytes - used));
  const share = percent(used, whole);
  return card(
    'Memory',
    big(bytes(used), `of ${bytes(whole)}`),
    bar(share, { tone: tight(share), label: `${Math.round(share)} percent of the memory is used` }),
    sparkline(series.memory, { label: 'Memory in the last hour', max: whole }),
    use.swapBytes !== undefined && use.swapBytes > 0 && h('p', { class: 'dim' }, `Swap ${bytes(use.swapBytes)}`),
  );
}

function diskCard({ use }: NowView, series: Series): HTMLElement {
  if (use.disks.length === 0) return card('Disk', empty('Not measured yet.'));
  return card(
    'Disk',
    ...use.disks.flatMap((disk, i) => {
      const share = percent(disk.usedBytes, disk.capacityBytes);
      const inodes = disk.inodes === undefined ? 0 : percent(disk.inodesUsed ?? 0, disk.inodes);
      const words = `${disk.name}${disk.inodes === undefined ? '' : `, ${Math.round(inodes)} % of inodes`}`;
      return [
        i === 0
          ? big(bytes(disk.usedBytes), `of ${bytes(disk.capacityBytes)}`)
          : h('p', {}, `${bytes(disk.usedBytes)} of ${bytes(disk.capacityBytes)}`),
        bar(share, {
          tone: tight(Math.max(share, inodes)),
          label: `${Math.round(share)} percent of ${disk.name} is used`,
        }),
        h('p', { class: 'dim' }, words),
      ];
    }),
    sparkline(series.disk, { label: 'Disk in the last hour', max: use.disks[0]?.capacityBytes ?? 0 }),
  );
}

function psiCard({ use }: NowView, series: Series): HTMLElement {
  const rows: [string, PsiView | undefined, readonly (number | null)[]][] = [
    ['CPU', use.psi.cpu, series.psiCpu],
    ['Memory', use.psi.memory, series.psiMemory],
    ['I/O', use.psi.io, series.psiIo],
  ];
  if (rows.every(([, psi]) => psi === undefined))
    return card('Pressure (PSI)', empty('This kernel does not tell how long work had to wait.'));
  return card(
    'Pressure (PSI)',
    ...rows.map(([name, psi, values]) =>
      h(
        'div',
        { class: 'line' },
        h('span', {}, name),
        h('span', { class: 'num' }, psi === undefined ? '–' : `${psi.some.toFixed(1)} %`),
        sparkline(values, { label: `Share of time work waited for ${name} in the last hour`, max: 10 }),
      ),
    ),
    h('p', { class: 'dim' }, 'Share of the last ten seconds in which something waited.'),
  );
}

function signalsCard(signals: readonly SignalView[]): HTMLElement {
  if (signals.length === 0) return card('Eviction thresholds', empty('Not measured yet.'));
  const amount = (s: SignalView, value: number): string => (s.unit === 'bytes' ? bytes(value) : count(value));
  return card(
    'Eviction thresholds',
    ...signals.map((s) => {
      const left = percent(s.available, s.capacity);
      return h(
        'div',
        { class: 'signal' },
        h('span', { class: 'mono' }, s.signal, !s.hard && h('span', { class: 'dim' }, ' soft')),
        h('span', { class: 'num' }, s.met ? pill('bad', 'met') : '', ` ${amount(s, s.available)} left`),
        bar(100 - left, {
          tone: s.met ? 'bad' : left < 3 * percent(s.threshold, s.capacity) ? 'warn' : 'ok',
          mark: 100 - percent(s.threshold, s.capacity),
          label: `${s.signal}: ${amount(s, s.available)} left, pods are evicted below ${amount(s, s.threshold)}`,
        }),
        h('span', { class: 'dim' }, `evicts below ${amount(s, s.threshold)}`),
      );
    }),
  );
}

function agentCard({ agent }: NowView, series: Series): HTMLElement {
  const delay = agent.delayMs;
  return card(
    'The agent itself',
    big(agent.cpuCores === undefined ? '–' : `${(agent.cpuCores * 100).toFixed(2)} %`, 'of a core'),
    sparkline(series.agentCpu, { label: "The agent's CPU in the last hour" }),
    h(
      'dl',
      { class: 'pairs' },
      pair('Memory', bytes(agent.rssBytes)),
      pair('Event loop busy', agent.busy === undefined ? '–' : `${(agent.busy * 100).toFixed(1)} %`),
      pair('Delay p99 / max', delay === undefined ? '–' : `${duration(delay.p99)} / ${duration(delay.max)}`),
      pair('Running for', age(agent.uptimeMs)),
    ),
  );
}

const pair = (name: string, value: string): HTMLElement => h('div', {}, h('dt', {}, name), h('dd', {}, value));

function latencyCard({ latency }: NowView, series: Series): HTMLElement {
  const rows = [
    ['Runtime', latency.runtime, series.runtimeMs],
    ['API server', latency.api, series.apiMs],
  ] as const;
  return card(
    'Answers from others',
    ...rows.flatMap(([name, view, values]) => {
      if (view === undefined) return [];
      return [
        h(
          'div',
          { class: 'line' },
          h('span', {}, name),
          h('span', { class: 'num' }, view.p50Ms === undefined ? '–' : duration(view.p50Ms)),
          sparkline(values, { label: `Median answer of the ${name} in the last hour` }),
        ),
        h(
          'p',
          { class: 'dim' },
          `p99 ${view.p99Ms === undefined ? '–' : duration(view.p99Ms)}, ${view.inFlight} in flight, ${view.failed} of ${view.calls} failed`,
        ),
      ];
    }),
  );
}

const slowestCard = ({ slowest }: NowView): HTMLElement =>
  card(
    'Slowest starts',
    slowest.length === 0
      ? empty('No pod has started since the agent did.')
      : h(
          'ol',
          { class: 'plain' },
          ...slowest.map((s) =>
            h(
              'li',
              {},
              h(
                'a',
                { href: `#/pod/${encodeURIComponent(s.namespace)}/${encodeURIComponent(s.name)}` },
                `${s.namespace}/${s.name}`,
              ),
              h('span', { class: 'num' }, duration(s.tookMs)),
            ),
          ),
        ),
  );

const conditionsCard = ({ conditions, atMs }: NowView): HTMLElement =>
  card(
    'Conditions',
    conditions.length === 0
      ? empty('A node without a cluster has no conditions.')
      : h(
          'ul',
          { class: 'plain' },
          ...conditions.map((c) =>
            h(
              'li',
              { title: c.message },
              h('span', {}, dot(c.tone), ` ${c.type}`),
              h(
                'span',
                { class: 'dim' },
                `${c.status}${c.sinceMs === undefined ? '' : ` for ${age(atMs - c.sinceMs)}`}`,
              ),
            ),
          ),
        ),
  );
