// Restart and resize policies of one container.
import type { Container, RestartPolicy } from '../pod.ts';
import { item, type Findings } from './field-error.ts';

const POLICIES = ['Always', 'Never', 'OnFailure'];
const ACTIONS = ['Restart', 'RestartAllContainers'];
const OPERATORS = ['In', 'NotIn'];
const MAX_RULES = 20;
const MAX_EXIT_CODES = 255;

export function checkRestartPolicy(f: Findings, container: string, given: Container): void {
  const { restartPolicy: policy, restartPolicyRules: rules = [] } = given;
  const field = `${container}.restartPolicyRules`;
  if (policy === undefined) {
    if (rules.length > 0)
      f.required(`${container}.restartPolicy`, 'must specify restartPolicy when restart rules are used');
  } else if (!POLICIES.includes(policy)) {
    f.notSupported(`${container}.restartPolicy`, policy, POLICIES);
  }
  if (rules.length > MAX_RULES) f.tooMany(field, rules.length, MAX_RULES);
  rules.forEach((rule, i) => {
    const at = item(field, i);
    if (!ACTIONS.includes(rule.action)) f.notSupported(`${at}.action`, rule.action ?? '', ACTIONS);
    if (rule.exitCodes === undefined) return f.required(`${at}.exitCodes`, 'must be specified');
    if (!OPERATORS.includes(rule.exitCodes.operator))
      f.notSupported(`${at}.exitCodes.operator`, rule.exitCodes.operator ?? '', OPERATORS);
    const values = rule.exitCodes.values ?? [];
    if (values.length > MAX_EXIT_CODES) f.tooMany(`${at}.exitCodes.values`, values.length, MAX_EXIT_CODES);
  });
}

export function checkResizePolicy(
  f: Findings,
  field: string,
  container: Container,
  podPolicy: RestartPolicy | undefined,
): void {
  const seen = new Set<string>();
  (container.resizePolicy ?? []).forEach((policy, i) => {
    const at = item(field, i);
    if (seen.has(policy.resourceName)) f.duplicate(at, policy.resourceName);
    seen.add(policy.resourceName);
    f.oneOf(`${at}.resourceName`, policy.resourceName, ['cpu', 'memory']);
    f.oneOf(`${at}.restartPolicy`, policy.restartPolicy, ['NotRequired', 'RestartContainer']);
    if (podPolicy === 'Never' && policy.restartPolicy !== 'NotRequired')
      f.invalid(
        `${at}.restartPolicy`,
        policy.restartPolicy,
        "must be 'NotRequired' when pod `restartPolicy` is 'Never'",
      );
  });
}
