// Addresses of a name by the machine's hosts file and its name servers, asked over sockets as Go's resolver does: however long
// a server keeps its answer to itself, no thread waits for it, and no other name either.
import type { LookupAddress } from 'node:dns';
import { Resolver } from 'node:dns/promises';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { errnoOf, messageOf } from './errors.ts';
import { upTo } from './text.ts';

export type Addresses = readonly LookupAddress[];

export type NameSources = {
  /** The text of a file that may not be there. */
  readonly read: (path: string) => Promise<string>;
  /** Addresses of exactly this name; rejects with the resolver's code. */
  readonly query: (name: string, family: 4 | 6) => Promise<readonly string[]>;
};

const HOSTS = '/etc/hosts';
const RESOLV_CONF = '/etc/resolv.conf';
const DEFAULT_NDOTS = 1;
const MAX_NDOTS = 15;
/** There is no such name, or nobody to ask: other sources of the system may know more. */
const UNKNOWN = new Set(['ENOTFOUND', 'ENODATA', 'ECONNREFUSED', 'EBADNAME', 'EFORMERR']);

/** Undefined when neither knows the name. Rejects when a server owes the answer. */
export async function searchAddresses(
  name: string,
  { read, query }: NameSources,
  signal: AbortSignal,
): Promise<Addresses | undefined> {
  const [hosts, resolvConf] = await Promise.all([read(HOSTS), read(RESOLV_CONF)]);
  const inHosts = addressesInHosts(hosts, name);
  if (inHosts.length > 0) return inHosts;
  let trouble: unknown;
  for (const candidate of candidatesOf(name, resolvConf)) {
    signal.throwIfAborted();
    const answers = await Promise.allSettled([query(candidate, 4), query(candidate, 6)]);
    const found = answers.flatMap((answer, i) =>
      answer.status === 'rejected' ? [] : answer.value.map((address) => ({ address, family: i === 0 ? 4 : 6 })),
    );
    if (found.length > 0) return found;
    for (const answer of answers)
      if (answer.status === 'rejected' && !UNKNOWN.has(errnoOf(answer.reason) ?? '')) trouble = answer.reason;
  }
  signal.throwIfAborted();
  if (trouble === undefined) return undefined;
  throw Object.assign(new Error(messageOf(trouble), { cause: trouble }), { code: 'EAI_AGAIN' });
}

/** Of `127.0.0.1 localhost me`, in the file's order. */
export function addressesInHosts(text: string, name: string): Addresses {
  const wanted = withoutDot(name).toLowerCase();
  return text.split('\n').flatMap((line) => {
    const [address = '', ...names] = upTo(line, '#')
      .split(/\s+/)
      .filter((field) => field !== '');
    const family = isIP(address);
    return family !== 0 && names.some((n) => withoutDot(n).toLowerCase() === wanted) ? [{ address, family }] : [];
  });
}

/** The names a short one may stand for, in the order they are asked for. */
export function candidatesOf(name: string, resolvConf: string): readonly string[] {
  if (name.endsWith('.')) return [withoutDot(name)];
  let domains: readonly string[] = [];
  let ndots = DEFAULT_NDOTS;
  for (const line of resolvConf.split('\n')) {
    const [key, ...rest] = upTo(line, '#', ';').trim().split(/\s+/);
    if (key === 'search' || key === 'domain') domains = rest.map(withoutDot).filter((domain) => domain !== '');
    if (key === 'options')
      for (const [, value] of rest.join(' ').matchAll(/(?:^| )ndots:(\d+)/g))
        ndots = Math.min(Number(value), MAX_NDOTS);
  }
  const longer = domains.map((domain) => `${name}.${domain}`);
  return name.split('.').length > ndots ? [name, ...longer] : [...longer, name];
}

const withoutDot = (name: string): string => name.replace(/\.$/, '');

/** As this machine is set up. */
export async function searchHere(name: string, signal: AbortSignal): Promise<Addresses | undefined> {
  const resolver = new Resolver();
  const onAbort = (): void => resolver.cancel();
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    const query = (full: string, family: 4 | 6): Promise<string[]> =>
      family === 4 ? resolver.resolve4(full) : resolver.resolve6(full);
    return await searchAddresses(name, { read: textOrNothing, query }, signal);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}

async function textOrNothing(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch {
    // As for every resolver: what cannot be read says nothing.
    return '';
  }
}
