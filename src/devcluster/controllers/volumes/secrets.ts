// Secrets that drivers are given, as plain text.
import { recordAt, textAt } from '../../api/objects.ts';
import type { Registry } from '../../api/registry.ts';
import { find } from './objects.ts';

/** Its keys and values; throws when it is named but not there. */
export function readSecret(
  registry: Registry,
  secret: { readonly name: string; readonly namespace: string } | undefined,
): Record<string, string> {
  if (secret === undefined) return {};
  const found = find(registry, 'secrets', `${secret.namespace}/${secret.name}`);
  if (found === undefined)
    throw new Error(
      `error getting secret ${secret.name} in namespace ${secret.namespace}: secrets "${secret.name}" not found`,
    );
  const data = recordAt(found, 'data') as Record<string, string>;
  return Object.fromEntries(Object.entries(data).map(([k, v]) => [k, Buffer.from(v, 'base64').toString()]));
}

/** The reference to a secret in a field of a volume's source. */
export function secretAt(source: unknown, field: string): { name: string; namespace: string } | undefined {
  const name = textAt(source, field, 'name');
  return name === '' ? undefined : { name, namespace: textAt(source, field, 'namespace') };
}
