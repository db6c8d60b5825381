// Main, init and ephemeral containers.
import { dns1123Label, portName, portNumber } from '../names.ts';
import { isSidecar, type Container, type ContainerPort, type PodSpec, type Volume } from '../pod.ts';
import { checkEnv, checkEnvFrom } from './env.ts';
import { item, type Findings } from './field-error.ts';
import { checkLifecycle, checkProbe } from './handlers.ts';
import { checkDevices, checkMounts } from './mounts.ts';
import { checkResources } from './resources.ts';
import { checkRestartPolicy, checkResizePolicy } from './restart.ts';
import { checkSecurityContext } from './security.ts';

/** What the checks of one container need to know of its pod. */
export type PodFacts = {
  readonly spec: PodSpec;
  readonly volumes: ReadonlyMap<string, Volume>;
  readonly claimNames: ReadonlySet<string>;
  readonly allowPrivileged: boolean;
};

const PULL_POLICIES = ['Always', 'IfNotPresent', 'Never'];
const MESSAGE_POLICIES = ['File', 'FallbackToLogsOnError'];
const PROTOCOLS = ['SCTP', 'TCP', 'UDP'];
const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;

const graceOf = (facts: PodFacts): number => facts.spec.terminationGracePeriodSeconds ?? 30;

export function checkMainContainers(f: Findings, facts: PodFacts): void {
  const field = 'spec.containers';
  const { containers } = facts.spec;
  if (containers.length === 0) return f.required(field);
  const names = new Set<string>();
  containers.forEach((container, i) => {
    const at = item(field, i);
    checkCommon(f, at, container, facts);
    if (names.has(container.name)) f.duplicate(`${at}.name`, container.name);
    names.add(container.name);
    checkHooksAndProbes(f, at, container, facts);
    checkRestartPolicy(f, at, container);
  });
  checkHostPorts(f, field, containers);
}

export function checkInitContainers(f: Findings, facts: PodFacts): void {
  const field = 'spec.initContainers';
  const names = new Set(facts.spec.containers.map((c) => c.name));
  (facts.spec.initContainers ?? []).forEach((container, i) => {
    const at = item(field, i);
    checkCommon(f, at, container, facts);
    checkRestartPolicy(f, at, container);
    if (names.has(container.name)) f.duplicate(`${at}.name`, container.name);
    else if (container.name) names.add(container.name);
    checkHostPorts(f, field, [container], i);
    if (isSidecar(container)) return checkHooksAndProbes(f, at, container, facts);
    for (const part of ['lifecycle', ...PROBES] as const)
      if (container[part] !== undefined)
        f.forbidden(`${at}.${part}`, 'may not be set for init containers without restartPolicy=Always');
    container.resizePolicy?.forEach((policy, j) => {
      if (policy.restartPolicy === 'RestartContainer')
        f.invalid(
          `${at}.resizePolicy[${j}].restartPolicy`,
          policy.restartPolicy,
          "must not be set to 'RestartContainer' for non-sidecar initContainers",
        );
    });
  });
}

const NOT_FOR_EPHEMERAL = [
  'ports',
  ...PROBES,
  'lifecycle',
  'resizePolicy',
  'restartPolicy',
  'restartPolicyRules',
] as const;

export function checkEphemeralContainers(f: Findings, facts: PodFacts): void {
  const { spec } = facts;
  const others = new Set([...spec.containers, ...(spec.initContainers ?? [])].map((c) => c.name));
  const names = new Set(others);
  (spec.ephemeralContainers ?? []).forEach((container, i) => {
    const at = item('spec.ephemeralContainers', i);
    checkCommon(f, at, container, facts);
    checkImage(f, at, container);
    if (names.has(container.name)) f.duplicate(`${at}.name`, container.name);
    names.add(container.name);
    const target = container.targetContainerName;
    if (target && !others.has(target)) f.notFound(`${at}.targetContainerName`, target);
    const why = 'cannot be set for an Ephemeral Container';
    for (const part of NOT_FOR_EPHEMERAL) if (isSet(container[part])) f.forbidden(`${at}.${part}`, why);
    if (isSet(container.resources)) f.forbidden(`${at}.resources`, why);
    container.volumeMounts?.forEach((mount, j) => {
      if (mount.subPath) f.forbidden(`${at}.volumeMounts[${j}].subPath`, why);
      if (mount.subPathExpr) f.forbidden(`${at}.volumeMounts[${j}].subPathExpr`, why);
    });
  });
}

