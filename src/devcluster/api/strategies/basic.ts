// Small strategies: namespaces, nodes, config maps, secrets, signing requests.
import type { Findings } from '../../../core/validation/field-error.ts';
import { configMapKey } from '../../../core/names.ts';
import { listAt, recordAt, sameJson, textAt, type ApiObject } from '../objects.ts';
import type { RequestContext, Strategy } from '../strategy.ts';

export const namespaceStrategy: Strategy = {
  returnsDeleted: true,
  prepareCreate(draft) {
    draft['spec'] = { finalizers: ['kubernetes'] };
    draft['status'] = { phase: 'Active' };
    draft.metadata.labels = { ...draft.metadata.labels, 'kubernetes.io/metadata.name': draft.metadata.name };
  },
  prepareUpdate(draft, old, _world, subresource) {
    if (subresource !== 'finalize') draft['spec'] = old['spec'];
    if (subresource === '')
      draft.metadata.labels = { ...draft.metadata.labels, 'kubernetes.io/metadata.name': old.metadata.name };
  },
  keepsDeleted: (object) => listAt(object, 'spec', 'finalizers').length > 0,
  markDeleting(draft) {
    draft['status'] = { ...recordAt(draft, 'status'), phase: 'Terminating' };
  },
};

/** A node comes with its status: the kubelet registers with what it knows. */
export const nodeStrategy: Strategy = {
  prepareCreate(draft) {
    draft['spec'] ??= {};
    draft['status'] ??= {};
  },
};

function checkKeys(f: Findings, object: ApiObject, ...fields: readonly string[]): void {
  for (const field of fields)
    for (const key of Object.keys(recordAt(object, field))) f.reasons(`${field}[${key}]`, key, configMapKey(key));
}

function checkImmutable(f: Findings, object: ApiObject, old: ApiObject, ...fields: readonly string[]): void {
  if (old['immutable'] !== true) return;
  if (object['immutable'] !== true) f.forbidden('immutable', 'field is immutable when `immutable` is set');
  for (const field of fields)
    if (!sameJson(recordAt(object, field), recordAt(old, field)))
      f.forbidden(field, 'field is immutable when `immutable` is set');
}

export const configMapStrategy: Strategy = {
  validate: (f, object) => checkKeys(f, object, 'data', 'binaryData'),
  validateUpdate(f, object, old) {
    checkKeys(f, object, 'data', 'binaryData');
    checkImmutable(f, object, old, 'data', 'binaryData');
  },
};

const REQUIRED_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
};

function checkSecret(f: Findings, object: ApiObject): void {
  checkKeys(f, object, 'data');
  const data = recordAt(object, 'data');
  for (const key of REQUIRED_KEYS[textAt(object, 'type')] ?? [])
    if (data[key] === undefined) f.required(`data[${key}]`);
}

/** stringData is write-only: it ends up in data. */
function encodeSecret(draft: ApiObject): ApiObject {
  const plain = recordAt(draft, 'stringData');
  const { stringData: _gone, ...rest } = draft;
  const encoded = Object.entries(plain).map(([k, v]) => [k, Buffer.from(String(v)).toString('base64')]);
  const data = { ...recordAt(draft, 'data'), ...Object.fromEntries(encoded) };
  return {
    ...rest,
    ...(Object.keys(data).length > 0 ? { data } : {}),
    type: textAt(draft, 'type') || 'Opaque',
  } as ApiObject;
}

export const secretStrategy: Strategy = {
  decode: (draft) => encodeSecret(draft),
  validate: checkSecret,
  validateUpdate(f, object, old) {
    checkSecret(f, object);
    checkImmutable(f, object, old, 'data');
    if (textAt(object, 'type') !== textAt(old, 'type')) f.invalid('type', textAt(object, 'type'), 'field is immutable');
  },
};

/** A signing request says who asked, whatever the body claims. */
export const signingRequestStrategy: Strategy = {
  prepareCreate(draft, _world, context: RequestContext) {
    const { name, uid, groups, extra } = context.user;
    draft['spec'] = {
      ...recordAt(draft, 'spec'),
      username: name,
      groups,
      ...(uid === undefined ? {} : { uid }),
      ...(extra === undefined ? {} : { extra }),
    };
    draft['status'] = {};
  },
  validate(f, object) {
    if (textAt(object, 'spec', 'request') === '') f.required('spec.request');
    if (textAt(object, 'spec', 'signerName') === '') f.required('spec.signerName');
    if (listAt(object, 'spec', 'usages').length === 0) f.required('spec.usages');
  },
  prepareUpdate(draft, old, _world, subresource) {
    draft['spec'] = old['spec'];
    const status = recordAt(draft, 'status');
    const before = recordAt(old, 'status');
    if (subresource === 'approval')
      draft['status'] = {
        ...before,
        ...(status['conditions'] === undefined ? {} : { conditions: status['conditions'] }),
      };
  },
};

export const priorityClassStrategy: Strategy = {
  prepareCreate(draft) {
    draft['preemptionPolicy'] = textAt(draft, 'preemptionPolicy') || 'PreemptLowerPriority';
  },
};
