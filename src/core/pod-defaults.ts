// What the API server fills in before anybody sees a pod. Nobody does it for pods from files and URLs but us. Pure:
// the given pod is left alone, and a value that is set is never changed but for two repairs, described below.
import { isPodLevelResource, podLimits, podRequests, type Resources } from './pod-resources.ts';
import type {
  Container,
  DownwardApiFile,
  EnvVar,
  LifecycleHandler,
  ObjectFieldSelector,
  Pod,
  PodSpec,
  Probe,
  ProjectedSource,
  ResourceList,
  ResourceRequirements,
  Volume,
} from './pod.ts';
import { formatQuantity, tryParseQuantity, type Quantity } from './quantity.ts';

const DEFAULT_MODE = 0o644;
const TOKEN_SECONDS = 3600;
const POD_CERTIFICATE_SECONDS = 86_400;

export function applyPodDefaults(pod: Pod): Pod {
  const spec = pod.spec;
  const account = spec.serviceAccountName || spec.serviceAccount;
  const defaulted: PodSpec = {
    ...spec,
    ...(spec.volumes === undefined ? {} : { volumes: spec.volumes.map(volumeDefaults) }),
    ...(spec.initContainers === undefined
      ? {}
      : { initContainers: spec.initContainers.map((c) => containerDefaults(c, spec.hostNetwork === true)) }),
    containers: (spec.containers ?? []).map((c) => containerDefaults(c, spec.hostNetwork === true)),
    ...(spec.ephemeralContainers === undefined
      ? {}
      : { ephemeralContainers: spec.ephemeralContainers.map((c) => commonDefaults(c)) }),
    restartPolicy: spec.restartPolicy || 'Always',
    dnsPolicy: spec.dnsPolicy || 'ClusterFirst',
    schedulerName: spec.schedulerName || 'default-scheduler',
    securityContext: spec.securityContext ?? {},
    enableServiceLinks: spec.enableServiceLinks ?? true,
    terminationGracePeriodSeconds: graceSeconds(spec.terminationGracePeriodSeconds),
    ...(account ? { serviceAccountName: account, serviceAccount: account } : {}),
    ...(spec.overhead === undefined ? {} : { overhead: canonicalList(spec.overhead) }),
  };
  return podLevelDefaults({ ...pod, spec: defaulted });
}

/** A negative grace period has always meant the shortest one. */
const graceSeconds = (given: number | undefined): number => (given === undefined ? 30 : given < 0 ? 1 : given);

function containerDefaults(container: Container, hostNetwork: boolean): Container {
  const done = commonDefaults(container);
  const { limits } = done.resources ?? {};
  return {
    ...done,
    ...(limits === undefined
      ? {}
      : { resources: { ...done.resources, requests: { ...limits, ...done.resources?.requests } } }),
    ...(hostNetwork && done.ports !== undefined
      ? { ports: done.ports.map((p) => ({ ...p, hostPort: p.hostPort || p.containerPort })) }
      : {}),
  };
}

function commonDefaults<C extends Container>(container: C): C {
  const { lifecycle, env, ports, livenessProbe, readinessProbe, startupProbe } = container;
  return {
    ...container,
    ...(ports === undefined ? {} : { ports: ports.map((p) => ({ ...p, protocol: p.protocol || 'TCP' })) }),
    ...(env === undefined ? {} : { env: env.map(envDefaults) }),
    resources: requirementDefaults(container.resources),
    ...(livenessProbe === undefined ? {} : { livenessProbe: probeDefaults(livenessProbe) }),
    ...(readinessProbe === undefined ? {} : { readinessProbe: probeDefaults(readinessProbe) }),
    ...(startupProbe === undefined ? {} : { startupProbe: probeDefaults(startupProbe) }),
    ...(lifecycle === undefined
      ? {}
      : {
          lifecycle: {
            ...lifecycle,
            ...(lifecycle.postStart === undefined ? {} : { postStart: handlerDefaults(lifecycle.postStart) }),
            ...(lifecycle.preStop === undefined ? {} : { preStop: handlerDefaults(lifecycle.preStop) }),
          },
        }),
    terminationMessagePath: container.terminationMessagePath || '/dev/termination-log',
    terminationMessagePolicy: container.terminationMessagePolicy || 'File',
    imagePullPolicy: container.imagePullPolicy || pullPolicyOf(container.image),
  };
}

