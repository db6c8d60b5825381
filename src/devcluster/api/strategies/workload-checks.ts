// How workloads may be rolled out and how long they may take: strategies, counts, percentages. Pure.
import type { Findings } from '../../../core/validation/field-error.ts';
import { at, numberAt, recordAt, textAt, type Json } from '../objects.ts';

const PERCENT =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";

export function checkNonNegative(f: Findings, path: string, spec: Json, fields: readonly string[]): void {
  for (const field of fields) f.nonNegative(`${path}.${field}`, numberAt(spec, field));
}

/** A selector without a word selects everything, which would be other people's pods. */
export function checkSelectsSomething(f: Findings, kind: string, selector: Json): void {
  const isEmpty = ['matchLabels', 'matchExpressions'].every(
    (part) => Object.keys(at(selector, part) ?? {}).length === 0,
  );
  if (isEmpty) f.invalid('spec.selector', selector, `empty selector is invalid for ${kind}`);
}

export function checkNoDeadline(f: Findings, spec: Json): void {
  if (at(spec, 'template', 'spec', 'activeDeadlineSeconds') !== undefined)
    f.forbidden('spec.template.spec.activeDeadlineSeconds', 'activeDeadlineSeconds in ReplicaSet is not Supported');
}

/** A count or a part of all, `10` or `25%`. */
function checkCount(f: Findings, field: string, value: unknown, isPart: boolean): void {
  if (typeof value === 'number') f.nonNegative(field, value);
  else if (typeof value !== 'string') return;
  else if (!/^\d+%$/.test(value)) f.invalid(field, value, PERCENT);
  else if (isPart && parseInt(value, 10) > 100) f.invalid(field, value, 'must not be greater than 100%');
}

const isZero = (count: unknown): boolean => count === 0 || count === '0%';

export function checkDeployment(f: Findings, spec: Json): void {
  checkNonNegative(f, 'spec', spec, ['minReadySeconds', 'revisionHistoryLimit', 'progressDeadlineSeconds']);
  const deadline = numberAt(spec, 'progressDeadlineSeconds');
  if (deadline !== undefined && deadline <= (numberAt(spec, 'minReadySeconds') ?? 0))
    f.invalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds');
  const strategy = recordAt(spec, 'strategy');
  const { maxSurge, maxUnavailable } = recordAt(strategy, 'rollingUpdate');
  switch (textAt(strategy, 'type')) {
    case 'Recreate':
      if (strategy['rollingUpdate'] !== undefined)
        f.forbidden('spec.strategy.rollingUpdate', "may not be specified when strategy `type` is 'Recreate'");
      return;
    case 'RollingUpdate':
      checkCount(f, 'spec.strategy.rollingUpdate.maxUnavailable', maxUnavailable, true);
      checkCount(f, 'spec.strategy.rollingUpdate.maxSurge', maxSurge, false);
      if (isZero(maxSurge) && isZero(maxUnavailable))
        f.invalid('spec.strategy.rollingUpdate.maxUnavailable', maxUnavailable, 'may not be 0 when `maxSurge` is 0');
      return;
    default:
      f.notSupported('spec.strategy', strategy, ['Recreate', 'RollingUpdate']);
  }
}

export function checkDaemonSet(f: Findings, spec: Json): void {
  checkNonNegative(f, 'spec', spec, ['minReadySeconds', 'revisionHistoryLimit']);
  const strategy = recordAt(spec, 'updateStrategy');
  const type = textAt(strategy, 'type');
  if (type === 'OnDelete') return;
  if (type !== 'RollingUpdate') return f.notSupported('spec.updateStrategy', strategy, ['RollingUpdate', 'OnDelete']);
  const { maxSurge = 0, maxUnavailable = 1 } = recordAt(strategy, 'rollingUpdate');
  const path = 'spec.updateStrategy.rollingUpdate';
  checkCount(f, `${path}.maxUnavailable`, maxUnavailable, true);
  checkCount(f, `${path}.maxSurge`, maxSurge, true);
  if (isZero(maxSurge) && isZero(maxUnavailable))
    f.required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0');
  else if (!isZero(maxSurge) && !isZero(maxUnavailable))
    f.invalid(`${path}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero');
}
