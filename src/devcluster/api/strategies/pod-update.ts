// What an update of a pod may change, by the door it comes through: the pod itself, its status, its ephemeral
// containers, its resources.
import type { Pod } from '../../../core/pod.ts';
import { validateResize } from '../../../core/validation/resize.ts';
import {
  validateEphemeralContainersUpdate,
  validatePodUpdate as validateUpdate,
} from '../../../core/validation/update.ts';
import { childRecord, draftOf, recordsAt, textAt, type ApiObject, type Json } from '../objects.ts';
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

/** Resources and their policies as asked for; containers that are not the old ones in the old order are left to validation. */
function resized(spec: Json, asked: Json): Json {
  for (const list of ['containers', 'initContainers']) {
    const [old, wanted] = [recordsAt(spec, list), recordsAt(asked, list)];
    if (wanted.length !== old.length || wanted.some((c, i) => c['name'] !== old[i]?.['name'])) spec[list] = wanted;
    else if (old.length > 0) spec[list] = old.map((container, i) => withAmountsOf(container, wanted[i] ?? {}));
  }
  if (asked['resources'] === undefined) delete spec['resources'];
  else spec['resources'] = asked['resources'];
  return spec;
}

function withAmountsOf(container: Json, asked: Json): Json {
  const { resources: _r, resizePolicy: _p, ...rest } = container;
  return {
    ...rest,
    ...(asked['resources'] === undefined ? {} : { resources: asked['resources'] }),
    ...(asked['resizePolicy'] === undefined ? {} : { resizePolicy: asked['resizePolicy'] }),
  };
}

export const validatePodUpdate: NonNullable<Strategy['validateUpdate']> = (f, object, old, _world, subresource) => {
  const [now, before] = [object as unknown as Pod, old as unknown as Pod];
  if (subresource === '') f.list.push(...validateUpdate(now, before));
  if (subresource === 'ephemeralcontainers') f.list.push(...validateEphemeralContainersUpdate(now, before));
  if (subresource === 'resize') f.list.push(...validateResize(now, before));
};
