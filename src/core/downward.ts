// What a pod may learn about itself: the values behind fieldRef and resourceFieldRef, shared by environment variables
// and downward API volumes so that both always say the same.
import { KubeletError } from '../lib/errors.ts';
import { entryOf } from './meta.ts';
import { namespaceOf, type Container, type Pod, type ResourceFieldSelector, type ResourceList } from './pod.ts';
import { quantity, toMilli, toUnits, type Quantity } from './quantity.ts';

/** Facts that are not in the pod's spec. Addresses are in order of preference; none while they are not known yet. */
export type DownwardFacts = { readonly podIPs: readonly string[]; readonly hostIPs: readonly string[] };

const SUBSCRIPT = /^(metadata\.(?:labels|annotations))\['(.*)'\]$/s;

/** The text behind `fieldRef.fieldPath`. A label or annotation that is not there is the empty string. */
export function fieldValue(pod: Pod, path: string, facts: DownwardFacts): string {
  const subscripted = SUBSCRIPT.exec(path);
  if (subscripted !== null) {
    const [, map, key = ''] = subscripted;
    return entryOf(map === 'metadata.labels' ? pod.metadata.labels : pod.metadata.annotations, key) ?? '';
  }
  switch (path) {
    case 'metadata.name':
      return pod.metadata.name;
    case 'metadata.namespace':
      return namespaceOf(pod);
    case 'metadata.uid':
      return pod.metadata.uid ?? '';
    case 'metadata.labels':
      return formatMap(pod.metadata.labels);
    case 'metadata.annotations':
      return formatMap(pod.metadata.annotations);
    case 'spec.nodeName':
      return pod.spec.nodeName ?? '';
    case 'spec.serviceAccountName':
      return pod.spec.serviceAccountName ?? '';
    case 'status.hostIP':
      return facts.hostIPs[0] ?? '';
    case 'status.hostIPs':
      return facts.hostIPs.join(',');
    case 'status.podIP':
      return facts.podIPs[0] ?? '';
    case 'status.podIPs':
      return facts.podIPs.join(',');
    default:
      throw new KubeletError('invalid', `unsupported fieldPath: ${path}`);
  }
}

/** One `key="quoted value"` line per key, sorted by key, no newline at the end. */
export function formatMap(map: Readonly<Record<string, string>> | undefined): string {
  const entries = Object.entries(map ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return entries.map(([key, value]) => `${key}=${goQuote(value)}`).join('\n');
}

const SHORT_ESCAPES: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '"': '\\"',
  '\\': '\\\\',
};
const UNPRINTABLE = /["\\\P{ASCII}\p{Cc}]+/gu;
const PRINTABLE = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]$/u;
const ASCII = Array.from({ length: 0x80 }, (_, point) => escaped(String.fromCharCode(point)));

/** A string literal as Go's %q prints it. Texts may be long: what is printable is copied run by run. */
export const goQuote = (text: string): string => `"${text.replace(UNPRINTABLE, escapedRun)}"`;

function escapedRun(run: string): string {
  let out = '';
  for (const character of run) out += ASCII[character.charCodeAt(0)] ?? escaped(character);
  return out;
}

function escaped(character: string): string {
  const point = character.codePointAt(0) ?? 0;
  const short = SHORT_ESCAPES[character];
  if (short !== undefined) return short;
  if (PRINTABLE.test(character)) return character;
  if (point >= 0xd800 && point <= 0xdfff) return '\ufffd';
  if (point < 0x80) return `\\x${point.toString(16).padStart(2, '0')}`;
  if (point < 0x10000) return `\\u${point.toString(16).padStart(4, '0')}`;
  return `\\U${point.toString(16).padStart(8, '0')}`;
}

/** Limits a container gets when it names none: the node's allocatable, narrowed by pod-level limits. */
export function defaultLimits(pod: Pod, allocatable: ResourceList): ResourceList {
  const own = Object.entries(pod.spec.resources?.limits ?? {}).filter(([, limit]) => quantity(limit).nano !== 0n);
  return { ...allocatable, ...Object.fromEntries(own) };
}

const DEFAULTED = new Set(['cpu', 'memory', 'ephemeral-storage']);

/**
 * The text behind `resourceFieldRef`, in units of its divisor, rounded up. A limit of cpu, memory or ephemeral storage
 * that the container does not set is the one in `defaults` (see `defaultLimits`); anything else not set is 0.
 */
export function resourceValue(container: Container, selector: ResourceFieldSelector, defaults: ResourceList): string {
  const match = /^(limits|requests)\.(.+)$/.exec(selector.resource);
  const [, list = '', name = ''] = match ?? [];
  if (!DEFAULTED.has(name) && !name.startsWith('hugepages-')) {
    throw new KubeletError('invalid', `unsupported container resource : ${selector.resource}`);
  }
  const own = list === 'limits' ? container.resources?.limits?.[name] : container.resources?.requests?.[name];
  const fallback = list === 'limits' && DEFAULTED.has(name) ? defaults[name] : undefined;
  const set = quantity(own);
  // A limit of zero is none.
  const value = set.nano === 0n && fallback !== undefined ? quantity(fallback) : set;
  return inUnitsOf(value, quantity(selector.divisor ?? '1'), name === 'cpu');
}

function inUnitsOf(value: Quantity, divisor: Quantity, isCpu: boolean): string {
  const amount = isCpu ? BigInt(toMilli(value)) : toUnits(value);
  const by = divisor.nano <= 0n ? (isCpu ? 1000n : 1n) : isCpu ? BigInt(toMilli(divisor)) : toUnits(divisor);
  return String((amount + by - 1n) / by);
}

const containersByName = new WeakMap<Pod, ReadonlyMap<string, Container>>();

/** The container a resourceFieldRef names: main containers first, then init containers. */
export function containerForResources(pod: Pod, name: string): Container {
  let byName = containersByName.get(pod);
  if (byName === undefined) {
    const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])];
    byName = new Map(all.toReversed().map((container) => [container.name, container]));
    containersByName.set(pod, byName);
  }
  const found = byName.get(name);
  if (found === undefined) throw new KubeletError('invalid', `container ${name} not found`);
  return found;
}
