// Now: is the node well, how full is it, how is the agent itself, and how did the last hour look.
import type { HistoryView, NowView, PsiView, SeriesName, SignalView, Tone } from '../model.ts';
import type { View } from './app.ts';
import { arrange, h, Parts } from './dom.ts';
import { age, bytes, count, duration, percent } from './format.ts';
import { bar, card, dot, empty, pill, sparkline, whyBox } from './parts.ts';
import { pullList } from './pulls.ts';

const SAMPLES = 360;
/** So much time is shown even when the agent has not run that long. */
const LEAST_SAMPLES = 6;

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
    const hour = hourOf(this.#history);
    const { series } = hour;
    const part = (key: string, data: unknown, make: () => HTMLElement): HTMLElement =>
      this.#parts.show(key, data, make);
    arrange(this.element, [
      part('ready', [now.ready, now.node, now.problems], () => readyCard(now)),
      ...(now.pulls.length === 0 ? [] : [part('pulls', now.pulls, () => pullsCard(now))]),
      part('pods', [now.pods, series.pods], () => podsCard(now, hour)),
      part('cpu', [now.use.cpuCores, series.cpu], () => cpuCard(now, hour)),
      part('memory', [now.use, series.memory], () => memoryCard(now, hour)),
      part('disk', [now.use.disks, series.disk], () => diskCard(now, hour)),
      part('psi', [now.use.psi, series.psiCpu], () => psiCard(now, hour)),
      part('agent', [now.agent, series.agentCpu], () => agentCard(now, hour)),
      part('signals', now.signals, () => signalsCard(now.signals)),
      part('latency', [now.latency, series.runtimeMs], () => latencyCard(now, hour)),
      part('slowest', now.slowest, () => slowestCard(now)),
      part('conditions', [now.conditions, Math.floor(now.atMs / 10_000)], () => conditionsCard(now)),
    ]);
  }
}

type Series = HistoryView['series'];
/** The series, and in words how much time they span. */
type Hour = { readonly series: Series; readonly words: string };

function hourOf({ series, everyMs }: HistoryView): Hour {
  const known = series.cpu.length;
  const missing = Array.from<null>({ length: Math.max(0, LEAST_SAMPLES - known) }).fill(null);
  const padded = { ...series };
  for (const name of Object.keys(padded) as SeriesName[]) padded[name] = [...missing, ...series[name]];
  const minutes = Math.round((Math.max(known, LEAST_SAMPLES) * everyMs) / 60_000);
  return { series: padded, words: minutes >= 59 ? 'last hour' : `last ${minutes} min` };
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
      h(
        'p',
        { class: 'notice' },
        dot('warn'),
        h('a', { href: '#/workers' }, `${problems} problem${problems === 1 ? '' : 's'} in manifests`),
      ),
    h('dl', { class: 'facts' }, ...facts.map(([k, v]) => h('div', {}, h('dt', {}, k), h('dd', {}, v)))),
  );
}

const pullsCard = ({ pulls, atMs }: NowView): HTMLElement => {
  const section = card('Image pulls', pullList(pulls, atMs));
  section.classList.add('wide');
  return section;
};

function podsCard({ pods }: NowView, { series, words }: Hour): HTMLElement {
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
    ['Pods', words],
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
    sparkline(series.pods, { label: `Ready pods in the ${words}`, max: pods.total }),
  );
}

function cpuCard({ use, node }: NowView, { series, words }: Hour): HTMLElement {
  const share = percent(use.cpuCores ?? 0, node.cpus);
  return card(
    ['CPU', words],
    big(use.cpuCores === undefined ? '–' : use.cpuCores.toFixed(2), `of ${node.cpus} cores`),
    bar(share, { tone: tight(share), label: `${Math.round(share)} percent of the CPU is used` }),
    sparkline(series.cpu, { label: `CPU in the ${words}`, max: node.cpus }),
  );
}

function memoryCard({ use, node }: NowView, { series, words }: Hour): HTMLElement {
  const used = use.memoryWorkingSetBytes ?? 0;
  const whole = used + (use.memoryAvailableBytes ?? Math.max(0, node.memoryBytes - used));
  const share = percent(used, whole);
  return card(
    ['Memory', words],
    big(bytes(used), `of ${bytes(whole)}`),
    bar(share, { tone: tight(share), label: `${Math.round(share)} percent of the memory is used` }),
    sparkline(series.memory, { label: `Memory in the ${words}`, max: whole }),
    use.swapBytes !== undefined && use.swapBytes > 0 && h('p', { class: 'dim' }, `Swap ${bytes(use.swapBytes)}`),
  );
}

