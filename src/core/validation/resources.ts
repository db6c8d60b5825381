// Requests, limits and claims of containers and of the pod as a whole.
import { dns1123Label, qualifiedName } from '../names.ts';
import { isPodLevelResource, podLimits, podRequests } from '../pod-resources.ts';
import type { Pod, PodSpec, ResourceList, ResourceRequirements } from '../pod.ts';
import { compareQuantities, formatQuantity, quantity, toUnits, tryParseQuantity, type Quantity } from '../quantity.ts';
import { isExtendedResource, isNativeResource } from '../resource-names.ts';
import { item, key, type Findings } from './field-error.ts';

const STANDARD_CONTAINER = new Set(['cpu', 'memory', 'ephemeral-storage']);
/** Known to Kubernetes, though containers cannot ask for them. */
const STANDARD_ELSEWHERE = new Set(
  (
    'pods services replicationcontrollers resourcequotas secrets configmaps storage persistentvolumeclaims ' +
    'services.nodeports services.loadbalancers requests.cpu requests.memory requests.storage ' +
    'requests.ephemeral-storage limits.cpu limits.memory limits.ephemeral-storage'
  ).split(' '),
);

const isHugePage = (name: string): boolean => name.startsWith('hugepages-');
const mayOvercommit = (name: string): boolean => isNativeResource(name) && !isHugePage(name);

type NameRule = (f: Findings, field: string, name: string) => void;

const containerResourceName: NameRule = (f, field, name) => {
  if (!standardName(f, field, name)) return;
  if (!name.includes('/')) {
    if (!STANDARD_CONTAINER.has(name) && !isHugePage(name))
      f.invalid(field, name, 'must be a standard resource for containers');
  } else if (!isNativeResource(name) && !isExtendedResource(name)) {
    f.invalid(field, name, "doesn't follow extended resource name standard");
  }
};

const podResourceName: NameRule = (f, field, name) => {
  if (standardName(f, field, name) && !isPodLevelResource(name))
    f.notSupported(field, name, ['cpu', 'hugepages-', 'memory']);
};

function standardName(f: Findings, field: string, name: string): boolean {
  const reasons = qualifiedName(name);
  f.reasons(field, name, reasons);
  if (reasons.length > 0) return false;
  if (name.includes('/') || STANDARD_CONTAINER.has(name) || STANDARD_ELSEWHERE.has(name) || isHugePage(name))
    return true;
  f.invalid(field, name, 'must be a standard resource type or fully qualified');
  return true;
}

/** Names and values of one list; returns those that are quantities. */
function checkList(f: Findings, field: string, list: ResourceList, nameRule: NameRule): Map<string, Quantity> {
  const parsed = new Map<string, Quantity>();
  for (const [name, text] of Object.entries(list)) {
    const at = key(field, name);
    nameRule(f, at, name);
    const value = tryParseQuantity(text);
    if (value === undefined) {
      f.invalid(
        at,
        text,
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      );
      continue;
    }
    parsed.set(name, value);
    if (value.nano < 0n) f.invalid(at, text, 'must be greater than or equal to 0');
    if (isExtendedResource(name) && value.nano % 1_000_000_000n !== 0n) f.invalid(at, text, 'must be an integer');
    if (isHugePage(name) && !isMultipleOfPage(name, value))
      f.invalid(at, text, `${formatQuantity(value)} is not positive integer multiple of ${name}`);
  }
  return parsed;
}

function isMultipleOfPage(name: string, value: Quantity): boolean {
  const page = tryParseQuantity(name.slice('hugepages-'.length));
  if (page === undefined || page.nano <= 0n) return false;
  return toUnits(value) % toUnits(page) === 0n;
}

export function checkResources(
  f: Findings,
  field: string,
  given: ResourceRequirements | undefined,
  claimNames: ReadonlySet<string>,
  nameRule: NameRule = containerResourceName,
): void {
  if (given === undefined) return;
  const limits = checkList(f, `${field}.limits`, given.limits ?? {}, nameRule);
  const requests = checkList(f, `${field}.requests`, given.requests ?? {}, nameRule);
  for (const [name, request] of requests) {
    const limit = limits.get(name);
    if (limit === undefined) {
      if (!mayOvercommit(name)) f.required(`${field}.limits`, 'Limit must be set for non overcommitable resources');
    } else if (compareQuantities(request, limit) !== 0 && !mayOvercommit(name)) {
      f.invalid(
        `${field}.requests`,
        formatQuantity(request),
        `must be equal to ${name} limit of ${formatQuantity(limit)}`,
      );
    } else if (compareQuantities(request, limit) > 0) {
      f.invalid(
        `${field}.requests`,
        formatQuantity(request),
        `must be less than or equal to ${name} limit of ${formatQuantity(limit)}`,
      );
    }
  }
  const names = [...limits.keys(), ...requests.keys()];
  if (names.some(isHugePage) && !names.includes('cpu') && !names.includes('memory'))
    f.forbidden(field, 'HugePages require cpu or memory');
  checkClaims(f, `${field}.claims`, given.claims ?? [], claimNames);
}

