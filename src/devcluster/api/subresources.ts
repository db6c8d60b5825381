// Subresources that are verbs of their own: binding, eviction, tokens, scale, finalize.
import { audienceProblem } from './token-audiences.ts';
import { apiTime } from '../../core/time.ts';
import { Findings } from '../../core/validation/field-error.ts';
import { badRequest, conflict, forbidden, invalid, notFound } from './api-error.ts';
import { isNode, nodeNameOf } from './auth/node-authorizer.ts';
import { DEFAULT_AUDIENCES, type TokenBinding, type TokenIssuer } from './auth/tokens.ts';
import { deleteObject } from './deletion.ts';
import {
  draftOf,
  keyOf,
  numberAt,
  recordAt,
  recordsAt,
  textAt,
  textsAt,
  type ApiObject,
  type Json,
} from './objects.ts';
import type { Registry } from './registry.ts';
import { resourceNamed, type ResourceType } from './resources.ts';
import type { RequestContext, User } from './strategy.ts';

const SUCCESS = (code: number): Json => ({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code });

/** Puts the pod on a node, once. */
export function bindPod(
  registry: Registry,
  namespace: string,
  name: string,
  binding: Json,
  context: RequestContext,
): Json {
  const type = resourceNamed('pods');
  const target = textAt(binding, 'target', 'name');
  if (textAt(binding, 'metadata', 'name') !== name)
    throw badRequest('name in URL does not match name in Binding object');
  if (target === '') {
    const f = new Findings();
    f.required('target.name');
    throw invalid({ group: '', resource: 'bindings', kind: 'Binding' }, name, f.list);
  }
  const old = registry.get(type, namespace, name).object as ApiObject;
  const refuse = (why: string): Error => conflict({ group: '', resource: 'pods/binding', kind: '' }, name, why);
  const uid = textAt(binding, 'metadata', 'uid');
  if (uid !== '' && uid !== old.metadata.uid)
    throw refuse(`Precondition failed: UID in precondition: ${uid}, UID in object meta: ${old.metadata.uid ?? ''}`);
  if (old.metadata.deletionTimestamp !== undefined)
    throw refuse(`pod ${name} is being deleted, cannot be assigned to a host`);
  if (textAt(old, 'spec', 'nodeName') !== '')
    throw refuse(`pod ${name} is already assigned to node "${textAt(old, 'spec', 'nodeName')}"`);
  if (recordsAt(old, 'spec', 'schedulingGates').length > 0)
    throw refuse(`pod ${name} has non-empty .spec.schedulingGates`);
  const draft = draftOf(old);
  draft['spec'] = { ...recordAt(draft, 'spec'), nodeName: target };
  const annotations = recordAt(binding, 'metadata', 'annotations') as Record<string, string>;
  if (Object.keys(annotations).length > 0)
    draft.metadata.annotations = { ...draft.metadata.annotations, ...annotations };
  const { nominatedNodeName: _gone, ...status } = recordAt(draft, 'status');
  const others = recordsAt(status, 'conditions').filter((c) => c['type'] !== 'PodScheduled');
  const scheduled = {
    type: 'PodScheduled',
    status: 'True',
    lastProbeTime: null,
    lastTransitionTime: apiTime(registry.world.clock.now()),
  };
  draft['status'] = { ...status, conditions: [...others, scheduled] };
  if (!context.dryRun) registry.store.put(type.storage, draft);
  return SUCCESS(201);
}

/** A polite deletion: the pod learns that it was asked to make room. */
export function evictPod(
  registry: Registry,
  namespace: string,
  name: string,
  eviction: Json,
  context: RequestContext,
): Json {
  const type = resourceNamed('pods');
  const pod = registry.get(type, namespace, name).object as ApiObject;
  const wanted = textAt(eviction, 'metadata', 'name');
  if (wanted !== '' && wanted !== name)
    throw badRequest(`name in URL does not match name in Eviction object: "${wanted}"`);
  const options = recordAt(eviction, 'deleteOptions');
  const grace = numberAt(options, 'gracePeriodSeconds');
  const uid = textAt(options, 'preconditions', 'uid');
  const terminal = ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));
  if (
    !context.dryRun &&
    !terminal &&
    pod.metadata.deletionTimestamp === undefined &&
    textAt(pod, 'spec', 'nodeName') !== ''
  ) {
    const draft = draftOf(pod);
    const status = recordAt(draft, 'status');
    const others = recordsAt(status, 'conditions').filter((c) => c['type'] !== 'DisruptionTarget');
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
      lastProbeTime: null,
      lastTransitionTime: apiTime(registry.world.clock.now()),
      ...(pod.metadata.generation === undefined ? {} : { observedGeneration: pod.metadata.generation }),
    };
    draft['status'] = { ...status, conditions: [...others, condition] };
    registry.store.put(type.storage, draft);
  }
  const preconditions = uid === '' ? {} : { preconditions: { uid } };
  deleteObject(
    registry,
    type,
    namespace,
    name,
    { ...(grace === undefined ? {} : { gracePeriodSeconds: grace }), ...preconditions },
    context,
  );
  return SUCCESS(201);
}

const MIN_SECONDS = 600;
const MAX_SECONDS = 2 ** 32;
const DEFAULT_SECONDS = 3600;