function diskCard({ use }: NowView, { series, words }: Hour): HTMLElement {
  if (use.disks.length === 0) return card('Disk', empty('Not measured yet.'));
  return card(
    ['Disk', words],
    ...use.disks.flatMap((disk, i) => {
      const share = percent(disk.usedBytes, disk.capacityBytes);
      const inodes = disk.inodes === undefined ? 0 : percent(disk.inodesUsed ?? 0, disk.inodes);
      const about = `${disk.name}${disk.inodes === undefined ? '' : `, ${Math.round(inodes)} % of inodes`}`;
      return [
        i === 0
          ? big(bytes(disk.usedBytes), `of ${bytes(disk.capacityBytes)}`)
          : h('p', {}, `${bytes(disk.usedBytes)} of ${bytes(disk.capacityBytes)}`),
        bar(share, {
          tone: tight(Math.max(share, inodes)),
          label: `${Math.round(share)} percent of ${disk.name} is used`,
        }),
        h('p', { class: 'dim' }, about),
      ];
    }),
    sparkline(series.disk, { label: `Disk in the ${words}`, max: use.disks[0]?.capacityBytes ?? 0 }),
  );
}

function psiCard({ use }: NowView, { series, words }: Hour): HTMLElement {
  const rows: [string, PsiView | undefined, readonly (number | null)[]][] = [
    ['CPU', use.psi.cpu, series.psiCpu],
    ['Memory', use.psi.memory, series.psiMemory],
    ['I/O', use.psi.io, series.psiIo],
  ];
  if (rows.every(([, psi]) => psi === undefined))
    return card('Pressure (PSI)', empty('This kernel does not tell how long work had to wait.'));
  return card(
    ['Pressure (PSI)', words],
    ...rows.map(([name, psi, values]) =>
      line(
        name,
        psi === undefined ? '–' : `${psi.some.toFixed(1)} %`,
        sparkline(values, { label: `Share of time work waited for ${name} in the ${words}`, max: 10 }),
      ),
    ),
    h('p', { class: 'dim note' }, 'Share of the last ten seconds in which something waited.'),
  );
}

const line = (name: string, value: string, values: SVGElement): HTMLElement =>
  h('div', { class: 'line' }, h('span', {}, name), h('span', { class: 'num' }, value), values);

function signalsCard(signals: readonly SignalView[]): HTMLElement {
  if (signals.length === 0) return card('Eviction thresholds', empty('Not measured yet.'));
  const amount = (s: SignalView, value: number): string => (s.unit === 'bytes' ? bytes(value) : count(value));
  const section = card('Eviction thresholds', h('div', { class: 'signals' }, ...signals.map((s) => signal(s, amount))));
  section.classList.add('wide');
  return section;
}

type Amount = (s: SignalView, value: number) => string;

function signal(s: SignalView, amount: Amount): HTMLElement {
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
}

function agentCard({ agent }: NowView, { series, words }: Hour): HTMLElement {
  const delay = agent.delayMs;
  const share = (value: number | undefined): string => (value === undefined ? '–' : `${(value * 100).toFixed(1)} %`);
  const delayWords = delay === undefined ? '–' : `p99 ${duration(delay.p99)}, max ${duration(delay.max)}`;
  return card(
    ['The agent itself', words],
    line('CPU', share(agent.cpuCores), sparkline(series.agentCpu, { label: `The agent's CPU in the ${words}` })),
    line(
      'Memory',
      bytes(agent.rssBytes),
      sparkline(series.agentMemory, { label: `The agent's memory in the ${words}` }),
    ),
    line(
      'Loop busy',
      share(agent.busy),
      sparkline(series.agentBusy, { label: `Share of time the agent's event loop was busy in the ${words}` }),
    ),
    h('p', { class: 'dim note' }, `Event loop delay ${delayWords}. Running for ${age(agent.uptimeMs)}.`),
  );
}

function latencyCard({ latency }: NowView, { series, words }: Hour): HTMLElement {
  const rows = [
    ['Runtime', latency.runtime, series.runtimeMs],
    ['API server', latency.api, series.apiMs],
  ] as const;
  return card(
    ['Answers from others', words],
    ...rows.flatMap(([name, view, values]) => {
      if (view === undefined) return [];
      return [
        line(
          name,
          view.p50Ms === undefined ? '–' : duration(view.p50Ms),
          sparkline(values, { label: `Median answer of the ${name} in the ${words}` }),
        ),
        h(
          'p',
          { class: 'dim note' },
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
