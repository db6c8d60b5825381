// Where a pod may run: tolerations, affinity, topology spread, gates.
import type { LabelSelector } from '../meta.ts';
import { dns1123Label, dns1123Subdomain, labelValue, qualifiedName } from '../names.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, PodSpec, Toleration } from '../pod.ts';
import { item, type Findings } from './field-error.ts';
import { checkLabelSelector, checkOperands } from './labels.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];
const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

export function checkTolerations(f: Findings, field: string, tolerations: readonly Toleration[]): void {
  tolerations.forEach((toleration, i) => {
    const at = item(field, i);
    const { key = '', operator = '', value = '', effect = '' } = toleration;
    if (key !== '') f.reasons(`${at}.key`, key, qualifiedName(key));
    if (key === '' && operator !== 'Exists')
      f.invalid(
        `${at}.operator`,
        operator,
        'operator must be Exists when `key` is empty, which means "match all values and all keys"',
      );
    if (toleration.tolerationSeconds !== undefined && effect !== 'NoExecute')
      f.invalid(`${at}.effect`, effect, "effect must be 'NoExecute' when `tolerationSeconds` is set");
    if (operator === 'Equal' || operator === '') {
      const reasons = labelValue(value);
      if (reasons.length > 0) f.invalid(`${at}.operator`, value, reasons.join(';'));
    } else if (operator === 'Exists') {
      if (value !== '') f.invalid(`${at}.operator`, value, "value must be empty when `operator` is 'Exists'");
    } else {
      f.notSupported(`${at}.operator`, operator, ['Equal', 'Exists']);
    }
    if (effect !== '' && !EFFECTS.includes(effect)) f.notSupported(`${at}.effect`, effect, EFFECTS);
  });
}

type Weighted<K extends string, T> = { readonly weight?: number } & { readonly [P in K]?: T };
type PodTerm = {
  readonly labelSelector?: LabelSelector;
  readonly namespaceSelector?: LabelSelector;
  readonly namespaces?: readonly string[];
  readonly topologyKey?: string;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
};
type PodAffinity = {
  readonly [REQUIRED]?: readonly PodTerm[];
  readonly [PREFERRED]?: readonly Weighted<'podAffinityTerm', PodTerm>[];
};

export function checkAffinity(f: Findings, affinity: NonNullable<PodSpec['affinity']>): void {
  const node = affinity.nodeAffinity;
  const field = 'spec.affinity.nodeAffinity';
  if (node?.[REQUIRED] !== undefined) {
    const at = `${field}.${REQUIRED}.nodeSelectorTerms`;
    const terms = node[REQUIRED].nodeSelectorTerms ?? [];
    if (terms.length === 0) f.required(at, 'must have at least one node selector term');
    terms.forEach((term, i) => checkNodeTerm(f, item(at, i), term, true));
  }
  const preferred = (node?.[PREFERRED] ?? []) as readonly Weighted<'preference', NodeSelectorTerm>[];
  preferred.forEach((entry, i) => {
    const at = item(`${field}.${PREFERRED}`, i);
    checkWeight(f, at, entry.weight);
    checkNodeTerm(f, `${at}.preference`, entry.preference ?? {}, false);
  });
  for (const kind of ['podAffinity', 'podAntiAffinity'] as const) {
    const given = (affinity[kind] ?? {}) as PodAffinity;
    given[REQUIRED]?.forEach((term, i) => checkPodTerm(f, item(`spec.affinity.${kind}.${REQUIRED}`, i), term));
    given[PREFERRED]?.forEach((entry, i) => {
      const at = item(`spec.affinity.${kind}.${PREFERRED}`, i);
      checkWeight(f, at, entry.weight);
      checkPodTerm(f, `${at}.podAffinityTerm`, entry.podAffinityTerm ?? {});
    });
  }
}

const checkWeight = (f: Findings, at: string, weight = 0): void => {
  if (weight < 1 || weight > 100) f.invalid(`${at}.weight`, weight, 'must be in the range 1-100');
};

function checkNodeTerm(f: Findings, at: string, term: NodeSelectorTerm, strict: boolean): void {
  term.matchExpressions?.forEach((rule, i) => checkNodeRule(f, item(`${at}.matchExpressions`, i), rule, strict));
  term.matchFields?.forEach((rule, i) => {
    const field = item(`${at}.matchFields`, i);
    const values = rule.values ?? [];
    if (rule.operator !== 'In' && rule.operator !== 'NotIn')
      f.invalid(`${field}.operator`, rule.operator, 'not a valid selector operator');
    else if (values.length !== 1)
      f.required(
        `${field}.values`,
        "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
      );
    if (rule.key !== 'metadata.name') f.invalid(`${field}.key`, rule.key, 'not a valid field selector key');
    else values.forEach((value, j) => f.reasons(item(`${field}.values`, j), value, dns1123Subdomain(value)));
  });
}

