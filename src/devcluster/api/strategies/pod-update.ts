// What an update of a pod may change, by the door it comes through: the pod itself, its status, its ephemeral
// containers, its resources.
import type { Findings } from '../../../core/validation/field-error.ts';
import { childRecord, draftOf, recordsAt, sameJson, textAt, type ApiObject, type Json } from '../objects.ts';
import type { Strategy } from '../strategy.ts';

export const preparePodUpdate: NonNullable<Strategy['prepareUpdate']> = (draft, old, _world, subresource) => {
  const spec = childRecord(draft, 'spec');
  switch (subresource) {
    case 'status':
      prepareStatus(draft, old);
      return;
    case 'ephemeralcontainers': {
      const containers = spec['ephemeralContainers'];
      draft['spec'] = {
        ...childRecord(draftOf(old), 'spec'),
        ...(containers === undefined ? {} : { ephemeralContainers: containers }),
      };
      draft.metadata = { ...old.metadata };
      return;
    }
    case 'resize':
      draft['spec'] = resized(childRecord(draftOf(old), 'spec'), spec);
      draft.metadata = { ...old.metadata };
      return;
    default:
  }
};

function prepareStatus(draft: ApiObject, old: ApiObject): void {
  if (old.metadata.ownerReferences === undefined) delete draft.metadata.ownerReferences;
  else draft.metadata.ownerReferences = old.metadata.ownerReferences;
  const status = childRecord(draft, 'status');
  if (textAt(status, 'qosClass') === '' && textAt(old, 'status', 'qosClass') !== '')
    status['qosClass'] = textAt(old, 'status', 'qosClass');
}

function resized(spec: Json, asked: Json): Json {
  for (const list of ['containers', 'initContainers']) {
    const wanted = recordsAt(asked, list);
    if (spec[list] === undefined) continue;
    spec[list] = recordsAt(spec, list).map((container) => {
      const change = wanted.find((c) => c['name'] === container['name']);
      if (change === undefined) return container;
      const { resources: _r, resizePolicy: _p, ...rest } = container;
      return {
        ...rest,
        ...(change['resources'] === undefined ? {} : { resources: change['resources'] }),
        ...(change['resizePolicy'] === undefined ? {} : { resizePolicy: change['resizePolicy'] }),
      };
    });
  }
  return spec;
}

const MAY_CHANGE =
  'pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)';

export const validatePodUpdate: NonNullable<Strategy['validateUpdate']> = (f, object, old, _world, subresource) => {
  if (subresource === '') checkSpecUpdate(f, object, old);
  if (subresource === 'ephemeralcontainers') checkEphemeral(f, object, old);
};

function checkSpecUpdate(f: Findings, object: ApiObject, old: ApiObject): void {
  const now = draftOf(childRecord(object, 'spec'));
  const before = childRecord(draftOf(old), 'spec');
  for (const list of ['containers', 'initContainers']) {
    const olds = recordsAt(before, list);
    recordsAt(now, list).forEach((container, i) => {
      const image = olds[i]?.['image'];
      if (image !== undefined && textAt(container, 'image') !== '') container['image'] = image;
    });
  }
  const added = recordsAt(now, 'tolerations');
  if (!recordsAt(before, 'tolerations').every((t) => added.some((other) => sameJson(other, t))))
    f.forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds');
  now['tolerations'] = before['tolerations'];
  checkDeadline(f, now, before);
  now['activeDeadlineSeconds'] = before['activeDeadlineSeconds'];
  if (recordsAt(before, 'schedulingGates').length > 0) {
    now['schedulingGates'] = before['schedulingGates'];
    now['nodeSelector'] = before['nodeSelector'];
  }
  if (!sameJson(now, before)) f.forbidden('spec', MAY_CHANGE);
}

function checkDeadline(f: Findings, now: Json, before: Json): void {
  const [next, previous] = [now['activeDeadlineSeconds'], before['activeDeadlineSeconds']];
  if (next === previous) return;
  if (typeof next === 'number' && typeof previous === 'number' && next > previous)
    f.invalid('spec.activeDeadlineSeconds', next, `must be less than or equal to previous value`);
  if (next === undefined && previous !== undefined)
    f.invalid('spec.activeDeadlineSeconds', next, 'must not update from a positive integer to nil value');
}

function checkEphemeral(f: Findings, object: ApiObject, old: ApiObject): void {
  const now = recordsAt(object, 'spec', 'ephemeralContainers');
  for (const before of recordsAt(old, 'spec', 'ephemeralContainers')) {
    const same = now.find((c) => c['name'] === before['name']);
    if (same === undefined)
      f.forbidden(
        'spec.ephemeralContainers',
        `existing ephemeral containers "${textAt(before, 'name')}" may not be removed\n`,
      );
    else if (!sameJson(same, before))
      f.forbidden(
        'spec.ephemeralContainers',
        `existing ephemeral containers "${textAt(before, 'name')}" may not be changed\n`,
      );
  }
}
