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
import { podIpsOf, type IpFamily } from '../core/pod-ips.ts';
import { containerBudget } from '../core/bounds.ts';
import { ENTRY_BYTES, type Budget } from '../lib/budget.ts';
import { KubeletError } from '../lib/errors.ts';
import { expand, type Lookup } from '../lib/expansion.ts';
import { envText } from './env-bytes.ts';
import { EnvFile } from './env-file.ts';
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
export type EnvFacts = DownwardFacts & {
  readonly allocatable: ResourceList;
  /** Of a pod's first address. */
  readonly ipFamily: IpFamily;
};

const invalid = (message: string): KubeletError => new KubeletError('invalid', message);

export type EnvReferences = {
  readonly configMaps: ReadonlySet<string>;
  readonly secrets: ReadonlySet<string>;
  /** By `fileKey`. */
  readonly files: ReadonlyMap<string, { readonly volumeName: string; readonly path: string }>;
};

/** Which objects must be read before `containerEnv` can run. */
export function envReferences(container: Container): EnvReferences {
  const configMaps = new Set<string>();
  const secrets = new Set<string>();
  const files = new Map<string, { readonly volumeName: string; readonly path: string }>();
  for (const { configMapRef, secretRef } of container.envFrom ?? []) {
    if (configMapRef !== undefined) configMaps.add(configMapRef.name ?? '');
    if (secretRef !== undefined) secrets.add(secretRef.name ?? '');
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.configMapKeyRef !== undefined) configMaps.add(valueFrom.configMapKeyRef.name ?? '');
    if (valueFrom?.secretKeyRef !== undefined) secrets.add(valueFrom.secretKeyRef.name ?? '');
    if (valueFrom?.fileKeyRef !== undefined) files.set(fileKey(valueFrom.fileKeyRef), valueFrom.fileKeyRef);
  }
  return { configMaps, secrets, files };
}

const fileKey = (file: { readonly volumeName: string; readonly path: string }): string =>
  `${file.volumeName}/${file.path}`;

/** Container variables first, then those of services that no variable hides. Throws when `budget` is used up. */
export function containerEnv(
  pod: Pod,
  container: Container,
  objects: EnvObjects,
  facts: EnvFacts,
  budget: Budget = containerBudget(),
): ReadonlyMap<string, string> {
  const services = servicesFor(pod, objects);
  const once = new Once();
  const env = envFrom(container, objects, once, budget);
  const lookup: Lookup = (name) => env.get(name) ?? services.get(name);
  for (const variable of container.env ?? []) {
    budget.take(ENTRY_BYTES + Buffer.byteLength(variable.name), fieldOf(variable.name));
    const value = variableValue(variable, { pod, container, objects, facts, lookup, once, budget });
    if (value !== undefined) env.set(variable.name, value);
  }
  for (const [name, value] of services) {
    if (env.has(name)) continue;
    budget.take(ENTRY_BYTES + name.length + value.length, fieldOf(name));
    env.set(name, value);
  }
  return env;
}

const fieldOf = (name: string): string => `environment variable ${name}`;

function servicesFor(pod: Pod, objects: EnvObjects): Map<string, string> {
  if (pod.spec.enableServiceLinks === undefined)
    throw invalid('nil pod.spec.enableServiceLinks encountered, cannot construct envvars');
  if (objects.services === undefined && !isStaticPod(pod))
    throw invalid('services have not yet been read at least once, cannot construct envvars');
  return serviceEnv(visibleServices(pod, objects.services ?? []));
}

/** Values that many variables may name: each is decoded, formatted or parsed once per container. */
class Once {
  readonly #secrets = new Map<Secret, Map<string, string>>();
  readonly #others = new Map<string, unknown>();

  secretValue(secret: Secret, key: string, base64: string): string {
    let values = this.#secrets.get(secret);
    if (values === undefined) this.#secrets.set(secret, (values = new Map()));
    let value = values.get(key);
    if (value === undefined) values.set(key, (value = envText(Buffer.from(base64, 'base64'))));
    return value;
  }

