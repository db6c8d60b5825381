// Taints: the notation of --register-with-taints, and their validity.
import { labelValue, qualifiedName } from './names.ts';

export type TaintEffect = 'NoSchedule' | 'PreferNoSchedule' | 'NoExecute';
export type ParsedTaint = { key: string; value?: string; effect: TaintEffect };

const isTaintEffect = (text: string): text is TaintEffect =>
  text === 'NoSchedule' || text === 'PreferNoSchedule' || text === 'NoExecute';

/** `key[=value]:Effect`, or the reason why it is none. */
export function parseTaint(text: string): ParsedTaint | string {
  const parts = text.split(':');
  const [head = '', effect = ''] = parts;
  if (parts.length === 1) return `taint ${JSON.stringify(text)} has no effect, expected key[=value]:Effect`;
  if (parts.length > 2) return `invalid taint spec: ${text}`;
  if (!isTaintEffect(effect))
    return `invalid taint effect: ${effect}, expected NoSchedule, PreferNoSchedule or NoExecute`;
  const [key = '', value, ...more] = head.split('=');
  if (more.length > 0) return `invalid taint spec: ${text}`;
  const keyErrors = qualifiedName(key);
  if (keyErrors.length > 0) return `invalid taint spec: ${text}, ${keyErrors.join('; ')}`;
  const valueErrors = value === undefined ? [] : labelValue(value);
  if (valueErrors.length > 0) return `invalid taint spec: ${text}, ${valueErrors.join('; ')}`;
  return value === undefined ? { key, effect } : { key, value, effect };
}

/** What is wrong with a taint that came as an object. */
export function taintErrors(taint: { key: string; value?: string | undefined; effect: string }): string[] {
  const errors = [...qualifiedName(taint.key), ...labelValue(taint.value ?? '')];
  if (!isTaintEffect(taint.effect)) errors.push(`invalid taint effect: ${taint.effect}`);
  return errors;
}
