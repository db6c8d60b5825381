// Brings what our kubelet did into the form of the recordings, so that the two can be compared field by field.
import type { Pod } from '../../src/core/pod.ts';
import type { ObservedCall } from '../faults/cri-proxy.ts';
import { onTheWire } from './recording.ts';

/** Calls that change a pod in the runtime; probes and garbage collection are not compared. */
const COMPARED = new Set([
  'RunPodSandbox',
  'CreateContainer',
  'StartContainer',
  'StopContainer',
  'StopPodSandbox',
  'PullImage',
  'UpdateContainerResources',
  'UpdatePodSandboxResources',
]);

export type Places = { readonly rootDir: string; readonly podLogsDir: string; readonly cgroupRoot: string; readonly recordedPodIp: string };

const RECORDED_HOST_IP = '10.89.0.1';

type Loose = Record<string, unknown>;

/** The pod a call is about, as far as the calls before it tell. */
export class CallLedger {
  readonly #owners = new Map<string, string>();
  readonly #byUid = new Map<string, ObservedCall[]>();

  add(call: ObservedCall): void {
    const request = call.request as Loose;
    const response = (call.response ?? {}) as Loose;
    const uid = this.#uidOf(request);
    if (uid === undefined) return;
    for (const key of ['podSandboxId', 'containerId']) {
      const id = response[key];
      if (typeof id === 'string' && id !== '') this.#owners.set(id, uid);
    }
    const list = this.#byUid.get(uid) ?? [];
    if (COMPARED.has(call.call)) list.push(call);
    this.#byUid.set(uid, list);
  }

  of(uid: string): readonly ObservedCall[] {
    return [...(this.#byUid.get(uid) ?? [])].sort((a, b) => a.atMs - b.atMs);
  }

  #uidOf(request: Loose): string | undefined {
    const config = (request['sandboxConfig'] ?? request['config']) as { metadata?: { uid?: string } } | undefined;
    const id = request['containerId'] ?? request['podSandboxId'];
    return config?.metadata?.uid ?? this.#owners.get(String(id));
  }
}

/** One normalised request per call, ids in order of creation. */
export function normalisedCalls(
  calls: readonly ObservedCall[],
  pod: Pod,
  recorded: Pod,
  places: Places,
): { call: string; request: unknown; failed: boolean }[] {
  const names = new Map<string, string>();
  const count = { sandbox: 0, container: 0 };
  const out: { call: string; request: unknown; failed: boolean }[] = [];
  for (const { call, request, response, error } of calls) {
    out.push({
      call,
      request: tidy(onTheWire(call, request), replacer(pod, recorded, places, names)),
      failed: error !== undefined,
    });
    const answer = (response ?? {}) as Loose;
    if (call === 'RunPodSandbox' && typeof answer['podSandboxId'] === 'string')
      names.set(answer['podSandboxId'], `sandbox-${++count.sandbox}`);
    if (call === 'CreateContainer' && typeof answer['containerId'] === 'string')
      names.set(answer['containerId'], `container-${++count.container}`);
  }
  return out;
}

type Replace = (text: string) => string;

const replacer = (pod: Pod, recorded: Pod, places: Places, names: ReadonlyMap<string, string>): Replace => {
  const uid = pod.metadata.uid ?? '';
  const ips = [[pod.status?.podIP, places.recordedPodIp], [pod.status?.hostIP, RECORDED_HOST_IP]] as const;
  return (text) => {
    const recordedUid = recorded.metadata.uid ?? '';
    // In the name of a slice the dashes are underscores.
    let out = text
      .replaceAll(uid, recordedUid)
      .replaceAll(uid.replaceAll('-', '_'), recordedUid.replaceAll('-', '_'));
    for (const [ours, theirs] of ips) if (ours !== undefined) out = out.replaceAll(ours, theirs);
    out = out.replaceAll(places.rootDir, '/var/lib/kubelet').replaceAll(places.podLogsDir, '/var/log/pods');
    out = out.startsWith(`${places.cgroupRoot}/`) ? out.slice(places.cgroupRoot.length) : out;
    for (const [id, name] of names) out = out.replaceAll(id, name);
    out = out.replace(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/, '2026-01-01T00:00:00.000000000Z');
    out = out.replace(/(\/containers\/[^/]+\/)[0-9a-f]{8}$/, '$1LOG');
    return out.replace(/sha256:[0-9a-f]{64}/, '<image>');
  };
};

/** Also for recorded requests: what is random there is levelled the same way. */
export const tidyRecorded = (request: unknown): unknown =>
  tidy(request, (text) =>
    text.replace(/sha256:[0-9a-f]{64}/, '<image>'),
  );

function tidy(value: unknown, replace: Replace): unknown {
  if (typeof value === 'string') return replace(value);
  if (value instanceof Uint8Array) return replace(Buffer.from(value).toString('utf8'));
  if (Array.isArray(value)) {
    const items = value.map((item) => tidy(item, replace));
    const keyed = items.every((item) => typeof item === 'object' && item !== null && 'key' in item);
    return keyed && items.length > 0
      ? items.sort((a, b) => (String((a as Loose)['key']) < String((b as Loose)['key']) ? -1 : 1))
      : items;
  }
  if (typeof value !== 'object' || value === null) return value;
  // The order of resolver options is not specified.
  const sorted = 'searches' in value && 'options' in value ? { ...value, options: [...(value.options as string[])].sort() } : value;
  return Object.fromEntries(Object.entries(sorted).map(([k, v]) => [k, tidy(v, replace)]));
}

/** A status in the recordings' form: no times, ids, addresses; the pod-level resources are not compared. */
export function normalisedStatus(status: unknown): unknown {
  const level = (value: unknown, key: string): unknown => {
    if (Array.isArray(value)) return value.map((item) => level(item, key));
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(
        Object.entries(value)
          .filter(([k, v]) => !(k === 'lastProbeTime' && v === null))
          .map(([k, v]) => [k, level(v, k)]),
      );
    if (typeof value !== 'string') return value;
    if (/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value)) return value.startsWith('1970') ? '<epoch>' : '<time>';
    if (key === 'ip' || key === 'podIP' || key === 'hostIP') return '<ip>';
    return value
      .replace(/(?:containerd|cri-o):\/\/[0-9a-f]{64}/g, 'containerd://<id>')
      .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, '<uid>')
      .replace(/sha256:[0-9a-f]{64}/g, '<image>');
  };
  const { resources: _, ...rest } = status as { resources?: unknown };
  return level(rest, '');
}
