// The command's own look at its API server.
import { readFile } from 'node:fs/promises';
import { Agent, request } from 'node:https';
import { parse } from 'yaml';
import { KubeletError } from '../../lib/errors.ts';
import type { Json } from '../api/objects.ts';
import type { Paths } from './paths.ts';

type Config = {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { 'client-certificate-data': string; 'client-key-data': string } }[];
};

const TIMEOUT_MS = 2000;
const decoded = (text: string): string => Buffer.from(text, 'base64').toString();

export type Answer = { readonly status: number; readonly body: Json };

export async function callApi(paths: Paths, method: string, path: string, body?: unknown): Promise<Answer> {
  const config = parse(await readFile(paths.admin, 'utf8')) as Config;
  const cluster = config.clusters[0]?.cluster;
  const user = config.users[0]?.user;
  if (cluster === undefined || user === undefined) throw new KubeletError('invalid', `${paths.admin} is incomplete`);
  const agent = new Agent({
    ca: decoded(cluster['certificate-authority-data']),
    cert: decoded(user['client-certificate-data']),
    key: decoded(user['client-key-data']),
  });
  const payload = body === undefined ? undefined : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = payload === undefined ? {} : { 'content-type': 'application/json' };
    const outgoing = request(
      `${cluster.server}${path}`,
      { method, agent, headers, timeout: TIMEOUT_MS },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.once('error', reject);
        response.once('end', () => {
          agent.destroy();
          const text = Buffer.concat(chunks).toString();
          const isJson = (response.headers['content-type'] ?? '').startsWith('application/json');
          resolve({ status: response.statusCode ?? 0, body: isJson ? (JSON.parse(text) as Json) : {} });
        });
      },
    );
    outgoing.once('timeout', () => outgoing.destroy(new Error('no answer')));
    outgoing.once('error', reject);
    outgoing.end(payload);
  });
}

/** Whether it answers, and has handed out the node's credentials. */
export async function apiIsReady(paths: Paths): Promise<boolean> {
  try {
    await readFile(paths.nodeKubeconfig);
    return (await callApi(paths, 'GET', '/readyz')).status === 200;
  } catch {
    // Not up yet, which is all that is asked.
    return false;
  }
}
