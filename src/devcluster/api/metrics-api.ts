// `kubectl top`: node and pod usage in the metrics.k8s.io form, read from the kubelet's summary when asked.
import { fromMilli, fromUnits, formatQuantity, type Quantity } from '../../core/quantity.ts';
import { apiTime } from '../../core/time.ts';
import type { Clock } from '../../lib/clock.ts';
import { noSuchPath, notFound, unavailable } from './api-error.ts';
import type { KubeletProxy } from './kubelet-proxy.ts';
import { isJson, keyOf, numberAt, recordAt, recordsAt, textAt, type ApiObject, type Json } from './objects.ts';
import type { RequestInfo } from './request-info.ts';
import type { ObjectStore } from './store.ts';

const GROUP_VERSION = 'metrics.k8s.io/v1beta1';
const WINDOW = '10s';

export async function metricsOf(
  store: ObjectStore,
  proxy: KubeletProxy,
  clock: Clock,
  info: RequestInfo,
): Promise<Json> {
  if (info.verb !== 'get' && info.verb !== 'list') throw noSuchPath();
  if (info.resource !== 'nodes' && info.resource !== 'pods') throw noSuchPath();
  const summaries = await Promise.all(store.list('nodes').map((n) => summaryOf(proxy, n.object.metadata.name)));
  const now = apiTime(clock.now());
  const items =
    info.resource === 'nodes'
      ? summaries.map((s) => nodeMetrics(store, recordAt(s, 'node'), now))
      : summaries
          .flatMap((s) => recordsAt(s, 'pods'))
          .map((p) => podMetrics(store, p, now))
          .filter((m) => m !== undefined);
  const selected = items.filter((m) => info.namespace === '' || textAt(m, 'metadata', 'namespace') === info.namespace);
  if (info.verb === 'list')
    return {
      kind: info.resource === 'nodes' ? 'NodeMetricsList' : 'PodMetricsList',
      apiVersion: GROUP_VERSION,
      metadata: {},
      items: selected,
    };
  const found = selected.find((m) => textAt(m, 'metadata', 'name') === info.name);
  if (found === undefined) throw notFound({ group: 'metrics.k8s.io', resource: info.resource, kind: '' }, info.name);
  return found;
}

async function summaryOf(proxy: KubeletProxy, node: string): Promise<Json> {
  const { status, body } = await proxy.fetch(node, '/stats/summary?only_cpu_and_memory=true');
  if (status !== 200) throw unavailable(`the kubelet of ${node} answered ${status}`);
  const parsed: unknown = JSON.parse(body);
  return isJson(parsed) ? parsed : {};
}

const cpu = (stats: Json): Quantity => fromMilli(Math.ceil((numberAt(stats, 'cpu', 'usageNanoCores') ?? 0) / 1e6));
const memory = (stats: Json): Quantity =>
  fromUnits(Math.ceil((numberAt(stats, 'memory', 'workingSetBytes') ?? 0) / 1024) * 1024, 'BinarySI');
const usage = (stats: Json): Json => ({ cpu: formatQuantity(cpu(stats)), memory: formatQuantity(memory(stats)) });

function nodeMetrics(store: ObjectStore, stats: Json, now: string): Json {
  const name = textAt(stats, 'nodeName');
  const labels = store.get('nodes', name)?.object.metadata.labels;
  return {
    kind: 'NodeMetrics',
    apiVersion: GROUP_VERSION,
    metadata: { name, creationTimestamp: now, ...(labels === undefined ? {} : { labels }) },
    timestamp: textAt(stats, 'cpu', 'time') || now,
    window: WINDOW,
    usage: usage(stats),
  };
}

function podMetrics(store: ObjectStore, stats: Json, now: string): Json | undefined {
  const name = textAt(stats, 'podRef', 'name');
  const namespace = textAt(stats, 'podRef', 'namespace');
  const pod = store.get('pods', keyOf(namespace, name))?.object as ApiObject | undefined;
  if (pod === undefined) return undefined;
  const labels = pod.metadata.labels;
  return {
    kind: 'PodMetrics',
    apiVersion: GROUP_VERSION,
    metadata: { name, namespace, creationTimestamp: now, ...(labels === undefined ? {} : { labels }) },
    timestamp: now,
    window: WINDOW,
    containers: recordsAt(stats, 'containers').map((c) => ({ name: textAt(c, 'name'), usage: usage(c) })),
  };
}
