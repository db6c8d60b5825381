// Labels, annotations and label selectors.
import type { LabelSelector } from '../meta.ts';
import { labelValue, qualifiedName } from '../names.ts';
import { item, key, type Findings } from './field-error.ts';

type StringMap = Readonly<Record<string, string>>;

const MAX_ANNOTATIONS_BYTES = 256 * 1024;

export function checkLabels(f: Findings, field: string, labels: StringMap | undefined): void {
  for (const [name, value] of Object.entries(labels ?? {})) {
    f.reasons(field, name, qualifiedName(name), key(field, name));
    f.reasons(field, value, labelValue(value), key(field, name));
  }
}

export function checkAnnotations(f: Findings, field: string, annotations: StringMap | undefined): void {
  let bytes = 0;
  for (const [name, value] of Object.entries(annotations ?? {})) {
    f.reasons(field, name, qualifiedName(name.toLowerCase()), key(field, name));
    bytes += Buffer.byteLength(name) + Buffer.byteLength(value);
  }
  if (bytes > MAX_ANNOTATIONS_BYTES) f.tooLong(field, MAX_ANNOTATIONS_BYTES);
}

export function checkLabelSelector(f: Findings, field: string, selector: LabelSelector | undefined): void {
  if (selector === undefined) return;
  checkLabels(f, `${field}.matchLabels`, selector.matchLabels);
  (selector.matchExpressions ?? []).forEach((expression, i) => {
    const at = item(`${field}.matchExpressions`, i);
    const values = expression.values ?? [];
    if (!checkOperands(f, at, expression.operator, values))
      f.invalid(`${at}.operator`, expression.operator, 'not a valid selector operator');
    f.reasons(`${at}.key`, expression.key, qualifiedName(expression.key ?? ''));
    values.forEach((value, j) => f.reasons(item(`${at}.values`, j), value, labelValue(value)));
  });
}

/** Whether the operator is one that label and node selectors share; if so, how many values go with it is checked. */
export function checkOperands(
  f: Findings,
  at: string,
  operator: string | undefined,
  values: readonly string[],
): boolean {
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0) f.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'");
      return true;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0)
        f.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
      return true;
    default:
      return false;
  }
}
