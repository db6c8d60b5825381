// Stateful sets: defaults, what they must say, and the little of them that may change.
import type { Volume } from '../../../core/pod.ts';
import { dns1123Label } from '../../../core/names.ts';
import type { Findings } from '../../../core/validation/field-error.ts';
import {
  childRecord,
  isJson,
  numberAt,
  recordAt,
  recordsAt,
  sameJson,
  textAt,
  type ApiObject,
  type Json,
} from '../objects.ts';
import type { Strategy } from '../strategy.ts';
import { checkAlways, checkTemplate, decodeTemplate, withDefaults } from './workload.ts';
import { checkSelectsSomething } from './workload-checks.ts';

const MUTABLE = [
  'replicas',
  'ordinals',
  'template',
  'updateStrategy',
  'revisionHistoryLimit',
  'persistentVolumeClaimRetentionPolicy',
  'minReadySeconds',
] as const;

/** A volume of every pod for each claim it gets; a claim wins over a volume of the same name. */
export const claimVolumes = (set: ApiObject, claimOf: (template: string) => string): readonly Volume[] =>
  recordsAt(set, 'spec', 'volumeClaimTemplates').map((template) => {
    const name = textAt(template, 'metadata', 'name');
    return { name, persistentVolumeClaim: { claimName: claimOf(name) } };
  });

function withClaimDefaults(template: Json): Json {
  const spec = { ...recordAt(template, 'spec') };
  withDefaults(spec, { volumeMode: 'Filesystem' });
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', ...template, spec, status: { phase: 'Pending' } };
}

function checkPolicies(f: Findings, spec: Json): void {
  const management = textAt(spec, 'podManagementPolicy');
  if (management !== 'OrderedReady' && management !== 'Parallel')
    f.invalid('spec.podManagementPolicy', management, "must be 'OrderedReady' or 'Parallel'");
  const update = recordAt(spec, 'updateStrategy');
  if (update['type'] !== 'RollingUpdate' && update['type'] !== 'OnDelete')
    f.invalid('spec.updateStrategy', update, "must be 'RollingUpdate' or 'OnDelete'");
  if (update['type'] === 'OnDelete' && update['rollingUpdate'] !== undefined)
    f.invalid(
      'spec.updateStrategy.rollingUpdate',
      update['rollingUpdate'],
      "only allowed for updateStrategy 'RollingUpdate'",
    );
  for (const when of ['whenDeleted', 'whenScaled']) {
    const policy = textAt(spec, 'persistentVolumeClaimRetentionPolicy', when);
    if (policy !== 'Retain' && policy !== 'Delete')
      f.notSupported(`spec.persistentVolumeClaimRetentionPolicy.${when}`, policy, ['Delete', 'Retain']);
  }
}

function check(f: Findings, object: ApiObject): void {
  const spec = recordAt(object, 'spec');
  checkPolicies(f, spec);
  f.nonNegative('spec.replicas', numberAt(spec, 'replicas'));
  f.nonNegative('spec.minReadySeconds', numberAt(spec, 'minReadySeconds'));
  f.nonNegative(
    'spec.updateStrategy.rollingUpdate.partition',
    numberAt(spec, 'updateStrategy', 'rollingUpdate', 'partition'),
  );
  f.nonNegative('spec.ordinals.start', numberAt(spec, 'ordinals', 'start'));
  const service = textAt(spec, 'serviceName');
  if (service !== '') f.reasons('spec.serviceName', service, dns1123Label(service));
  checkTemplate(
    f,
    object,
    claimVolumes(object, (name) => name),
  );
  checkAlways(f, object);
  if (isJson(spec['selector'])) checkSelectsSomething(f, 'statefulset', spec['selector']);
}

export const statefulSetStrategy: Strategy = {
  decode(draft) {
    const spec = childRecord(draft, 'spec');
    withDefaults(spec, { podManagementPolicy: 'OrderedReady', replicas: 1, revisionHistoryLimit: 10 });
    const strategy = childRecord(spec, 'updateStrategy');
    if ((strategy['type'] ?? '') === '') {
      strategy['type'] = 'RollingUpdate';
      childRecord(strategy, 'rollingUpdate');
    }
    if (strategy['type'] === 'RollingUpdate' && strategy['rollingUpdate'] !== undefined)
      withDefaults(childRecord(strategy, 'rollingUpdate'), { partition: 0 });
    withDefaults(childRecord(spec, 'persistentVolumeClaimRetentionPolicy'), {
      whenDeleted: 'Retain',
      whenScaled: 'Retain',
    });
    const claims = recordsAt(spec, 'volumeClaimTemplates');
    if (claims.length > 0) spec['volumeClaimTemplates'] = claims.map(withClaimDefaults);
    return decodeTemplate(draft);
  },
  prepareCreate(draft) {
    draft['status'] = { replicas: 0, availableReplicas: 0 };
  },
  validate: check,
  validateUpdate(f, object, old, _world, subresource) {
    if (subresource !== '') return;
    check(f, object);
    const fixed = (spec: Json): Json => ({
      ...spec,
      ...Object.fromEntries(MUTABLE.map((field) => [field, undefined])),
    });
    if (!sameJson(fixed(recordAt(object, 'spec')), fixed(recordAt(old, 'spec'))))
      f.forbidden(
        'spec',
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      );
  },
};
