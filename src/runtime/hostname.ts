// What a pod is called, inside and in DNS.
import { namespaceOf, type Pod } from '../core/pod.ts';
import { KubeletError } from '../lib/errors.ts';
import { withoutEnd } from '../lib/text.ts';

const MAX_LABEL = 63;
/** The kernel's limit for a host name. */
const MAX_HOSTNAME = 64;

function truncated(name: string): string {
  if (name.length <= MAX_LABEL) return name;
  return withoutEnd(name.slice(0, MAX_LABEL), '-.');
}

export type PodHostname = { readonly hostname: string; readonly domain: string };

export function podHostname(pod: Pod, clusterDomain: string): PodHostname {
  const { hostnameOverride, hostname, subdomain } = pod.spec;
  if (hostnameOverride !== undefined && hostnameOverride !== '')
    return { hostname: truncated(hostnameOverride), domain: '' };
  const own = hostname !== undefined && hostname !== '' ? hostname : truncated(pod.metadata.name);
  const domain = subdomain ? `${subdomain}.${namespaceOf(pod)}.svc.${clusterDomain}` : '';
  return { hostname: own, domain };
}

/** The host name the sandbox gets: the short one, or the full one for `setHostnameAsFQDN`. */
export function sandboxHostname(pod: Pod, clusterDomain: string): string {
  const { hostname, domain } = podHostname(pod, clusterDomain);
  if (pod.spec.setHostnameAsFQDN !== true || domain === '') return hostname;
  const fqdn = `${hostname}.${domain}`;
  if (fqdn.length > MAX_HOSTNAME)
    throw new KubeletError(
      'invalid',
      `failed to construct FQDN from pod hostname and cluster domain, FQDN ${fqdn} is too long (${MAX_HOSTNAME} characters is the max, ${fqdn.length} characters requested)`,
    );
  return fqdn;
}
