// Pods: shape, defaults, what admission adds, what may change, grace, generation.
import type { Pod } from '../../../core/pod.ts';
import { applyPodDefaults } from '../../../core/pod-defaults.ts';
import { computeQosClass } from '../../../core/qos.ts';
import type { Findings } from '../../../core/validation/field-error.ts';
import { formatFieldErrors } from '../../../core/validation/field-error.ts';
import { validatePod } from '../../../core/validation/pod.ts';
import { readPod } from '../../../core/validation/pod-shape.ts';
import { complainAbout, undecodable } from '../field-validation.ts';
import { numberAt, textAt, type ApiObject } from '../objects.ts';
import type { RequestContext, Strategy } from '../strategy.ts';
import { admitPod } from './pod-admission.ts';
import { preparePodUpdate, validatePodUpdate } from './pod-update.ts';

const POD = { kind: 'Pod', version: 'v1' } as const;

/** Refuses wrong types; unknown fields go, with the noise the client asked for. */
function decodePod(draft: ApiObject, context: RequestContext): ApiObject {
  const read = readPod(draft);
  if (read.object === undefined) throw undecodable(POD, formatFieldErrors(read.errors));
  complainAbout(read.unknownFields, POD, context);
  return asApiObject(applyPodDefaults(read.object));
}

const asApiObject = (pod: Pod): ApiObject => {
  const { kind: _kind, apiVersion: _apiVersion, metadata, ...rest } = pod;
  return { kind: 'Pod', apiVersion: 'v1', metadata: { ...metadata }, ...rest } as unknown as ApiObject;
};
const asPod = (object: ApiObject): Pod => object as unknown as Pod;

const isTerminal = (object: ApiObject): boolean => ['Succeeded', 'Failed'].includes(textAt(object, 'status', 'phase'));

export const podStrategy: Strategy = {
  returnsDeleted: true,
  validatesMetadata: true,
  decode: decodePod,

  prepareCreate(draft, world, context) {
    admitPod(draft, world, context);
    draft['status'] = { phase: 'Pending', qosClass: computeQosClass({ ...asPod(draft), status: {} }) };
  },

  validate(f: Findings, object) {
    f.list.push(...validatePod(asPod(object)));
  },

  prepareUpdate: preparePodUpdate,
  validateUpdate: validatePodUpdate,

  graceSeconds(object, asked) {
    if (textAt(object, 'spec', 'nodeName') === '' || isTerminal(object)) return 0;
    const seconds = asked ?? numberAt(object, 'spec', 'terminationGracePeriodSeconds') ?? 30;
    return seconds < 0 ? 1 : seconds;
  },
};
