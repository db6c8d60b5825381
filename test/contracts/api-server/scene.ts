// What every part of the contract works in: a server, an administrator, a namespace of its own.
import type { ApiClient, Json } from './client.ts';
import type { TestServer } from './servers.ts';

export type Scene = { server: TestServer; api: ApiClient; ns: string; path: string };

export const podBody = (name: string, more: Json = {}, meta: Json = {}): Json => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...meta },
  spec: { containers: [{ name: 'web', image: 'localhost/busybox:1' }], ...more },
});