function checkNodeRule(f: Findings, at: string, rule: NodeSelectorRequirement, strict: boolean): void {
  const values = rule.values ?? [];
  if (rule.operator === 'Gt' || rule.operator === 'Lt') {
    if (values.length !== 1)
      f.required(`${at}.values`, "must be specified single value when `operator` is 'Lt' or 'Gt'");
  } else if (!checkOperands(f, at, rule.operator, values))
    f.invalid(`${at}.operator`, rule.operator, 'not a valid selector operator');
  f.reasons(`${at}.key`, rule.key, qualifiedName(rule.key ?? ''));
  if (strict) values.forEach((value, i) => f.reasons(item(`${at}.values`, i), value, labelValue(value)));
}

function checkPodTerm(f: Findings, at: string, term: PodTerm): void {
  checkLabelSelector(f, `${at}.labelSelector`, term.labelSelector);
  checkLabelSelector(f, `${at}.namespaceSelector`, term.namespaceSelector);
  term.namespaces?.forEach((name, i) => f.reasons(item(`${at}.namespaces`, i), name, dns1123Label(name)));
  checkLabelKeys(f, `${at}.matchLabelKeys`, term.matchLabelKeys, term.labelSelector);
  checkLabelKeys(f, `${at}.mismatchLabelKeys`, term.mismatchLabelKeys, term.labelSelector);
  term.matchLabelKeys?.forEach((name, i) => {
    if (term.mismatchLabelKeys?.includes(name) === true)
      f.invalid(item(`${at}.matchLabelKeys`, i), name, 'exists in both matchLabelKeys and mismatchLabelKeys');
  });
  if (!term.topologyKey) f.required(`${at}.topologyKey`, 'can not be empty');
  f.reasons(`${at}.topologyKey`, term.topologyKey ?? '', qualifiedName(term.topologyKey ?? ''));
}

function checkLabelKeys(
  f: Findings,
  field: string,
  keys: readonly string[] | undefined,
  selector: LabelSelector | undefined,
): void {
  if (keys === undefined || keys.length === 0) return;
  if (selector === undefined) f.forbidden(field, 'must not be specified when labelSelector is not set');
  keys.forEach((name, i) => f.reasons(item(field, i), name, qualifiedName(name)));
}

type SpreadConstraint = {
  readonly maxSkew?: number;
  readonly topologyKey?: string;
  readonly whenUnsatisfiable?: string;
  readonly labelSelector?: LabelSelector;
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
  readonly matchLabelKeys?: readonly string[];
};

export function checkTopologySpread(f: Findings, given: readonly unknown[]): void {
  const constraints = given as readonly SpreadConstraint[];
  const seen = new Set<string>();
  constraints.forEach((constraint, i) => {
    const at = item('spec.topologySpreadConstraints', i);
    const { maxSkew = 0, topologyKey = '', whenUnsatisfiable = '', minDomains } = constraint;
    if (maxSkew <= 0) f.invalid(`${at}.maxSkew`, maxSkew, 'must be greater than zero');
    if (topologyKey === '') f.required(`${at}.topologyKey`, 'can not be empty');
    if (whenUnsatisfiable !== 'DoNotSchedule' && whenUnsatisfiable !== 'ScheduleAnyway')
      f.notSupported(`${at}.whenUnsatisfiable`, whenUnsatisfiable, ['DoNotSchedule', 'ScheduleAnyway']);
    const pair = `{${topologyKey}, ${whenUnsatisfiable}}`;
    if (seen.has(pair)) f.duplicate(`${at}.{topologyKey, whenUnsatisfiable}`, pair);
    seen.add(pair);
    if (minDomains !== undefined) {
      if (minDomains <= 0) f.invalid(`${at}.minDomains`, minDomains, 'must be greater than zero');
      if (whenUnsatisfiable !== 'DoNotSchedule')
        f.invalid(
          `${at}.minDomains`,
          minDomains,
          `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${whenUnsatisfiable}`,
        );
    }
    for (const part of ['nodeAffinityPolicy', 'nodeTaintsPolicy'] as const) {
      const policy = constraint[part];
      if (policy !== undefined && policy !== 'Ignore' && policy !== 'Honor')
        f.notSupported(`${at}.${part}`, policy, ['Honor', 'Ignore']);
    }
    checkLabelKeys(f, `${at}.matchLabelKeys`, constraint.matchLabelKeys, constraint.labelSelector);
    checkLabelSelector(f, `${at}.labelSelector`, constraint.labelSelector);
  });
}

export function checkGates(f: Findings, spec: PodSpec): void {
  (spec.readinessGates ?? []).forEach((gate, i) => {
    const type = gate.conditionType ?? '';
    f.reasons(`spec.readinessGates[${i}].conditionType`, type, qualifiedName(type));
  });
  const seen = new Set<string>();
  (spec.schedulingGates ?? []).forEach((gate, i) => {
    const at = item('spec.schedulingGates', i);
    f.reasons(at, gate.name ?? '', qualifiedName(gate.name ?? ''));
    if (seen.has(gate.name)) f.duplicate(at, gate.name);
    seen.add(gate.name);
  });
}
