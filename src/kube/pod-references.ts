// Which Secrets and ConfigMaps a pod refers to. Pure.
import { containersOf, type Pod, type Volume } from '../core/pod.ts';

export function secretsOf(pod: Pod): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (name: unknown): void => void (typeof name === 'string' && name !== '' && names.add(name));
  for (const { name } of pod.spec.imagePullSecrets ?? []) add(name);
  for (const { container } of containersOf(pod)) {
    for (const from of container.envFrom ?? []) add(from.secretRef?.name);
    for (const variable of container.env ?? []) add(variable.valueFrom?.secretKeyRef?.name);
  }
  for (const volume of pod.spec.volumes ?? []) {
    add(volume.secret?.secretName);
    for (const source of volume.projected?.sources ?? []) add(source.secret?.name);
    for (const name of driverSecrets(volume)) add(name);
  }
  return names;
}

export function configMapsOf(pod: Pod): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (name: string | undefined): void => void (name !== undefined && name !== '' && names.add(name));
  for (const { container } of containersOf(pod)) {
    for (const from of container.envFrom ?? []) add(from.configMapRef?.name);
    for (const variable of container.env ?? []) add(variable.valueFrom?.configMapKeyRef?.name);
  }
  for (const volume of pod.spec.volumes ?? []) {
    add(volume.configMap?.name);
    for (const source of volume.projected?.sources ?? []) add(source.configMap?.name);
  }
  return names;
}

/** Credentials of volume drivers: `secretRef: {name}`, CSI's `nodePublishSecretRef`, Azure's plain `secretName`. */
function* driverSecrets(volume: Volume): Iterable<unknown> {
  for (const [kind, source] of Object.entries(volume)) {
    if (typeof source !== 'object' || source === null || kind === 'secret') continue;
    const fields = source as Readonly<Record<string, unknown>>;
    for (const key of ['secretRef', 'nodePublishSecretRef']) {
      const ref = fields[key];
      if (typeof ref === 'object' && ref !== null && 'name' in ref) yield ref.name;
    }
    if (kind === 'azureFile') yield fields['secretName'];
  }
}
