// Environment variables and the downward API.
import { configMapKey, dns1123Label, dns1123Subdomain, envVarName, qualifiedName } from '../names.ts';
import type {
  EnvFromSource,
  EnvVar,
  KeySelector,
  ObjectFieldSelector,
  PodSpec,
  ResourceFieldSelector,
} from '../pod.ts';
import { canonicalQuantity, tryParseQuantity } from '../quantity.ts';
import { item, type Findings } from './field-error.ts';
import { checkNoBacksteps } from './paths.ts';

const ENV_FIELD_PATHS = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
export const VOLUME_FIELD_PATHS = [
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
];
/** Every field a reference can name at all; what each place allows is a subset. */
const KNOWN_FIELD_PATHS: ReadonlySet<string> = new Set([
  ...ENV_FIELD_PATHS,
  ...VOLUME_FIELD_PATHS,
  'spec.restartPolicy',
  'spec.schedulerName',
  'status.phase',
]);

const RESOURCES = ['cpu', 'memory', 'ephemeral-storage'];
const RESOURCE_PATHS = ['limits', 'requests'].flatMap((side) => RESOURCES.map((name) => `${side}.${name}`));
const BYTE_DIVISORS = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];

export function checkEnv(f: Findings, field: string, env: readonly EnvVar[]): void {
  env.forEach((variable, i) => {
    const at = item(field, i);
    f.name(`${at}.name`, variable.name, envVarName);
    checkValueFrom(f, `${at}.valueFrom`, variable);
  });
}

function checkValueFrom(f: Findings, field: string, variable: EnvVar): void {
  const from = variable.valueFrom;
  if (from === undefined) return;
  if (from.fieldRef !== undefined) checkFieldRef(f, `${field}.fieldRef`, from.fieldRef, ENV_FIELD_PATHS);
  if (from.resourceFieldRef !== undefined)
    checkResourceFieldRef(f, `${field}.resourceFieldRef`, from.resourceFieldRef, false);
  if (from.configMapKeyRef !== undefined) checkKeySelector(f, `${field}.configMapKeyRef`, from.configMapKeyRef);
  if (from.secretKeyRef !== undefined) checkKeySelector(f, `${field}.secretKeyRef`, from.secretKeyRef);
  if (from.fileKeyRef !== undefined) {
    f.name(`${field}.fileKeyRef.key`, from.fileKeyRef.key, envVarName);
    f.name(`${field}.fileKeyRef.volumeName`, from.fileKeyRef.volumeName, dns1123Label);
    if (!from.fileKeyRef.path) f.required(`${field}.fileKeyRef.path`);
    else checkNoBacksteps(f, `${field}.fileKeyRef.path`, from.fileKeyRef.path);
  }
  const sources = Object.keys(from).length;
  if (sources === 0)
    f.invalid(
      field,
      '',
      'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`',
    );
  else if (variable.value) f.invalid(field, '', 'may not be specified when `value` is not empty');
  else if (sources > 1) f.invalid(field, '', 'may not have more than one field specified at a time');
}

export function checkEnvFrom(f: Findings, field: string, sources: readonly EnvFromSource[]): void {
  sources.forEach((source, i) => {
    const at = item(field, i);
    if (source.prefix) f.reasons(`${at}.prefix`, source.prefix, envVarName(source.prefix));
    if (source.configMapRef !== undefined)
      f.name(`${at}.configMapRef.name`, source.configMapRef.name, dns1123Subdomain);
    if (source.secretRef !== undefined) f.name(`${at}.secretRef.name`, source.secretRef.name, dns1123Subdomain);
    const count = (source.configMapRef === undefined ? 0 : 1) + (source.secretRef === undefined ? 0 : 1);
    if (count === 0) f.invalid(at, '', 'must specify one of: `configMapRef` or `secretRef`');
    else if (count > 1) f.invalid(at, '', 'may not have more than one field specified at a time');
  });
}

function checkKeySelector(f: Findings, field: string, selector: KeySelector): void {
  f.reasons(`${field}.name`, selector.name ?? '', dns1123Subdomain(selector.name ?? ''));
  f.name(`${field}.key`, selector.key, configMapKey);
}