/** `Always` for the moving tag, `IfNotPresent` for everything that names a version. */
export function pullPolicyOf(image: string | undefined): 'Always' | 'IfNotPresent' {
  const [name = '', digest] = (image ?? '').split('@');
  if (name === '') return 'IfNotPresent';
  const last = name.slice(name.lastIndexOf('/') + 1);
  const colon = last.indexOf(':');
  if (colon < 0) return digest === undefined ? 'Always' : 'IfNotPresent';
  return last.slice(colon + 1) === 'latest' ? 'Always' : 'IfNotPresent';
}

const requirementDefaults = (given: ResourceRequirements | undefined): ResourceRequirements => ({
  ...given,
  ...(given?.limits === undefined ? {} : { limits: canonicalList(given.limits) }),
  ...(given?.requests === undefined ? {} : { requests: canonicalList(given.requests) }),
});

const NANO_PER_MILLI = 1_000_000n;
/** Canonical text, rounded up to thousandths; what is no quantity is left for validation to complain about. */
const canonicalList = (list: ResourceList): ResourceList =>
  Object.fromEntries(
    Object.entries(list).map(([name, text]) => {
      const parsed = tryParseQuantity(text);
      return [name, parsed === undefined ? text : formatQuantity(roundedToMilli(parsed))];
    }),
  );
const roundedToMilli = (q: Quantity): Quantity => {
  const rest = q.nano % NANO_PER_MILLI;
  if (rest === 0n) return q;
  return { ...q, nano: q.nano > 0n ? q.nano - rest + NANO_PER_MILLI : q.nano - rest };
};

const httpGetDefaults = <H extends LifecycleHandler | Probe>(handler: H): H =>
  handler.httpGet === undefined
    ? handler
    : {
        ...handler,
        httpGet: { ...handler.httpGet, path: handler.httpGet.path || '/', scheme: handler.httpGet.scheme || 'HTTP' },
      };
const handlerDefaults = (handler: LifecycleHandler): LifecycleHandler => httpGetDefaults(handler);

const probeDefaults = (probe: Probe): Probe => ({
  ...httpGetDefaults(probe),
  ...(probe.grpc === undefined ? {} : { grpc: { ...probe.grpc, service: probe.grpc.service ?? '' } }),
  timeoutSeconds: probe.timeoutSeconds || 1,
  periodSeconds: probe.periodSeconds || 10,
  successThreshold: probe.successThreshold || 1,
  failureThreshold: probe.failureThreshold || 3,
});

const fieldRefDefaults = (ref: ObjectFieldSelector): ObjectFieldSelector => ({
  ...ref,
  apiVersion: ref.apiVersion || 'v1',
});

function envDefaults(variable: EnvVar): EnvVar {
  const from = variable.valueFrom;
  if (from === undefined) return variable;
  return {
    ...variable,
    valueFrom: {
      ...from,
      ...(from.fieldRef === undefined ? {} : { fieldRef: fieldRefDefaults(from.fieldRef) }),
      ...(from.resourceFieldRef === undefined
        ? {}
        : { resourceFieldRef: { ...from.resourceFieldRef, divisor: from.resourceFieldRef.divisor ?? '0' } }),
      ...(from.fileKeyRef === undefined
        ? {}
        : { fileKeyRef: { ...from.fileKeyRef, optional: from.fileKeyRef.optional ?? false } }),
    },
  };
}

const downwardFileDefaults = (file: DownwardApiFile): DownwardApiFile => ({
  ...file,
  ...(file.fieldRef === undefined ? {} : { fieldRef: fieldRefDefaults(file.fieldRef) }),
  ...(file.resourceFieldRef === undefined
    ? {}
    : { resourceFieldRef: { ...file.resourceFieldRef, divisor: file.resourceFieldRef.divisor ?? '0' } }),
});

const projectedDefaults = (source: ProjectedSource): ProjectedSource => ({
  ...source,
  ...(source.serviceAccountToken === undefined
    ? {}
    : {
        serviceAccountToken: {
          ...source.serviceAccountToken,
          expirationSeconds: source.serviceAccountToken.expirationSeconds ?? TOKEN_SECONDS,
        },
      }),
  ...(source.downwardAPI?.items === undefined
    ? {}
    : { downwardAPI: { ...source.downwardAPI, items: source.downwardAPI.items.map(downwardFileDefaults) } }),
  ...(source.podCertificate === undefined
    ? {}
    : { podCertificate: { maxExpirationSeconds: POD_CERTIFICATE_SECONDS, ...source.podCertificate } }),
});

