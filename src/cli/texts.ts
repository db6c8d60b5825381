// What the commands print, made of the kubelet's JSON. Pure.
import { humanBytes, humanProgress, humanSpan } from '../core/human.ts';
import type { KubeEvent } from '../core/node.ts';
import { parseTimeMs } from '../core/time.ts';
import type { PullView } from '../images/pull-progress.ts';
import type { NowView, PodRow, PodsView, ProblemView } from '../page/model.ts';
import type { Why } from '../why/facts.ts';
import { table } from './table.ts';

export type NamedWhy = { readonly namespace: string; readonly name: string; readonly why: Why };

export const whyText = ({ namespace, name, why }: NamedWhy): string =>
  [
    `${namespace}/${name}: ${why.sentence}`,
    ...why.evidence.map((line) => `  - ${line}`),
    ...(why.todo === '' ? [] : [`What to do: ${why.todo}`]),
    '',
  ].join('\n');

export const whyAllText = (pods: readonly NamedWhy[]): string =>
  pods.length === 0
    ? 'All pods are ready or done.\n'
    : table([
        ['POD', 'STATE', 'WHY'],
        ...pods.map(({ namespace, name, why }) => [`${namespace}/${name}`, why.state, why.sentence]),
      ]);

/** Manifests that make no pod, or not the one that was meant. */
export const manifestsText = (problems: readonly ProblemView[]): string =>
  problems.length === 0
    ? ''
    : ['', 'Problems in manifests:', ...problems.map((p) => `  ${placeText(p)}: ${p.message}`), ''].join('\n');

const placeText = ({ where, line, column }: ProblemView): string =>
  line === undefined ? where : `${where}:${line}${column === undefined ? '' : `:${column}`}`;

export function eventsText(events: readonly KubeEvent[], nowMs: number): string {
  if (events.length === 0) return 'No events.\n';
  const rows = events.map((e) => [
    humanSpan(nowMs - parseTimeMs(e.lastTimestamp ?? e.eventTime)),
    e.type ?? '',
    e.reason ?? '',
    aboutText(e),
    `${oneLine(e.message ?? '')}${(e.count ?? 1) > 1 ? ` (${e.count} times)` : ''}`,
  ]);
  return table([['AGE', 'TYPE', 'REASON', 'OBJECT', 'MESSAGE'], ...rows]);
}

const aboutText = ({ involvedObject: { kind = '', namespace, name = '' } }: KubeEvent): string =>
  `${kind.toLowerCase()}/${namespace === undefined ? '' : `${namespace}/`}${name}`;

const oneLine = (text: string): string => text.replace(/\s+/g, ' ').trim();

export function pullsText(pulls: readonly PullView[], nowMs: number): string {
  if (pulls.length === 0) return 'No images are being pulled.\n';
  return table([
    ['POD', 'IMAGE', 'PROGRESS'],
    ...pulls.map((p) => [`${p.namespace}/${p.pod}`, p.image, pullText(p, nowMs)]),
  ]);
}

const pullText = (pull: PullView, nowMs: number): string =>
  pull.phase === 'queued'
    ? `queued behind ${pull.ahead ?? 0}, ${humanSpan(nowMs - pull.sinceMs)} so far`
    : humanProgress(pull.progress, nowMs - (pull.pullingSinceMs ?? pull.sinceMs));

export function topText(now: NowView, { pods }: PodsView): string {
  return `${nodeText(now)}\n${podsText(pods, now.atMs)}`;
}

function nodeText({ node, ready, use, pods, agent, pulls, problems, atMs }: NowView): string {
  const counts = [
    `${pods.ready} ready`,
    ...count(pods.starting, 'starting'),
    ...count(pods.notReady, 'not ready'),
    ...count(pods.stopping, 'stopping'),
    ...count(pods.ended, 'ended'),
  ];
  const psi = (['cpu', 'memory', 'io'] as const).flatMap((what) =>
    use.psi[what] === undefined ? [] : [`${what} ${use.psi[what].some.toFixed(1)} %`],
  );
  const lines = [
    `${node.name}  ${ready.ready ? 'Ready' : 'NOT READY'}  ${node.version}  ${node.runtime}  up ${humanSpan(atMs - node.startedAtMs)}`,
    ...(ready.ready ? [] : [`  ${ready.why.sentence}`]),
    `pods      ${pods.total} of ${pods.max} (${counts.join(', ')})${pulls.length === 0 ? '' : `, ${pulls.length} pulls`}`,
    ...(problems === 0 ? [] : [`manifests ${problems} with problems, see: kubelet node why`]),
    `cpu       ${cores(use.cpuCores)} of ${node.cpus} cores`,
    `memory    ${size(use.memoryWorkingSetBytes)} of ${humanBytes(node.memoryBytes)}`,
    ...use.disks.map((d) => `${d.name.padEnd(9)} ${humanBytes(d.usedBytes)} of ${humanBytes(d.capacityBytes)}`),
    ...(psi.length === 0 ? [] : [`waiting   ${psi.join(', ')} of the last 10 s`]),
    `kubelet   ${cores(agent.cpuCores)} cores, ${humanBytes(agent.rssBytes)}, up ${humanSpan(agent.uptimeMs)}`,
  ];
  return `${lines.join('\n')}\n`;
}

const count = (n: number, what: string): string[] => (n === 0 ? [] : [`${n} ${what}`]);
const cores = (n: number | undefined): string => (n === undefined ? '?' : n.toFixed(2));
const size = (n: number | undefined): string => (n === undefined ? '?' : humanBytes(n));

/** What needs somebody's attention first, then by name. */
const TONES: readonly PodRow['tone'][] = ['bad', 'warn', 'busy', 'ok', 'idle'];

function podsText(pods: readonly PodRow[], nowMs: number): string {
  if (pods.length === 0) return 'No pods.\n';
  const key = (p: PodRow): string => `${TONES.indexOf(p.tone)} ${p.namespace}/${p.name}`;
  const rows = [...pods].sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return table([
    ['NAMESPACE', 'POD', 'STATE', 'READY', 'RESTARTS', 'CPU', 'MEMORY', 'AGE', 'WHY'],
    ...rows.map((p) => [
      p.namespace,
      p.name,
      p.state,
      `${p.readyContainers}/${p.containers}`,
      `${p.restarts}${p.lastExit === undefined ? '' : ` ${p.lastExit}`}`,
      cores(p.cpuCores),
      size(p.memoryBytes),
      p.createdAtMs === undefined ? '' : humanSpan(nowMs - p.createdAtMs),
      p.why?.sentence ?? '',
    ]),
  ]);
}
