// The rules of the flags that no configuration field carries.
import { isIP } from 'node:net';
import { labelValue, qualifiedName } from '../core/names.ts';
import type { KubeletConfig } from './config-fields.ts';
import type { KubeletFlags } from './flags.ts';

/** Labels of the reserved namespaces that a kubelet may set on its own node. */
const ALLOWED_LABELS = new Set([
  'kubernetes.io/hostname',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'beta.kubernetes.io/instance-type',
  'node.kubernetes.io/instance-type',
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
]);
const ALLOWED_NAMESPACES = ['kubelet.kubernetes.io', 'node.kubernetes.io'];

const within = (namespace: string, domain: string): boolean => namespace === domain || namespace.endsWith(`.${domain}`);

/** Whether a label is one the node itself may carry although its namespace is reserved. */
export function isAllowedNodeLabel(key: string): boolean {
  const namespace = key.includes('/') ? (key.split('/', 1)[0] ?? '') : '';
  if (!within(namespace, 'kubernetes.io') && !within(namespace, 'k8s.io')) return true;
  return ALLOWED_LABELS.has(key) || ALLOWED_NAMESPACES.some((allowed) => within(namespace, allowed));
}

export function validateFlags(flags: KubeletFlags, given: ReadonlyMap<string, unknown>): string[] {
  const errors: string[] = [];
  const unknown = Object.keys(flags.nodeLabels).filter((key) => !isAllowedNodeLabel(key));
  if (unknown.length > 0)
    errors.push(
      `unknown 'kubernetes.io' or 'k8s.io' labels specified with --node-labels: [${unknown.sort().join(' ')}]\n--node-labels in the 'kubernetes.io' namespace must begin with an allowed prefix (${ALLOWED_NAMESPACES.join(', ')}) or be in the specifically allowed set (${[...ALLOWED_LABELS].sort().join(', ')})`,
    );
  for (const [key, value] of Object.entries(flags.nodeLabels)) {
    const why = [...qualifiedName(key), ...labelValue(value)];
    if (why.length > 0) errors.push(`invalid node labels: '${key}' - ${why.join('; ')}`);
  }
  if (flags.exitOnLockContention && flags.lockFile === '')
    errors.push('cannot exit on lock file contention: no lock file specified');
  if (flags.cloudProvider !== '' && flags.cloudProvider !== 'external')
    errors.push(`unknown cloud provider "${flags.cloudProvider}": only "external" or none is supported`);
  if (given.has('hostname-override') && flags.hostnameOverride !== '' && flags.hostnameOverride.trim() === '')
    errors.push('empty hostname is invalid');
  const nodeIp = nodeIpError(flags.nodeIp);
  if (nodeIp !== undefined) errors.push(nodeIp);
  return errors;
}

/** Flags that a configuration makes dangerous. */
export function validateTogether(flags: KubeletFlags, config: KubeletConfig): string[] {
  const open = config.authentication.anonymous.enabled && config.authorization.mode === 'AlwaysAllow';
  if (!flags.enableManifestApi || !open) return [];
  return [
    '--enable-manifest-api lets anybody who reaches the port run privileged pods while anonymous requests are allowed everything: set --anonymous-auth=false or --authorization-mode=Webhook',
  ];
}

/** The addresses of --node-ip, in order; entries that are none are left out. */
export function parseNodeIps(text: string): { readonly ips: readonly string[]; readonly ignored: readonly string[] } {
  const entries = text
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  return { ips: entries.filter((entry) => isIP(entry) !== 0), ignored: entries.filter((entry) => isIP(entry) === 0) };
}

function nodeIpError(text: string): string | undefined {
  const { ips } = parseNodeIps(text);
  const [first, second] = ips;
  const bad = `bad --node-ip ${JSON.stringify(text)}`;
  if (ips.length > 2 || (first !== undefined && second !== undefined && isIP(first) === isIP(second)))
    return `${bad}: must contain either a single IP or a dual-stack pair of IPs`;
  if (second !== undefined && ips.some((ip) => ip === '0.0.0.0' || ip === '::'))
    return `${bad}: dual-stack node IP cannot include '0.0.0.0' or '::'`;
  return undefined;
}
