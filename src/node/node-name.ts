// The name this node goes by: the override, or the host name, in lower case.
import { KubeletError } from '../lib/errors.ts';

export function nodeNameOf(override: string, hostname: string): string {
  const name = (override.trim() === '' ? hostname : override).trim().toLowerCase();
  if (name === '') throw new KubeletError('invalid', 'empty hostname is invalid');
  return name;
}
