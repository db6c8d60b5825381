// Deployments, replica sets, daemon sets, jobs: defaults, and that their selector picks their own template.
import { randomUUID } from 'node:crypto';
import type { LabelSelector } from '../../../core/meta.ts';
import { matchesLabelSelector } from '../../../core/selectors.ts';
import { formatFieldErrors, type Findings } from '../../../core/validation/field-error.ts';
import { validatePod } from '../../../core/validation/pod.ts';
import { readPod } from '../../../core/validation/pod-shape.ts';
import { applyPodDefaults } from '../../../core/pod-defaults.ts';
import type { Pod, Volume } from '../../../core/pod.ts';
import { badRequest } from '../api-error.ts';
import { at, childRecord, isJson, recordAt, sameJson, textAt, type ApiObject, type Json } from '../objects.ts';
import type { Strategy } from '../strategy.ts';
import {
  checkDaemonSet,
  checkDeployment,
  checkNoDeadline,
  checkNonNegative,
  checkSelectsSomething,
} from './workload-checks.ts';

/** The template in a spec as a pod, to be read, defaulted and checked like one. */
function templatePod(spec: Json): unknown {
  const template = recordAt(spec, 'template');
  return {
    kind: 'Pod',
    apiVersion: 'v1',
    metadata: { ...recordAt(template, 'metadata'), name: 'template', namespace: 'default' },
    spec: template['spec'] ?? {},
  };
}

/** `spec` is what in `draft` holds the template. */
export function decodeTemplate(draft: ApiObject, spec: Json = childRecord(draft, 'spec')): ApiObject {
  const read = readPod(templatePod(spec));
  if (read.object === undefined)
    throw badRequest(
      `${draft.kind} in version "v1" cannot be handled as a ${draft.kind}: ${formatFieldErrors(read.errors)}`,
    );
  const pod: Pod = applyPodDefaults(read.object);
  const { name: _n, namespace: _ns, ...metadata } = pod.metadata;
  spec['template'] = { metadata, spec: pod.spec };
  return draft;
}

/** `volumes` are those that its pods get besides their own. */
export function checkTemplate(f: Findings, object: ApiObject, volumes: readonly Volume[] = []): void {
  const pod = templatePod(recordAt(object, 'spec')) as Pod;
  checkPodTemplate(f, 'spec.template', pod, volumes);
  const selector = at(object, 'spec', 'selector');
  if (!isJson(selector)) f.required('spec.selector');
  else if (!matchesLabelSelector(selector as LabelSelector, pod.metadata.labels ?? {}))
    f.invalid(
      'spec.template.metadata.labels',
      pod.metadata.labels ?? {},
      '`selector` does not match template `labels`',
    );
}

function checkPodTemplate(f: Findings, field: string, pod: Pod, volumes: readonly Volume[] = []): void {
  const names = new Set(volumes.map((v) => v.name));
  const own = (pod.spec.volumes ?? []).filter((v) => !names.has(v.name));
  const whole = volumes.length === 0 ? pod : { ...pod, spec: { ...pod.spec, volumes: [...volumes, ...own] } };
  for (const error of validatePod(whole)) f.list.push({ ...error, field: `${field}.${error.field}` });
}

export function checkAlways(f: Findings, object: ApiObject): void {
  const policy = textAt(object, 'spec', 'template', 'spec', 'restartPolicy');
  if (policy !== 'Always') f.notSupported('spec.template.spec.restartPolicy', policy, ['Always']);
}

function immutableSelector(f: Findings, object: ApiObject, old: ApiObject): void {
  if (!sameJson(at(object, 'spec', 'selector'), at(old, 'spec', 'selector')))
    f.invalid('spec.selector', at(object, 'spec', 'selector'), 'field is immutable');
}

export const withDefaults = (spec: Json, values: Json): void => {
  for (const [key, value] of Object.entries(values)) spec[key] ??= value;
};

/** `kind` is what it is called, `checkSpec` looks at what only it has. */
function scaled(kind: string, defaults: Json, checkSpec: (f: Findings, spec: Json) => void): Strategy {
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
      const spec = recordAt(object, 'spec');
      checkNoDeadline(f, spec);
      checkNonNegative(f, 'spec', spec, ['replicas']);
      if (isJson(spec['selector'])) checkSelectsSomething(f, kind, spec['selector']);
      checkSpec(f, spec);
    },
    validateUpdate(f, object, old, world, subresource) {
      if (subresource !== '') return;
      this.validate?.(f, object, world);
      immutableSelector(f, object, old);
    },
  };
}

const DEPLOYMENT_DEFAULTS = { replicas: 1, revisionHistoryLimit: 10, progressDeadlineSeconds: 600 };

export const deploymentStrategy: Strategy = {
  ...scaled('deployment', DEPLOYMENT_DEFAULTS, checkDeployment),
  decode(draft) {
    const spec = childRecord(draft, 'spec');
    withDefaults(spec, DEPLOYMENT_DEFAULTS);
    const strategy = childRecord(spec, 'strategy');
    strategy['type'] ??= 'RollingUpdate';
    if (strategy['type'] === 'RollingUpdate')
      withDefaults(childRecord(strategy, 'rollingUpdate'), { maxUnavailable: '25%', maxSurge: '25%' });
    return decodeTemplate(draft);
  },
};

export const replicaSetStrategy: Strategy = scaled('deployment', { replicas: 1 }, (f, spec) =>
  checkNonNegative(f, 'spec', spec, ['minReadySeconds']),
);

const ROLLING_UPDATE = { type: 'RollingUpdate', rollingUpdate: { maxUnavailable: 1, maxSurge: 0 } };

export const daemonSetStrategy: Strategy = scaled(
  'daemonset',
  { revisionHistoryLimit: 10, updateStrategy: ROLLING_UPDATE },
  checkDaemonSet,
);

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
    checkJobSpec(f, 'spec', recordAt(object, 'spec'));
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

const JOB_COUNTS = [
  'parallelism',
  'completions',
  'activeDeadlineSeconds',
  'backoffLimit',
  'ttlSecondsAfterFinished',
] as const;

/** What the specs of jobs and the templates of cron jobs have in common. */
function checkJobSpec(f: Findings, field: string, spec: Json): void {
  checkNonNegative(f, field, spec, JOB_COUNTS);
  const mode = textAt(spec, 'completionMode') || 'NonIndexed';
  if (mode !== 'NonIndexed') f.notSupported(`${field}.completionMode`, mode, ['NonIndexed']);
  const policy = textAt(spec, 'template', 'spec', 'restartPolicy');
  if (policy === 'OnFailure' || policy === 'Never') return;
  const path = `${field}.template.spec.restartPolicy`;
  if (policy === 'Always') f.required(path, 'valid values: "OnFailure", "Never"');
  else f.notSupported(path, policy, ['OnFailure', 'Never']);
}

/** The jobs that a cron job will make. */
export function checkJobTemplate(f: Findings, object: ApiObject): void {
  const spec = recordAt(object, 'spec', 'jobTemplate', 'spec');
  checkPodTemplate(f, 'spec.jobTemplate.spec.template', templatePod(spec) as Pod);
  checkJobSpec(f, 'spec.jobTemplate.spec', spec);
}
