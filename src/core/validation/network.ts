// Names and addresses of a pod: DNS, host aliases, host names, host network.
import { isIP } from 'node:net';
import { dns1123Label, dns1123Subdomain, dns1123SubdomainWithUnderscore } from '../names.ts';
import type { PodSpec } from '../pod.ts';
import { item, type Findings } from './field-error.ts';

const MAX_NAMESERVERS = 3;
const MAX_SEARCHES = 32;
const MAX_SEARCH_CHARS = 2048;
const MAX_HOSTNAME_OVERRIDE = 64;

const withoutLeadingZeros = (ip: string): string =>
  ip
    .split('.')
    .map((part) => part.replace(/^0+(?=\d)/, ''))
    .join('.');

/** Older objects have addresses with leading zeros in them; those were always taken as decimal. */
function checkIp(f: Findings, field: string, ip: string): void {
  if (isIP(withoutLeadingZeros(ip)) === 0 || ip.includes('%'))
    f.invalid(field, ip, 'must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)');
}

export function checkDns(f: Findings, spec: PodSpec): void {
  const field = 'spec.dnsConfig';
  const config = spec.dnsConfig;
  if (spec.dnsPolicy === 'None') {
    if (config === undefined) return f.required(field, 'must provide `dnsConfig` when `dnsPolicy` is None');
    if ((config.nameservers ?? []).length === 0)
      return f.required(`${field}.nameservers`, 'must provide at least one DNS nameserver when `dnsPolicy` is None');
  }
  if (config === undefined) return;
  const { nameservers = [], searches = [], options = [] } = config;
  if (nameservers.length > MAX_NAMESERVERS)
    f.invalid(`${field}.nameservers`, nameservers, `must not have more than ${MAX_NAMESERVERS} nameservers`);
  nameservers.forEach((ip, i) => checkIp(f, item(`${field}.nameservers`, i), ip));
  if (searches.length > MAX_SEARCHES)
    f.invalid(`${field}.searches`, searches, `must not have more than ${MAX_SEARCHES} search paths`);
  if (searches.join(' ').length > MAX_SEARCH_CHARS)
    f.invalid(
      `${field}.searches`,
      searches,
      `must not have more than ${MAX_SEARCH_CHARS} characters (including spaces) in the search list`,
    );
  searches.forEach((search, i) => {
    const name = search.replace(/\.$/, '');
    if (search !== '.') f.reasons(item(`${field}.searches`, i), name, dns1123SubdomainWithUnderscore(name));
  });
  options.forEach((option, i) => {
    if (!option.name) f.required(item(`${field}.options`, i), 'must not be empty');
    else if (/\s/.test(option.name + (option.value ?? '')))
      f.invalid(item(`${field}.options`, i), option, 'must not contain white space');
  });
}

export function checkHostAliases(f: Findings, aliases: NonNullable<PodSpec['hostAliases']>): void {
  aliases.forEach((alias, i) => {
    const at = item('spec.hostAliases', i);
    checkIp(f, `${at}.ip`, alias.ip ?? '');
    (alias.hostnames ?? []).forEach((name, j) => f.reasons(item(`${at}.hostnames`, j), name, dns1123Subdomain(name)));
  });
}

export function checkHostnames(f: Findings, spec: PodSpec): void {
  if (spec.hostname) f.reasons('spec.hostname', spec.hostname, dns1123Label(spec.hostname));
  if (spec.subdomain) f.reasons('spec.subdomain', spec.subdomain, dns1123Label(spec.subdomain));
  const override = spec.hostnameOverride;
  if (override === undefined) return;
  const at = 'spec.hostnameOverride';
  if (spec.setHostnameAsFQDN === true) f.forbidden(at, 'may not be specified when setHostnameAsFQDN is true');
  if (spec.hostNetwork === true) f.forbidden(at, 'may not be specified when hostNetwork is true');
  if (Buffer.byteLength(override) > MAX_HOSTNAME_OVERRIDE) f.tooLong(at, MAX_HOSTNAME_OVERRIDE);
  f.reasons(at, override, dns1123Subdomain(override));
}

export function checkHostNetwork(f: Findings, spec: PodSpec): void {
  if (spec.hostNetwork !== true) return;
  spec.containers.forEach((container, i) =>
    container.ports?.forEach((port, j) => {
      if ((port.hostPort ?? 0) !== port.containerPort)
        f.invalid(
          `spec.containers[${i}].ports[${j}].hostPort`,
          port.hostPort ?? 0,
          'must match `containerPort` when `hostNetwork` is true',
        );
    }),
  );
}

export function checkHostUsers(f: Findings, spec: PodSpec): void {
  if (spec.hostUsers !== false) return;
  const why = 'when `hostUsers` is false';
  for (const part of ['hostNetwork', 'hostPID', 'hostIPC'] as const)
    if (spec[part] === true) f.forbidden(`spec.${part}`, why);
  for (const list of ['initContainers', 'containers', 'ephemeralContainers'] as const)
    (spec[list] ?? []).forEach((container, i) => {
      if ((container.volumeDevices ?? []).length > 0) f.forbidden(`spec.${list}[${i}].volumeDevices`, why);
    });
}