const SUBSCRIPT = /^(.*)\['(.*)'\]$/s;

export function checkFieldRef(f: Findings, field: string, ref: ObjectFieldSelector, allowed: readonly string[]): void {
  const at = `${field}.fieldPath`;
  if (!ref.apiVersion) f.required(`${field}.apiVersion`);
  if (!ref.fieldPath) return f.required(at);
  if (ref.apiVersion && ref.apiVersion !== 'v1')
    return f.invalid(at, ref.fieldPath, `error converting fieldPath: unsupported pod version: ${ref.apiVersion}`);
  const match = SUBSCRIPT.exec(ref.fieldPath);
  if (match !== null) {
    const [, path = '', name = ''] = match;
    if (path === 'metadata.annotations') f.reasons(at, name, qualifiedName(name.toLowerCase()));
    else if (path === 'metadata.labels') f.reasons(at, name, qualifiedName(name));
    else f.invalid(at, ref.fieldPath, `error converting fieldPath: field label does not support subscript: ${path}`);
    return;
  }
  const path = ref.fieldPath === 'spec.host' ? 'spec.nodeName' : ref.fieldPath;
  if (!KNOWN_FIELD_PATHS.has(path))
    f.invalid(at, ref.fieldPath, `error converting fieldPath: field label not supported: ${path}`);
  else if (!allowed.includes(path)) f.notSupported(at, path, allowed);
}

export function checkResourceFieldRef(f: Findings, field: string, ref: ResourceFieldSelector, inVolume: boolean): void {
  const hugePages = /^(limits|requests)\.hugepages-/.test(ref.resource ?? '');
  if (inVolume && !ref.containerName) f.required(`${field}.containerName`);
  else if (!ref.resource) f.required(`${field}.resource`);
  else if (!RESOURCE_PATHS.includes(ref.resource) && !hugePages)
    f.notSupported(`${field}.resource`, ref.resource, [...RESOURCE_PATHS].sort());
  checkDivisor(f, field, ref);
}

function checkDivisor(f: Findings, field: string, ref: ResourceFieldSelector): void {
  if (ref.divisor === undefined) return;
  const at = `${field}.divisor`;
  const parsed = tryParseQuantity(ref.divisor);
  if (parsed === undefined) return f.invalid(at, ref.divisor, 'must be a quantity');
  if (parsed.nano === 0n) return;
  const divisor = canonicalQuantity(ref.divisor);
  const name = (ref.resource ?? '').replace(/^(limits|requests)\./, '');
  if (name === 'cpu') {
    if (divisor !== '1' && divisor !== '1m')
      f.invalid(at, ref.resource, "only divisor's values 1m and 1 are supported with the cpu resource");
  } else if (name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-')) {
    const what = name === 'memory' ? 'memory' : name === 'ephemeral-storage' ? 'local ephemeral storage' : 'hugepages';
    if (!BYTE_DIVISORS.includes(divisor))
      f.invalid(
        at,
        ref.resource,
        `only divisor's values ${BYTE_DIVISORS.join(', ')} are supported with the ${what} resource`,
      );
  }
}

/** Variables from files can only come from an emptyDir, which an init container fills. */
export function checkFileKeyVolumes(f: Findings, spec: PodSpec): void {
  const volumes = new Map((spec.volumes ?? []).map((v) => [v.name, v]));
  const lists = {
    containers: spec.containers,
    initContainers: spec.initContainers,
    ephemeralContainers: spec.ephemeralContainers,
  };
  for (const [list, containers] of Object.entries(lists))
    (containers ?? []).forEach((container, i) =>
      (container.env ?? []).forEach((variable, j) => {
        const name = variable.valueFrom?.fileKeyRef?.volumeName;
        if (!name) return;
        const at = `spec.${list}[${i}].env[${j}].valueFrom.fileKeyRef.volumeName`;
        const volume = volumes.get(name);
        if (volume === undefined) f.notFound(at, name);
        else if (volume.emptyDir === undefined) f.invalid(at, name, 'referenced volume must be of type emptyDir');
      }),
    );
}