function checkClaims(
  f: Findings,
  field: string,
  claims: NonNullable<ResourceRequirements['claims']>,
  known: ReadonlySet<string>,
): void {
  const seen = new Set<string>();
  claims.forEach((claim, i) => {
    const at = item(field, i);
    if (!claim.name) return f.required(at);
    if (claim.request) f.reasons(`${at}.request`, claim.request, dns1123Label(claim.request));
    const own = claim.request ? `${claim.name}/${claim.request}` : claim.name;
    const clash =
      seen.has(claim.name) ||
      seen.has(own) ||
      (!claim.request && [...seen].some((other) => other.startsWith(`${claim.name}/`)));
    if (clash) f.duplicate(at, own);
    seen.add(own);
    if (!known.has(claim.name))
      f.notFound(
        at,
        claim.name,
        `must be one of the names in pod.spec.resourceClaims${known.size === 0 ? ' which is empty' : `: ${[...known].sort().join(', ')}`}`,
      );
  });
}

export function checkPodResources(f: Findings, pod: Pod, claimNames: ReadonlySet<string>): void {
  const spec = pod.spec;
  const given = spec.resources;
  if (given === undefined) return;
  const field = 'spec.resources';
  if (spec.os?.name === 'windows') return f.forbidden(field, 'may not be set for a windows pod');
  if (given.claims !== undefined) f.forbidden(`${field}.claims`, 'claims may not be set for Resources at pod-level');
  checkResources(f, field, given, claimNames, podResourceName);
  checkPodFits(f, field, pod, given);
}

/** What the containers ask for together must fit into what the pod has. */
function checkPodFits(f: Findings, field: string, pod: Pod, given: ResourceRequirements): void {
  const alone = { withoutOverhead: true, withoutPodLevel: true };
  for (const [name, total] of podRequests(pod, alone)) {
    const own = given.requests?.[name];
    if (own !== undefined && compareQuantities(total, quantity(own)) > 0)
      f.invalid(
        key(`${field}.requests`, name),
        own,
        `must be greater than or equal to aggregate container requests of ${formatQuantity(total)}`,
      );
  }
  for (const [name, total] of podLimits(pod, alone)) {
    const own = given.limits?.[name];
    if (own !== undefined && isHugePage(name) && compareQuantities(total, quantity(own)) > 0)
      f.invalid(
        key(`${field}.limits`, name),
        own,
        `must be greater than or equal to aggregate container limits of ${formatQuantity(total)}`,
      );
  }
  pod.spec.containers.forEach((container, i) => {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      const own = given.limits?.[name];
      if (own !== undefined && compareQuantities(quantity(limit), quantity(own)) > 0)
        f.invalid(
          `${field}.containers[${i}][${name}].limits`,
          limit,
          `must be less than or equal to pod limits of ${own}`,
        );
    }
  });
}

export function checkOverhead(f: Findings, overhead: ResourceList | undefined): void {
  if (overhead !== undefined) checkList(f, 'spec.overhead', overhead, containerResourceName);
}

export function checkPodClaims(f: Findings, spec: PodSpec, nameRule: (name: string) => readonly string[]): void {
  const seen = new Set<string>();
  (spec.resourceClaims ?? []).forEach((claim, i) => {
    const at = item('spec.resourceClaims', i);
    if (!claim.name) f.required(`${at}.name`);
    else if (seen.has(claim.name)) f.duplicate(`${at}.name`, claim.name);
    else f.reasons(`${at}.name`, claim.name, dns1123Label(claim.name));
    seen.add(claim.name);
    const { resourceClaimName: direct, resourceClaimTemplateName: template } = claim;
    if (direct !== undefined && template !== undefined)
      f.invalid(at, claim, 'at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified');
    if (direct === undefined && template === undefined)
      f.invalid(at, claim, 'must specify one of: `resourceClaimName`, `resourceClaimTemplateName`');
    if (direct !== undefined) f.reasons(`${at}.resourceClaimName`, direct, nameRule(direct));
    if (template !== undefined) f.reasons(`${at}.resourceClaimTemplateName`, template, nameRule(template));
  });
}
