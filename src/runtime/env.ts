// The environment of a container. Sources come in as data, read beforehand; the merge itself is pure.
import type { ConfigMap, Secret, Service } from '../core/node.ts';
import {
  isStaticPod,
  namespaceOf,
  type Container,
  type EnvVar,
  type EnvVarSource,
  type Pod,
  type ResourceFieldSelector,
  type ResourceList,
} from '../core/pod.ts';
import {
  containerForResources,
  defaultLimits,
  fieldValue,
  goQuote,
  resourceValue,
  type DownwardFacts,
} from '../core/downward.ts';
import { entryOf } from '../core/meta.ts';
import { podIpsOf } from '../core/pod-ips.ts';
import { KubeletError } from '../lib/errors.ts';
import { envText } from './env-bytes.ts';
import { envFileValue } from './env-file.ts';
import { expand, type Lookup } from './expansion.ts';
import { serviceEnv, visibleServices } from './service-env.ts';

/** Objects the environment refers to; undefined means there is none. Keys are names in the pod's namespace. */
export type EnvObjects = {
  readonly configMaps: ReadonlyMap<string, ConfigMap | undefined>;
  readonly secrets: ReadonlyMap<string, Secret | undefined>;
  /** File content by `volume/path`; undefined when the file does not exist. */
  readonly files: ReadonlyMap<string, string | undefined>;
  /** Undefined until services have been read once. */
  readonly services: readonly Service[] | undefined;
};
export type EnvFacts = DownwardFacts & { readonly allocatable: ResourceList };

const invalid = (message: string): KubeletError => new KubeletError('invalid', message);

export type EnvReferences = {
  readonly configMaps: ReadonlySet<string>;
  readonly secrets: ReadonlySet<string>;
  readonly files: readonly { readonly volumeName: string; readonly path: string }[];
};

/** Which objects must be read before `containerEnv` can run. */
export function envReferences(container: Container): EnvReferences {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const files: { volumeName: string; path: string }[] = [];
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef !== undefined) configMaps.add(configMapRef.name ?? '');
    if (secretRef !== undefined) secrets.add(secretRef.name ?? '');
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.configMapKeyRef !== undefined) configMaps.add(valueFrom.configMapKeyRef.name ?? '');
    if (valueFrom?.secretKeyRef !== undefined) secrets.add(valueFrom.secretKeyRef.name ?? '');
    if (valueFrom?.fileKeyRef !== undefined) files.push(valueFrom.fileKeyRef);
  }
  return { configMaps, secrets, files };
}

export const fileKey = (file: { readonly volumeName: string; readonly path: string }): string =>
  `${file.volumeName}/${file.path}`;

/** Container variables first, then those of services that no variable hides. */
export function containerEnv(
  pod: Pod,
  container: Container,
  objects: EnvObjects,
  facts: EnvFacts,
): ReadonlyMap<string, string> {
  const services = servicesFor(pod, objects);
  const env = envFrom(container, objects);
  const lookup: Lookup = (name) => env.get(name) ?? services.get(name);
  for (const variable of container.env ?? []) {
    const value = variableValue(variable, { pod, container, objects, facts, lookup });
    if (value !== undefined) env.set(variable.name, value);
  }
  for (const [name, value] of services) if (!env.has(name)) env.set(name, value);
  return env;
}

function servicesFor(pod: Pod, objects: EnvObjects): Map<string, string> {
  if (pod.spec.enableServiceLinks === undefined)
    throw invalid('nil pod.spec.enableServiceLinks encountered, cannot construct envvars');
  if (objects.services === undefined && !isStaticPod(pod))
    throw invalid('services have not yet been read at least once, cannot construct envvars');
  return serviceEnv(visibleServices(pod, objects.services ?? []));
}

const decoded = (base64: string): string => envText(Buffer.from(base64, 'base64'));

function envFrom(container: Container, objects: EnvObjects): Map<string, string> {
  const env = new Map<string, string>();
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef !== undefined) {
      const found = objects.configMaps.get(configMapRef.name ?? '');
      if (found === undefined && configMapRef.optional !== true) throw missing('configmap', configMapRef.name);
      for (const [key, value] of Object.entries(found?.data ?? {})) env.set(prefix + key, value);
    } else if (secretRef !== undefined) {
      const found = objects.secrets.get(secretRef.name ?? '');
      if (found === undefined && secretRef.optional !== true) throw missing('secret', secretRef.name);
      for (const [key, value] of Object.entries(found?.data ?? {})) env.set(prefix + key, decoded(value));
    }
  }
  return env;
}

const missing = (kind: 'configmap' | 'secret', name: string | undefined): KubeletError =>
  new KubeletError('notFound', `${kind} ${goQuote(name ?? '')} not found`);

type Resolving = {
  readonly pod: Pod;
  readonly container: Container;
  readonly objects: EnvObjects;
  readonly facts: EnvFacts;
  readonly lookup: Lookup;
};

/** Undefined leaves the variable out: its source is optional and not there. */
function variableValue(variable: EnvVar, at: Resolving): string | undefined {
  if (variable.value !== undefined && variable.value !== '') return expand(variable.value, at.lookup);
  return variable.valueFrom === undefined ? '' : valueFrom(variable.valueFrom, at);
}

function valueFrom(source: EnvVarSource, at: Resolving): string | undefined {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  if (fieldRef !== undefined) return fieldValue(at.pod, fieldRef.fieldPath, asShown(at.facts));
  if (resourceFieldRef !== undefined) return resourceOf(resourceFieldRef, at);
  if (configMapKeyRef !== undefined) {
    const { name = '', key, optional } = configMapKeyRef;
    const found = at.objects.configMaps.get(name);
    if (found === undefined && optional !== true) throw missing('configmap', name);
    return keyOf(
      entryOf(found?.data, key),
      optional,
      `couldn't find key ${key} in ConfigMap ${namespaceOf(at.pod)}/${name}`,
    );
  }
  if (secretKeyRef !== undefined) {
    const { name = '', key, optional } = secretKeyRef;
    const found = at.objects.secrets.get(name);
    if (found === undefined && optional !== true) throw missing('secret', name);
    const value = keyOf(
      entryOf(found?.data, key),
      optional,
      `couldn't find key ${key} in Secret ${namespaceOf(at.pod)}/${name}`,
    );
    return value === undefined ? undefined : decoded(value);
  }
  return fileKeyRef === undefined ? '' : fromFile(fileKeyRef, at);
}

/** A container learns the addresses that the pod's status shows, in that order. */
const asShown = ({ podIPs, hostIPs }: DownwardFacts): DownwardFacts => ({
  podIPs: podIpsOf(podIPs, hostIPs[0]),
  hostIPs,
});

function resourceOf(selector: ResourceFieldSelector, { pod, container, facts }: Resolving): string {
  const target = selector.containerName ? containerForResources(pod, selector.containerName) : container;
  return resourceValue(target, selector, defaultLimits(pod, facts.allocatable));
}

function keyOf(value: string | undefined, optional: boolean | undefined, problem: string): string | undefined {
  if (value === undefined && optional !== true) throw invalid(problem);
  return value;
}

function fromFile(reference: NonNullable<EnvVarSource['fileKeyRef']>, at: Resolving): string | undefined {
  const { path, key, optional } = reference;
  const text = at.objects.files.get(fileKey(reference));
  const value = text === undefined ? undefined : envFileValue(text, key, path);
  if (value !== undefined && value !== '') return value;
  return keyOf(undefined, optional, `environment variable key ${goQuote(key)} not found in file ${goQuote(path)}`);
}