  value<T>(key: string, make: () => T): T {
    if (!this.#others.has(key)) this.#others.set(key, make());
    return this.#others.get(key) as T;
  }
}

function envFrom(container: Container, objects: EnvObjects, once: Once, budget: Budget): Map<string, string> {
  const env = new Map<string, string>();
  for (const { prefix = '', configMapRef, secretRef } of container.envFrom ?? []) {
    const perKey = ENTRY_BYTES + Buffer.byteLength(prefix);
    if (configMapRef !== undefined) {
      const { name = '', optional } = configMapRef;
      const found = objects.configMaps.get(name);
      if (found === undefined && optional !== true) throw missing('configmap', name);
      for (const [key, value] of Object.entries(found?.data ?? {})) {
        budget.take(perKey + Buffer.byteLength(key) + Buffer.byteLength(value), `envFrom ConfigMap ${name}`);
        env.set(prefix + key, value);
      }
    } else if (secretRef !== undefined) {
      const { name = '', optional } = secretRef;
      const found = objects.secrets.get(name);
      if (found === undefined && optional !== true) throw missing('secret', name);
      for (const [key, base64] of Object.entries(found?.data ?? {})) {
        budget.take(perKey + Buffer.byteLength(key) + Buffer.byteLength(base64, 'base64'), `envFrom Secret ${name}`);
        env.set(prefix + key, once.secretValue(found!, key, base64));
      }
    }
  }
  return env;
}

const missing = (kind: 'configmap' | 'secret', name: string): KubeletError =>
  new KubeletError('notFound', `${kind} ${goQuote(name)} not found`);

type Resolving = {
  readonly pod: Pod;
  readonly container: Container;
  readonly objects: EnvObjects;
  readonly facts: EnvFacts;
  readonly lookup: Lookup;
  readonly once: Once;
  readonly budget: Budget;
};

/** Undefined leaves the variable out: its source is optional and not there. */
function variableValue(variable: EnvVar, at: Resolving): string | undefined {
  const { name, value, valueFrom: source } = variable;
  if (value !== undefined && value !== '') return expand(value, at.lookup, { budget: at.budget, field: fieldOf(name) });
  const found = source === undefined ? '' : valueFrom(source, at);
  if (found !== undefined) at.budget.take(Buffer.byteLength(found), fieldOf(name));
  return found;
}

function valueFrom(source: EnvVarSource, at: Resolving): string | undefined {
  const { fieldRef, resourceFieldRef, configMapKeyRef, secretKeyRef, fileKeyRef } = source;
  if (fieldRef !== undefined) return fieldOfPod(fieldRef.fieldPath, at);
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
    return value === undefined || found === undefined ? undefined : at.once.secretValue(found, key, value);
  }
  return fileKeyRef === undefined ? '' : fromFile(fileKeyRef, at);
}

const fieldOfPod = (path: string, { pod, facts, once }: Resolving): string =>
  once.value(`field ${path}`, () => fieldValue(pod, path, asShown(facts)));

/** A container learns the addresses that the pod's status shows, in that order. */
const asShown = ({ podIPs, hostIPs, ipFamily }: EnvFacts): DownwardFacts => ({
  podIPs: podIpsOf(podIPs, ipFamily),
  hostIPs,
});

function resourceOf(selector: ResourceFieldSelector, { pod, container, facts, once }: Resolving): string {
  const target = selector.containerName ? containerForResources(pod, selector.containerName) : container;
  const defaults = once.value('default limits', () => defaultLimits(pod, facts.allocatable));
  return resourceValue(target, selector, defaults);
}

function keyOf(value: string | undefined, optional: boolean | undefined, problem: string): string | undefined {
  if (value === undefined && optional !== true) throw invalid(problem);
  return value;
}

function fromFile(reference: NonNullable<EnvVarSource['fileKeyRef']>, at: Resolving): string | undefined {
  const { path, key, optional } = reference;
  const text = at.objects.files.get(fileKey(reference));
  const file =
    text === undefined ? undefined : at.once.value(`file ${fileKey(reference)}`, () => new EnvFile(text, path));
  const value = file?.value(key);
  if (value !== undefined && value !== '') return value;
  return keyOf(undefined, optional, `environment variable key ${goQuote(key)} not found in file ${goQuote(path)}`);
}
