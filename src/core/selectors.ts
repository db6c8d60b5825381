// Label selectors, node selectors and taints: which objects, nodes and pods go together. Pure; shared by admission and
// by whoever schedules. A selector with a requirement that is not valid matches nothing.
import { entryOf, type LabelSelector } from './meta.ts';
import type { Node, Taint } from './node.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod, Toleration } from './pod.ts';

export type Labels = Readonly<Record<string, string>>;

/** An absent selector matches nothing, an empty one everything. */
export function matchesLabelSelector(selector: LabelSelector | undefined, labels: Labels = {}): boolean {
  if (selector === undefined) return false;
  return (
    hasAllLabels(selector.matchLabels ?? {}, labels) &&
    (selector.matchExpressions ?? []).every((r) => matchesRequirement(r, entryOf(labels, r.key), SET_OPERATORS))
  );
}

const hasAllLabels = (wanted: Labels, labels: Labels): boolean =>
  Object.entries(wanted).every(([key, value]) => entryOf(labels, key) === value);

/** `spec.nodeSelector` and the required node affinity, both. */
export const matchesNode = (pod: Pod, node: Node): boolean => {
  if (!hasAllLabels(pod.spec.nodeSelector ?? {}, node.metadata.labels ?? {})) return false;
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return required === undefined || matchesNodeTerms(required.nodeSelectorTerms ?? [], node);
};

/** Terms are alternatives; a term without any requirement matches no node. */
export const matchesNodeTerms = (terms: readonly NodeSelectorTerm[], node: Node): boolean =>
  terms.some((term) => matchesNodeTerm(term, node));

function matchesNodeTerm(term: NodeSelectorTerm, node: Node): boolean {
  const { matchExpressions = [], matchFields = [] } = term;
  if (matchExpressions.length === 0 && matchFields.length === 0) return false;
  const labels = node.metadata.labels ?? {};
  return (
    matchExpressions.every((r) => matchesRequirement(r, entryOf(labels, r.key), NODE_OPERATORS)) &&
    matchFields.every((r) => matchesField(r, node))
  );
}

/** `metadata.name` is the only field nodes can be chosen by, and only one name at a time. */
const matchesField = (r: NodeSelectorRequirement, node: Node): boolean =>
  r.key === 'metadata.name' &&
  (r.operator === 'In' || r.operator === 'NotIn') &&
  r.values?.length === 1 &&
  (r.operator === 'In') === (r.values[0] === node.metadata.name);

const SET_OPERATORS = ['In', 'NotIn', 'Exists', 'DoesNotExist'];
const NODE_OPERATORS = [...SET_OPERATORS, 'Gt', 'Lt'];

function matchesRequirement(
  r: NodeSelectorRequirement,
  actual: string | undefined,
  allowed: readonly string[],
): boolean {
  const values = r.values ?? [];
  if (!allowed.includes(r.operator)) return false;
  switch (r.operator) {
    case 'In':
      return actual !== undefined && values.includes(actual);
    case 'NotIn':
      return values.length > 0 && (actual === undefined || !values.includes(actual));
    case 'Exists':
      return values.length === 0 && actual !== undefined;
    case 'DoesNotExist':
      return values.length === 0 && actual === undefined;
    default:
      return values.length === 1 && comparesTo(r.operator, actual, values[0]);
  }
}

const INTEGER = /^[+-]?\d{1,19}$/;

function comparesTo(operator: string, actual: string | undefined, bound: string | undefined): boolean {
  if (actual === undefined || bound === undefined || !INTEGER.test(actual) || !INTEGER.test(bound)) return false;
  const difference = BigInt(actual.replace('+', '')) - BigInt(bound.replace('+', ''));
  return operator === 'Gt' ? difference > 0n : difference < 0n;
}

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== '' && toleration.effect !== taint.effect) return false;
  if (toleration.key !== undefined && toleration.key !== '' && toleration.key !== taint.key) return false;
  switch (toleration.operator ?? '') {
    case 'Exists':
      return true;
    case '':
    case 'Equal':
      return (toleration.value ?? '') === (taint.value ?? '');
    default:
      return false;
  }
}

export const toleratesTaint = (tolerations: readonly Toleration[] | undefined, taint: Taint): boolean =>
  (tolerations ?? []).some((toleration) => tolerates(toleration, taint));

/** The first taint with one of these effects that the pod does not tolerate. */
export const untoleratedTaint = (pod: Pod, node: Node, effects: readonly string[]): Taint | undefined =>
  (node.spec?.taints ?? []).find(
    (taint) => effects.includes(taint.effect) && !toleratesTaint(pod.spec.tolerations, taint),
  );