type VolumeDefaulter = { readonly [kind: string]: (source: Readonly<Record<string, unknown>>) => unknown };

/** Kinds whose missing values are constants. Given values win, whatever they are. */
const CONSTANT_VOLUME_DEFAULTS: VolumeDefaulter = {
  hostPath: (source) => ({ type: '', ...source }),
  configMap: (source) => ({ ...source, defaultMode: source['defaultMode'] ?? DEFAULT_MODE }),
  secret: (source) => ({ ...source, defaultMode: source['defaultMode'] ?? DEFAULT_MODE }),
  iscsi: (source) => ({ ...source, iscsiInterface: source['iscsiInterface'] || 'default' }),
  rbd: (source) => ({
    ...source,
    pool: source['pool'] || 'rbd',
    user: source['user'] || 'admin',
    keyring: source['keyring'] || '/etc/ceph/keyring',
  }),
  scaleIO: (source) => ({
    ...source,
    storageMode: source['storageMode'] || 'ThinProvisioned',
    fsType: source['fsType'] || 'xfs',
  }),
  azureDisk: (source) => ({ cachingMode: 'ReadWrite', kind: 'Shared', fsType: 'ext4', readOnly: false, ...source }),
};

function volumeDefaults(volume: Volume): Volume {
  if (Object.keys(volume).every((key) => key === 'name')) return { ...volume, emptyDir: {} };
  const done: Record<string, unknown> = { ...volume };
  for (const [kind, fill] of Object.entries(CONSTANT_VOLUME_DEFAULTS)) {
    const source = volume[kind];
    if (typeof source === 'object' && source !== null) done[kind] = fill(source as Readonly<Record<string, unknown>>);
  }
  if (volume.emptyDir?.sizeLimit !== undefined) {
    const parsed = tryParseQuantity(volume.emptyDir.sizeLimit);
    if (parsed !== undefined) done['emptyDir'] = { ...volume.emptyDir, sizeLimit: formatQuantity(parsed) };
  }
  if (volume.downwardAPI !== undefined)
    done['downwardAPI'] = {
      ...volume.downwardAPI,
      defaultMode: volume.downwardAPI.defaultMode ?? DEFAULT_MODE,
      ...(volume.downwardAPI.items === undefined ? {} : { items: volume.downwardAPI.items.map(downwardFileDefaults) }),
    };
  if (volume.projected !== undefined)
    done['projected'] = {
      ...volume.projected,
      defaultMode: volume.projected.defaultMode ?? DEFAULT_MODE,
      ...(volume.projected.sources === undefined ? {} : { sources: volume.projected.sources.map(projectedDefaults) }),
    };
  if (volume.image !== undefined)
    done['image'] = { ...volume.image, pullPolicy: volume.image.pullPolicy || pullPolicyOf(volume.image.reference) };
  return done as Volume;
}

const isHugePage = (name: string): boolean => name.startsWith('hugepages-');

/** A pod that says something for itself as a whole gets the rest from its containers, then from its own limits. */
function podLevelDefaults(pod: Pod): Pod {
  const given = pod.spec.resources;
  if (given === undefined) return pod;
  const canonical = requirementDefaults(given);
  const options = { withoutOverhead: true, withoutPodLevel: true };
  const isAsked = Object.keys({ ...canonical.limits, ...canonical.requests }).length > 0;
  const limits = withMissing(
    canonical.limits,
    podLimits(pod, options),
    (name) => isAsked && isHugePage(name) && canonical.requests?.[name] === undefined,
  );
  const isLimited = Object.keys(limits).length > 0;
  const requests = withMissing(
    canonical.requests,
    podRequests(pod, options),
    (name) => isLimited && isPodLevelResource(name) && !isHugePage(name),
  );
  for (const [name, text] of Object.entries(limits))
    if (requests[name] === undefined && isPodLevelResource(name)) requests[name] = text;
  const resources: ResourceRequirements = {
    ...given,
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(Object.keys(requests).length === 0 ? {} : { requests }),
  };
  return { ...pod, spec: { ...pod.spec, resources } };
}

const withMissing = (
  list: ResourceList | undefined,
  fallback: Resources,
  applies: (name: string) => boolean,
): Record<string, string> => {
  const done: Record<string, string> = { ...list };
  for (const [name, q] of fallback) if (done[name] === undefined && applies(name)) done[name] = formatQuantity(q);
  return done;
};
