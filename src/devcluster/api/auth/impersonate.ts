// Acting as somebody else (`kubectl --as`): whoever may impersonate a user or group becomes them for one request.
import type { IncomingMessage } from 'node:http';
import { requestInfo } from '../request-info.ts';
import type { ObjectStore } from '../store.ts';
import type { User } from '../strategy.ts';
import { authorize, refusal } from './authorize.ts';

export function impersonated(store: ObjectStore, asker: User, request: IncomingMessage): User {
  const name = request.headers['impersonate-user'];
  if (typeof name !== 'string' || name === '') return asker;
  // Repeated headers arrive joined; group names hold no commas.
  const asked = request.headers['impersonate-group'];
  const groups = [asked ?? []].flat().flatMap((line) => line.split(', '));
  check(store, asker, 'users', name);
  for (const group of groups) check(store, asker, 'groups', group);
  const all = new Set([...groups, name === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated']);
  return { name, groups: [...all] };
}

function check(store: ObjectStore, asker: User, resource: string, name: string): void {
  const info = {
    ...requestInfo('GET', '/', new URLSearchParams()),
    verb: 'impersonate',
    isResource: true,
    resource,
    name,
  };
  const verdict = authorize(store, asker, info);
  if (!verdict.allowed) throw refusal(asker, info, verdict.reason);
}