export function requestToken(
  registry: Registry,
  issuer: TokenIssuer,
  namespace: string,
  name: string,
  body: Json,
  user: User,
): Json {
  const account = registry.get(resourceNamed('serviceaccounts'), namespace, name);
  const spec = recordAt(body, 'spec');
  if (isNode(user)) {
    const pod = checkNodeToken(registry, namespace, name, recordAt(spec, 'boundObjectRef'), nodeNameOf(user));
    const why = audienceProblem(registry.store, pod, name, textsAt(spec, 'audiences'), user);
    if (why !== undefined) throw forbidden(resourceNamed('serviceaccounts'), name, why);
  }
  const seconds = numberAt(spec, 'expirationSeconds') ?? DEFAULT_SECONDS;
  const f = new Findings();
  if (seconds < MIN_SECONDS)
    f.invalid('spec.expirationSeconds', seconds, 'may not specify a duration less than 10 minutes');
  if (seconds > MAX_SECONDS)
    f.invalid('spec.expirationSeconds', seconds, 'may not specify a duration larger than 2^32 seconds');
  if (f.list.length > 0)
    throw invalid({ group: 'authentication.k8s.io', resource: '', kind: 'TokenRequest' }, name, f.list);
  const audiences = textsAt(spec, 'audiences').length > 0 ? textsAt(spec, 'audiences') : DEFAULT_AUDIENCES;
  const bound = bindingOf(registry, namespace, name, recordAt(spec, 'boundObjectRef'));
  const issued = issuer.issue({ account, audiences, expirationSeconds: seconds, ...bound });
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, creationTimestamp: apiTime(registry.world.clock.now()) },
    spec: { ...spec, audiences, expirationSeconds: issued.seconds, boundObjectRef: spec['boundObjectRef'] ?? null },
    status: { token: issued.token, expirationTimestamp: apiTime(issued.expiresMs) },
  };
}

/** A kubelet gets tokens only for pods that run on its node. */
function checkNodeToken(registry: Registry, namespace: string, account: string, ref: Json, node: string): ApiObject {
  const refuse = (why: string): Error => forbidden(resourceNamed('serviceaccounts'), account, why);
  if (textAt(ref, 'kind') !== 'Pod' || textAt(ref, 'name') === '')
    throw refuse('node requested token not bound to a pod');
  if (textAt(ref, 'uid') === '') throw refuse('node requested token with a pod binding without a uid');
  const pod = registry.get(resourceNamed('pods'), namespace, textAt(ref, 'name')).object;
  if (textAt(ref, 'uid') !== pod.metadata.uid)
    throw refuse(
      `the UID in the bound object reference (${textAt(ref, 'uid')}) does not match the UID in record (${pod.metadata.uid}). The object might have been deleted and then recreated`,
    );
  if (textAt(pod, 'spec', 'nodeName') !== node)
    throw refuse('node requested token bound to a pod scheduled on a different node');
  return pod as ApiObject;
}

type Bound = { binding?: TokenBinding; node?: { name: string; uid: string } };

function bindingOf(registry: Registry, namespace: string, account: string, ref: Json): Bound {
  const kind = textAt(ref, 'kind');
  if (kind === '') return {};
  const storage = { Pod: 'pods', Secret: 'secrets', Node: 'nodes' }[kind];
  if (storage === undefined || (kind !== 'Pod' && kind !== 'Secret' && kind !== 'Node'))
    throw badRequest(`cannot bind token for serviceaccount "${account}" to ${kind}`);
  const type = resourceNamed(storage);
  const name = textAt(ref, 'name');
  const object = registry.store.get(storage, keyOf(type.namespaced ? namespace : '', name))?.object;
  if (object === undefined) throw notFound(type, name);
  const uid = textAt(ref, 'uid');
  if (uid !== '' && uid !== object.metadata.uid)
    throw conflict(
      type,
      name,
      `the UID in the bound object reference (${uid}) does not match the UID in record. The object might have been deleted and then recreated`,
    );
  const binding: TokenBinding = { kind, name, uid: object.metadata.uid ?? '' };
  if (kind !== 'Pod') return { binding };
  if (textAt(object, 'spec', 'serviceAccountName') !== account)
    throw badRequest(
      `cannot bind token for serviceaccount "${account}" to pod running with different serviceaccount name.`,
    );
  const nodeName = textAt(object, 'spec', 'nodeName');
  const node = nodeName === '' ? undefined : registry.store.get('nodes', nodeName)?.object;
  return { binding, ...(node === undefined ? {} : { node: { name: nodeName, uid: node.metadata.uid ?? '' } }) };
}

/** The size of a scalable thing, in the form autoscalers and `kubectl scale` use. */
export const scaleOf = (object: ApiObject): Json => ({
  kind: 'Scale',
  apiVersion: 'autoscaling/v1',
  metadata: {
    name: object.metadata.name,
    namespace: object.metadata.namespace,
    uid: object.metadata.uid,
    resourceVersion: object.metadata.resourceVersion,
    creationTimestamp: object.metadata.creationTimestamp,
  },
  spec: { replicas: numberAt(object, 'spec', 'replicas') ?? 0 },
  status: {
    replicas: numberAt(object, 'status', 'replicas') ?? 0,
    selector: Object.entries(recordAt(object, 'spec', 'selector', 'matchLabels'))
      .map(([k, v]) => `${k}=${String(v)}`)
      .join(','),
  },
});

export function setScale(
  registry: Registry,
  type: ResourceType,
  namespace: string,
  name: string,
  scale: Json,
  context: RequestContext,
): Json {
  const replicas = numberAt(scale, 'spec', 'replicas') ?? 0;
  const version = textAt(scale, 'metadata', 'resourceVersion');
  const done = registry.modify(
    type,
    namespace,
    name,
    (draft) => {
      if (version !== '') draft.metadata.resourceVersion = version;
      draft['spec'] = { ...recordAt(draft, 'spec'), replicas };
      return draft;
    },
    context,
  );
  return scaleOf(done.object as ApiObject);
}
