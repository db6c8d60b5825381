// Deployments, replica sets, daemon sets, jobs: defaults, and that their selector picks their own template.
import { randomUUID } from 'node:crypto';
import type { LabelSelector } from '../../../core/meta.ts';
import { matchesLabelSelector } from '../../../core/selectors.ts';
import { formatFieldErrors, type Findings } from '../../../core/validation/field-error.ts';
import { validatePod } from '../../../core/validation/pod.ts';
import { readPod } from '../../../core/validation/pod-shape.ts';
import { applyPodDefaults } from '../../../core/pod-defaults.ts';
import type { Pod } from '../../../core/pod.ts';
import { badRequest } from '../api-error.ts';
import { at, childRecord, isJson, recordAt, sameJson, textAt, type ApiObject, type Json } from '../objects.ts';
import type { Strategy } from '../strategy.ts';

/** The template as a pod, to be read, defaulted and checked like one. */
function templatePod(object: ApiObject): unknown {
  const template = recordAt(object, 'spec', 'template');
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { ...recordAt(template, 'metadata'), name: 'template', namespace: 'default' },
    spec: template['spec'] ?? {},
  };
}

function decodeTemplate(draft: ApiObject): ApiObject {
  const spec = childRecord(draft, 'spec');
  const read = readPod(templatePod(draft));
  if (read.object === undefined)
    throw badRequest(
      `${draft.kind} in version "v1" cannot be handled as a ${draft.kind}: ${formatFieldErrors(read.errors)}`,
    );
  const pod: Pod = applyPodDefaults(read.object);
  const { name: _n, namespace: _ns, ...metadata } = pod.metadata;
  spec['template'] = { metadata, spec: pod.spec };
  return draft;
}

function checkTemplate(f: Findings, object: ApiObject): void {
  const pod = templatePod(object) as Pod;
  for (const error of validatePod(pod)) f.list.push({ ...error, field: `spec.template.${error.field}` });
  const selector = at(object, 'spec', 'selector');
  if (!isJson(selector)) f.required('spec.selector');
  else if (!matchesLabelSelector(selector as LabelSelector, pod.metadata.labels ?? {}))
    f.invalid(
      'spec.template.metadata.labels',
      pod.metadata.labels ?? {},
      '`selector` does not match template `labels`',
    );
}

function checkAlways(f: Findings, object: ApiObject): void {
  const policy = textAt(object, 'spec', 'template', 'spec', 'restartPolicy');
  if (policy !== 'Always') f.notSupported('spec.template.spec.restartPolicy', policy, ['Always']);
}

function immutableSelector(f: Findings, object: ApiObject, old: ApiObject): void {
  if (!sameJson(at(object, 'spec', 'selector'), at(old, 'spec', 'selector')))
    f.invalid('spec.selector', at(object, 'spec', 'selector'), 'field is immutable');
}

const withDefaults = (spec: Json, values: Json): void => {
  for (const [key, value] of Object.entries(values)) spec[key] ??= value;
};

function scaled(defaults: Json): Strategy {
  return {
    decode(draft) {
      withDefaults(childRecord(draft, 'spec'), defaults);
      return decodeTemplate(draft);
    },
    prepareCreate(draft) {
      draft['status'] = {};
    },
    validate(f, object) {
      checkTemplate(f, object);
      checkAlways(f, object);
      const replicas = at(object, 'spec', 'replicas');
      if (typeof replicas === 'number' && replicas < 0)
        f.invalid('spec.replicas', replicas, 'must be greater than or equal to 0');
    },
    validateUpdate(f, object, old, world, subresource) {
      if (subresource !== '') return;
      this.validate?.(f, object, world);
      immutableSelector(f, object, old);
    },
  };
}

export const deploymentStrategy: Strategy = {
  ...scaled({ replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 }),
  decode(draft) {
    const spec = childRecord(draft, 'spec');
    withDefaults(spec, { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 });
    const strategy = childRecord(spec, 'strategy');
    strategy['type'] ??= 'RollingUpdate';
    if (strategy['type'] === 'RollingUpdate')
      withDefaults(childRecord(strategy, 'rollingUpdate'), { maxUnavailable: '25%', maxSurge: '25%' });
    return decodeTemplate(draft);
  },
};

export const replicaSetStrategy: Strategy = scaled({ replicas: 1 });

export const daemonSetStrategy: Strategy = scaled({
  revisionHistoryLimit: 10,
  updateStrategy: { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } },
});

const JOB_LABELS = ['batch.kubernetes.io/controller-uid', 'batch.kubernetes.io/job-name', 'controller-uid', 'job-name'];

/** A job makes its own selector out of its UID. */
function labelJob(draft: ApiObject): void {
  const spec = childRecord(draft, 'spec');
  if (spec['manualSelector'] === true) return;
  const uid = draft.metadata.uid ?? randomUUID();
  spec['selector'] = { matchLabels: { 'batch.kubernetes.io/controller-uid': uid } };
  const metadata = childRecord(childRecord(spec, 'template'), 'metadata');
  const values = [uid, draft.metadata.name, uid, draft.metadata.name];
  metadata['labels'] = {
    ...recordAt(metadata, 'labels'),
    ...Object.fromEntries(JOB_LABELS.map((label, i) => [label, values[i]])),
  };
}

export const jobStrategy: Strategy = {
  decode(draft) {
    const spec = childRecord(draft, 'spec');
    if (spec['completions'] === undefined && spec['parallelism'] === undefined)
      withDefaults(spec, { completions: 1, parallelism: 1 });
    withDefaults(spec, {
      parallelism: 1,
      backoffLimit: 6,
      completionMode: 'NonIndexed',
      suspend: false,
      podReplacementPolicy: 'TerminatingOrFailed',
    });
    return decodeTemplate(draft);
  },
  prepareCreate(draft) {
    labelJob(draft);
    draft['status'] = {};
  },
  validate(f, object) {
    checkTemplate(f, object);
    const policy = textAt(object, 'spec', 'template', 'spec', 'restartPolicy');
    const mode = textAt(object, 'spec', 'completionMode');
    if (mode !== 'NonIndexed') f.notSupported('spec.completionMode', mode, ['NonIndexed']);
    if (policy !== 'OnFailure' && policy !== 'Never')
      f.notSupported('spec.template.spec.restartPolicy', policy, ['OnFailure', 'Never']);
  },
  validateUpdate(f, object, old, _world, subresource) {
    if (subresource !== '') return;
    immutableSelector(f, object, old);
    if (!sameJson(at(object, 'spec', 'completions'), at(old, 'spec', 'completions')))
      f.invalid('spec.completions', at(object, 'spec', 'completions'), 'field is immutable');
    if (!sameJson(at(object, 'spec', 'template'), at(old, 'spec', 'template')))
      f.invalid('spec.template', 'template', 'field is immutable');
  },
};
