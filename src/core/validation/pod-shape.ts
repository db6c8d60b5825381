// The fields of a v1 Pod, ConfigMap and Secret and their types.
import type { ConfigMap, Secret } from '../node.ts';
import type { Pod } from '../pod.ts';
import type { FieldError } from './field-error.ts';
import { conform, list, map, object, type Conformed, type Shape } from './shape.ts';

const strings = list('string');
const stringMap = map('string');
const quantities = map('quantity');
const named = object({ name: 'string' });

const objectMeta = object({
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  selfLink: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'int64',
  creationTimestamp: 'string',
  deletionTimestamp: 'string',
  deletionGracePeriodSeconds: 'int64',
  labels: stringMap,
  annotations: stringMap,
  ownerReferences: list(
    object({
      apiVersion: 'string',
      kind: 'string',
      name: 'string',
      uid: 'string',
      controller: 'bool',
      blockOwnerDeletion: 'bool',
    }),
  ),
  finalizers: strings,
  managedFields: list('any'),
});

const requirement = object({ key: 'string', operator: 'string', values: strings });
const labelSelector = object({ matchLabels: stringMap, matchExpressions: list(requirement) });
const resources = object({
  limits: quantities,
  requests: quantities,
  claims: list(object({ name: 'string', request: 'string' })),
});
const fieldRef = object({ apiVersion: 'string', fieldPath: 'string' });
const resourceFieldRef = object({ containerName: 'string', resource: 'string', divisor: 'quantity' });
const keyRef = object({ name: 'string', key: 'string', optional: 'bool' });
const optionalRef = object({ name: 'string', optional: 'bool' });

const exec = object({ command: strings });
const httpGet = object({
  path: 'string',
  port: 'intOrString',
  host: 'string',
  scheme: 'string',
  httpHeaders: list(object({ name: 'string', value: 'string' })),
});
const tcpSocket = object({ port: 'intOrString', host: 'string' });
const probe = object({
  exec,
  httpGet,
  tcpSocket,
  grpc: object({ port: 'int32', service: 'string' }),
  initialDelaySeconds: 'int32',
  timeoutSeconds: 'int32',
  periodSeconds: 'int32',
  successThreshold: 'int32',
  failureThreshold: 'int32',
  terminationGracePeriodSeconds: 'int64',
});
const handler = object({ exec, httpGet, tcpSocket, sleep: object({ seconds: 'int64' }) });

const seLinuxOptions = object({ user: 'string', role: 'string', type: 'string', level: 'string' });
const profile = object({ type: 'string', localhostProfile: 'string' });
const windowsOptions = object({
  gmsaCredentialSpecName: 'string',
  gmsaCredentialSpec: 'string',
  runAsUserName: 'string',
  hostProcess: 'bool',
});
const securityContext = object({
  capabilities: object({ add: strings, drop: strings }),
  privileged: 'bool',
  seLinuxOptions,
  windowsOptions,
  runAsUser: 'int64',
  runAsGroup: 'int64',
  runAsNonRoot: 'bool',
  readOnlyRootFilesystem: 'bool',
  allowPrivilegeEscalation: 'bool',
  procMount: 'string',
  seccompProfile: profile,
  appArmorProfile: profile,
});
const podSecurityContext = object({
  seLinuxOptions,
  windowsOptions,
  runAsUser: 'int64',
  runAsGroup: 'int64',
  runAsNonRoot: 'bool',
  supplementalGroups: list('int64'),
  supplementalGroupsPolicy: 'string',
  fsGroup: 'int64',
  sysctls: list(object({ name: 'string', value: 'string' })),
  fsGroupChangePolicy: 'string',
  seccompProfile: profile,
  appArmorProfile: profile,
  seLinuxChangePolicy: 'string',
});

