// kube-apiserver's audit log as the list of requests it answered.
import { readFile } from 'node:fs/promises';
import type { ServedRequest } from '../../src/devcluster/api/api-server.ts';
import { parseTimeMs } from '../../src/core/time.ts';
import { errnoOf } from '../../src/lib/errors.ts';

type AuditEvent = {
  readonly auditID: string;
  readonly verb: string;
  readonly requestURI: string;
  readonly userAgent?: string;
  readonly user?: { readonly username?: string; readonly extra?: Readonly<Record<string, readonly string[]>> };
  readonly responseStatus?: { readonly code?: number };
  readonly stageTimestamp: string;
};

const METHODS: Readonly<Record<string, string>> = {
  get: 'GET',
  list: 'GET',
  watch: 'GET',
  create: 'POST',
  update: 'PUT',
  patch: 'PATCH',
  delete: 'DELETE',
  deletecollection: 'DELETE',
};

export async function readAuditLog(path: string): Promise<readonly ServedRequest[]> {
  try {
    return parseAuditLog(await readFile(path, 'utf8'));
  } catch (err) {
    if (errnoOf(err) === 'ENOENT') return [];
    throw err;
  }
}

/** Each request once, with its first answer: a watch is there as soon as it begins. A last line half written waits. */
export function parseAuditLog(text: string): readonly ServedRequest[] {
  const seen = new Set<string>();
  const found: ServedRequest[] = [];
  for (const line of text.slice(0, text.lastIndexOf('\n') + 1).split('\n')) {
    if (line === '') continue;
    const event = JSON.parse(line) as AuditEvent;
    if (seen.has(event.auditID)) continue;
    seen.add(event.auditID);
    found.push({
      atMs: parseTimeMs(event.stageTimestamp),
      method: METHODS[event.verb] ?? event.verb.toUpperCase(),
      url: event.requestURI,
      user: event.user?.username ?? '',
      credential: event.user?.extra?.['authentication.kubernetes.io/credential-id']?.[0] ?? '',
      userAgent: event.userAgent ?? '',
      code: event.responseStatus?.code ?? 0,
    });
  }
  return found;
}
