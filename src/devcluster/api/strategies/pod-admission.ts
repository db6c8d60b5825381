// What the admission chain adds to a new pod: its service account and token, default tolerations, priority, the
// overhead of its runtime class. Mirror pods stand for something that runs already and get neither account nor token.
import { forbidden } from '../api-error.ts';
import { randomTail } from '../names.ts';
import { at, childRecord, isJson, keyOf, recordAt, recordsAt, textAt, type ApiObject, type Json } from '../objects.ts';
import { resourceNamed } from '../resources.ts';
import type { RequestContext, World } from '../strategy.ts';

const TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';
const TOKEN_SECONDS = 3607;
const EVICTION_SECONDS = 300;
export const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

const refuse = (pod: ApiObject, why: string): Error => forbidden(resourceNamed('pods'), pod.metadata.name, why);

export function admitPod(pod: ApiObject, world: World, _context: RequestContext): void {
  const spec = childRecord(pod, 'spec');
  if (pod.metadata.annotations?.[MIRROR_ANNOTATION] === undefined) admitAccount(pod, spec, world);
  else refuseReferences(pod, spec);
  admitPriority(pod, spec, world);
  admitRuntimeClass(pod, spec, world);
  admitTolerations(spec);
}

function admitAccount(pod: ApiObject, spec: Json, world: World): void {
  const name = textAt(spec, 'serviceAccountName') || 'default';
  spec['serviceAccountName'] = name;
  spec['serviceAccount'] = name;
  const namespace = pod.metadata.namespace ?? '';
  const account = world.store.get('serviceaccounts', keyOf(namespace, name))?.object;
  if (account === undefined)
    throw refuse(pod, `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`);
  if (recordsAt(spec, 'imagePullSecrets').length === 0 && recordsAt(account, 'imagePullSecrets').length > 0)
    spec['imagePullSecrets'] = account['imagePullSecrets'];
  const mounts = at(spec, 'automountServiceAccountToken') ?? at(account, 'automountServiceAccountToken') ?? true;
  if (mounts === true) mountToken(spec);
}

function mountToken(spec: Json): void {
  const existing = recordsAt(spec, 'volumes').find((v) => textAt(v, 'name').startsWith('kube-api-access-'));
  const name = textAt(existing, 'name') || `kube-api-access-${randomTail()}`;
  let used = false;
  for (const list of ['initContainers', 'containers']) {
    const containers = recordsAt(spec, list);
    if (containers.length === 0) continue;
    spec[list] = containers.map((container) => {
      const mounts = recordsAt(container, 'volumeMounts');
      if (mounts.some((m) => m['mountPath'] === TOKEN_PATH)) return container;
      used = true;
      return { ...container, volumeMounts: [...mounts, { name, readOnly: true, mountPath: TOKEN_PATH }] };
    });
  }
  if (used && existing === undefined) spec['volumes'] = [...recordsAt(spec, 'volumes'), tokenVolume(name)];
}

const tokenVolume = (name: string): Json => ({
  name,
  projected: {
    sources: [
      { serviceAccountToken: { expirationSeconds: TOKEN_SECONDS, path: 'token' } },
      { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
      {
        downwardAPI: {
          items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
        },
      },
    ],
    defaultMode: 0o644,
  },
});

function refuseReferences(pod: ApiObject, spec: Json): void {
  if (textAt(spec, 'serviceAccountName') !== '') throw refuse(pod, 'a mirror pod may not reference service accounts');
  for (const volume of recordsAt(spec, 'volumes')) {
    const projected = recordsAt(volume, 'projected', 'sources');
    if (projected.some((s) => s['serviceAccountToken'] !== undefined))
      throw refuse(pod, 'a mirror pod may not use ServiceAccountToken volume projections');
    if (volume['secret'] !== undefined || projected.some((s) => s['secret'] !== undefined))
      throw refuse(pod, 'a mirror pod may not reference secrets');
  }
}

const SYSTEM_PRIORITIES: Readonly<Record<string, number>> = {
  'system-node-critical': 2_000_001_000,
  'system-cluster-critical': 2_000_000_000,
};

function admitPriority(pod: ApiObject, spec: Json, world: World): void {
  const storage = 'scheduling.k8s.io/priorityclasses';
  const name = textAt(spec, 'priorityClassName');
  const classes = world.store.list(storage).map((c) => c.object as ApiObject);
  const chosen =
    name === '' ? classes.find((c) => c['globalDefault'] === true) : world.store.get(storage, name)?.object;
  if (name !== '' && chosen === undefined && SYSTEM_PRIORITIES[name] === undefined)
    throw refuse(pod, `no PriorityClass with name ${name} was found`);
  const priority = typeof chosen?.['value'] === 'number' ? chosen['value'] : (SYSTEM_PRIORITIES[name] ?? 0);
  if (typeof spec['priority'] === 'number' && spec['priority'] !== priority)
    throw refuse(
      pod,
      `the integer value of priority (${spec['priority']}) must not be provided in pod spec; priority admission controller computed ${priority} from the given PriorityClass name`,
    );
  if (chosen !== undefined) spec['priorityClassName'] = chosen.metadata.name;
  spec['priority'] = priority;
  spec['preemptionPolicy'] =
    textAt(spec, 'preemptionPolicy') || textAt(chosen, 'preemptionPolicy') || 'PreemptLowerPriority';
}

function admitRuntimeClass(pod: ApiObject, spec: Json, world: World): void {
  const name = textAt(spec, 'runtimeClassName');
  if (name === '') return;
  const found = world.store.get('node.k8s.io/runtimeclasses', name)?.object;
  if (found === undefined) throw refuse(pod, `pod rejected: RuntimeClass "${name}" not found`);
  const overhead = at(found, 'overhead', 'podFixed');
  if (isJson(overhead)) spec['overhead'] = overhead;
  const selector = at(found, 'scheduling', 'nodeSelector');
  if (isJson(selector)) spec['nodeSelector'] = { ...recordAt(spec, 'nodeSelector'), ...selector };
  const tolerations = recordsAt(found, 'scheduling', 'tolerations');
  if (tolerations.length > 0) spec['tolerations'] = [...recordsAt(spec, 'tolerations'), ...tolerations];
}

/** A pod leaves a node that is not ready or not reachable after five minutes, unless it says otherwise. */
function admitTolerations(spec: Json): void {
  const tolerations = [...recordsAt(spec, 'tolerations')];
  for (const key of ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']) {
    const covered = tolerations.some(
      (t) => [key, ''].includes(textAt(t, 'key')) && ['NoExecute', ''].includes(textAt(t, 'effect')),
    );
    if (!covered)
      tolerations.push({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: EVICTION_SECONDS });
  }
  spec['tolerations'] = tolerations;
}