const containerFields = {
  name: 'string',
  image: 'string',
  command: strings,
  args: strings,
  workingDir: 'string',
  ports: list(
    object({ name: 'string', hostPort: 'int32', containerPort: 'int32', protocol: 'string', hostIP: 'string' }),
  ),
  envFrom: list(object({ prefix: 'string', configMapRef: optionalRef, secretRef: optionalRef })),
  env: list(
    object({
      name: 'string',
      value: 'string',
      valueFrom: object({
        fieldRef,
        resourceFieldRef,
        configMapKeyRef: keyRef,
        secretKeyRef: keyRef,
        fileKeyRef: object({ volumeName: 'string', path: 'string', key: 'string', optional: 'bool' }),
      }),
    }),
  ),
  resources,
  resizePolicy: list(object({ resourceName: 'string', restartPolicy: 'string' })),
  restartPolicy: 'string',
  restartPolicyRules: list(
    object({ action: 'string', exitCodes: object({ operator: 'string', values: list('int32') }) }),
  ),
  volumeMounts: list(
    object({
      name: 'string',
      readOnly: 'bool',
      recursiveReadOnly: 'string',
      mountPath: 'string',
      subPath: 'string',
      mountPropagation: 'string',
      subPathExpr: 'string',
    }),
  ),
  volumeDevices: list(object({ name: 'string', devicePath: 'string' })),
  livenessProbe: probe,
  readinessProbe: probe,
  startupProbe: probe,
  lifecycle: object({ postStart: handler, preStop: handler, stopSignal: 'string' }),
  terminationMessagePath: 'string',
  terminationMessagePolicy: 'string',
  imagePullPolicy: 'string',
  securityContext,
  stdin: 'bool',
  stdinOnce: 'bool',
  tty: 'bool',
} as const;

const keyToPath = list(object({ key: 'string', path: 'string', mode: 'int32' }));
const downwardItems = list(object({ path: 'string', fieldRef, resourceFieldRef, mode: 'int32' }));
const storageFields = { fsType: 'string', readOnly: 'bool' } as const;
const openObject = map('any');

const volume = object({
  name: 'string',
  emptyDir: object({ medium: 'string', sizeLimit: 'quantity' }),
  hostPath: object({ path: 'string', type: 'string' }),
  configMap: object({ name: 'string', items: keyToPath, defaultMode: 'int32', optional: 'bool' }),
  secret: object({ secretName: 'string', items: keyToPath, defaultMode: 'int32', optional: 'bool' }),
  downwardAPI: object({ items: downwardItems, defaultMode: 'int32' }),
  projected: object({
    defaultMode: 'int32',
    sources: list(
      object({
        secret: object({ name: 'string', items: keyToPath, optional: 'bool' }),
        configMap: object({ name: 'string', items: keyToPath, optional: 'bool' }),
        downwardAPI: object({ items: downwardItems }),
        serviceAccountToken: object({ audience: 'string', expirationSeconds: 'int64', path: 'string' }),
        clusterTrustBundle: object({
          name: 'string',
          signerName: 'string',
          labelSelector,
          optional: 'bool',
          path: 'string',
        }),
        podCertificate: object({
          signerName: 'string',
          keyType: 'string',
          maxExpirationSeconds: 'int32',
          credentialBundlePath: 'string',
          keyPath: 'string',
          certificateChainPath: 'string',
          userAnnotations: stringMap,
        }),
      }),
    ),
  }),
  image: object({ reference: 'string', pullPolicy: 'string' }),
  persistentVolumeClaim: object({ claimName: 'string', readOnly: 'bool' }),
  ephemeral: object({ volumeClaimTemplate: object({ metadata: 'any', spec: 'any' }) }),
  csi: object({
    driver: 'string',
    ...storageFields,
    volumeAttributes: stringMap,
    nodePublishSecretRef: named,
  }),
  nfs: object({ server: 'string', path: 'string', readOnly: 'bool' }),
  iscsi: openObject,
  fc: openObject,
  gitRepo: openObject,
  flexVolume: openObject,
  rbd: openObject,
  cephfs: openObject,
  cinder: openObject,
  glusterfs: openObject,
  flocker: openObject,
  quobyte: openObject,
  scaleIO: openObject,
  storageos: openObject,
  azureDisk: openObject,
  azureFile: openObject,
  awsElasticBlockStore: openObject,
  gcePersistentDisk: openObject,
  portworxVolume: openObject,
  vsphereVolume: openObject,
  photonPersistentDisk: openObject,
});

const nodeTerm = object({ matchExpressions: list(requirement), matchFields: list(requirement) });
const podTerm = object({
  labelSelector,
  namespaces: strings,
  topologyKey: 'string',
  namespaceSelector: labelSelector,
  matchLabelKeys: strings,
  mismatchLabelKeys: strings,
});
const podAffinity = object({
  requiredDuringSchedulingIgnoredDuringExecution: list(podTerm),
  preferredDuringSchedulingIgnoredDuringExecution: list(object({ weight: 'int32', podAffinityTerm: podTerm })),
});