const isSet = (value: unknown): boolean =>
  value !== undefined && !(typeof value === 'object' && value !== null && Object.keys(value).length === 0);

/** Only pods, not templates, are refused for spaces around the image. */
export function checkImage(f: Findings, at: string, container: Container): void {
  const image = container.image ?? '';
  if (image !== image.trim()) f.invalid(`${at}.image`, image, 'must not have leading or trailing whitespace');
}

function checkCommon(f: Findings, at: string, container: Container, facts: PodFacts): void {
  const { spec } = facts;
  f.name(`${at}.name`, container.name, dns1123Label);
  if (!container.image) f.required(`${at}.image`);
  f.oneOf(`${at}.terminationMessagePolicy`, container.terminationMessagePolicy, MESSAGE_POLICIES);
  checkPorts(f, `${at}.ports`, container.ports ?? []);
  checkEnv(f, `${at}.env`, container.env ?? []);
  checkEnvFrom(f, `${at}.envFrom`, container.envFrom ?? []);
  checkMounts(f, `${at}.volumeMounts`, container, facts.volumes);
  checkDevices(f, `${at}.volumeDevices`, container, facts.volumes);
  f.oneOf(`${at}.imagePullPolicy`, container.imagePullPolicy, PULL_POLICIES);
  checkResources(f, `${at}.resources`, container.resources, facts.claimNames);
  checkResizePolicy(f, `${at}.resizePolicy`, container, spec.restartPolicy);
  checkSecurityContext(
    f,
    `${at}.securityContext`,
    container.securityContext,
    spec.hostUsers !== false,
    facts.allowPrivileged,
  );
}

function checkHooksAndProbes(f: Findings, at: string, container: Container, facts: PodFacts): void {
  const grace = graceOf(facts);
  if (container.lifecycle !== undefined)
    checkLifecycle(f, `${at}.lifecycle`, container.lifecycle, grace, facts.spec.os?.name);
  for (const kind of PROBES) checkProbe(f, at, kind, container[kind], grace);
}

function checkPorts(f: Findings, field: string, ports: readonly ContainerPort[]): void {
  const names = new Set<string>();
  ports.forEach((port, i) => {
    const at = item(field, i);
    if (port.name) {
      const reasons = portName(port.name);
      if (reasons.length > 0) f.reasons(`${at}.name`, port.name, reasons);
      else if (names.has(port.name)) f.duplicate(`${at}.name`, port.name);
      else names.add(port.name);
    }
    if (!port.containerPort) f.required(`${at}.containerPort`);
    else f.reasons(`${at}.containerPort`, port.containerPort, portNumber(port.containerPort));
    if (port.hostPort) f.reasons(`${at}.hostPort`, port.hostPort, portNumber(port.hostPort));
    f.oneOf(`${at}.protocol`, port.protocol, PROTOCOLS);
  });
}

function checkHostPorts(f: Findings, field: string, containers: readonly Container[], first = 0): void {
  const taken = new Set<string>();
  containers.forEach((container, i) =>
    container.ports?.forEach((port, j) => {
      if (!port.hostPort) return;
      const address = `${port.protocol ?? ''}/${port.hostIP ?? ''}/${port.hostPort}`;
      if (taken.has(address)) f.duplicate(`${item(field, first + i)}.ports[${j}].hostPort`, address);
      taken.add(address);
    }),
  );
}