const podSpec = object({
  volumes: list(volume),
  initContainers: list(object(containerFields)),
  containers: list(object(containerFields)),
  ephemeralContainers: list(object({ ...containerFields, targetContainerName: 'string' })),
  restartPolicy: 'string',
  terminationGracePeriodSeconds: 'int64',
  activeDeadlineSeconds: 'int64',
  dnsPolicy: 'string',
  nodeSelector: stringMap,
  serviceAccountName: 'string',
  serviceAccount: 'string',
  automountServiceAccountToken: 'bool',
  nodeName: 'string',
  hostNetwork: 'bool',
  hostPID: 'bool',
  hostIPC: 'bool',
  shareProcessNamespace: 'bool',
  securityContext: podSecurityContext,
  imagePullSecrets: list(named),
  hostname: 'string',
  subdomain: 'string',
  affinity: object({
    nodeAffinity: object({
      requiredDuringSchedulingIgnoredDuringExecution: object({ nodeSelectorTerms: list(nodeTerm) }),
      preferredDuringSchedulingIgnoredDuringExecution: list(object({ weight: 'int32', preference: nodeTerm })),
    }),
    podAffinity,
    podAntiAffinity: podAffinity,
  }),
  schedulerName: 'string',
  tolerations: list(
    object({ key: 'string', operator: 'string', value: 'string', effect: 'string', tolerationSeconds: 'int64' }),
  ),
  hostAliases: list(object({ ip: 'string', hostnames: strings })),
  priorityClassName: 'string',
  priority: 'int32',
  preemptionPolicy: 'string',
  dnsConfig: object({
    nameservers: strings,
    searches: strings,
    options: list(object({ name: 'string', value: 'string' })),
  }),
  readinessGates: list(object({ conditionType: 'string' })),
  runtimeClassName: 'string',
  enableServiceLinks: 'bool',
  overhead: quantities,
  topologySpreadConstraints: list(
    object({
      maxSkew: 'int32',
      topologyKey: 'string',
      whenUnsatisfiable: 'string',
      labelSelector,
      minDomains: 'int32',
      nodeAffinityPolicy: 'string',
      nodeTaintsPolicy: 'string',
      matchLabelKeys: strings,
    }),
  ),
  setHostnameAsFQDN: 'bool',
  os: named,
  hostUsers: 'bool',
  schedulingGates: list(named),
  resourceClaims: list(object({ name: 'string', resourceClaimName: 'string', resourceClaimTemplateName: 'string' })),
  resources,
  hostnameOverride: 'string',
  schedulingGroup: openObject,
});

const head = { apiVersion: 'string', kind: 'string', metadata: objectMeta } as const;
const podShape: Shape = object({ ...head, spec: podSpec, status: 'any' });
const podAroundSpecShape: Shape = object({ ...head, spec: 'any', status: 'any' });
const configMapShape: Shape = object({ ...head, immutable: 'bool', data: stringMap, binaryData: stringMap });
const secretShape: Shape = object({
  ...head,
  immutable: 'bool',
  data: stringMap,
  stringData: stringMap,
  type: 'string',
});

export type Read<T> = {
  /** Absent when there are errors. */
  readonly object?: T;
  readonly errors: readonly FieldError[];
  readonly unknownFields: readonly string[];
};

/** Makes a typed Pod of anything, or says which fields have the wrong type. Neither defaults nor validates. */
export const readPod = (raw: unknown): Read<Pod> => asPod(reading<Pod>(conform(raw, podShape)));

/** The same for a pod whose spec was read before. */
export const readPodAround = (spec: Pod['spec'], raw: object): Read<Pod> =>
  reading<Pod>(conform({ ...raw, spec }, podAroundSpecShape));

function asPod(read: Read<Pod>): Read<Pod> {
  if (read.object === undefined) return read;
  const pod = read.object;
  const spec = pod.spec as Pod['spec'] | undefined;
  return {
    ...read,
    object: {
      ...pod,
      metadata: (pod.metadata as Pod['metadata'] | undefined) ?? { name: '' },
      spec: { ...spec, containers: spec?.containers ?? [] },
    },
  };
}

export const readConfigMap = (raw: unknown): Read<ConfigMap> => reading<ConfigMap>(conform(raw, configMapShape));
export const readSecret = (raw: unknown): Read<Secret> => reading<Secret>(conform(raw, secretShape));

const reading = <T>(conformed: Conformed): Read<T> => ({
  ...(conformed.errors.length === 0 ? { object: conformed.value as T } : {}),
  errors: conformed.errors,
  unknownFields: conformed.unknown,
});
