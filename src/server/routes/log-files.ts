// GET /logs/{path}: the files of /var/log, and their listings. With `query`, where allowed, the node's service logs.
import { once } from 'node:events';
import { opendir, type FileHandle } from 'node:fs/promises';
import type { ServerResponse } from 'node:http';
import { extname } from 'node:path';
import { isFault } from '../../lib/errors.ts';
import { openBelow } from '../log-files.ts';
import { missingFile, problemsOf, readNodeLogQuery, type NodeLogs } from '../node-log-query.ts';
import { moved, pageNotFound, reply } from '../replies.ts';
import { searchOf, type Endpoint, type Exchange } from '../router.ts';
import { disabledBelow } from './disabled.ts';
import { serveNodeLogs } from './node-logs.ts';
import { withoutEnd } from '../../lib/text.ts';

export type LogFileDeps = {
  /** `/var/log` */
  readonly root: string;
  /** enableSystemLogHandler */
  readonly enabled: boolean;
  /** Present with enableSystemLogQuery. */
  readonly nodeLogs?: NodeLogs;
};

const CHUNK = 64 * 1024;
const SNIFF = 512;
/** A page that nobody reads to its end need not be made to its end. */
const MAX_LISTED = 20_000;
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.gz': 'application/gzip',
  '.htm': 'text/html; charset=utf-8',
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.xml': 'text/xml; charset=utf-8',
};

export const logFileRoutes = (deps: LogFileDeps): Endpoint =>
  deps.enabled
    ? {
        roots: [{ prefix: '/logs', slashOnly: true }],
        routes: [{ path: '/logs/{path...}', methods: ['GET'], handle: (exchange) => serve(deps, exchange) }],
      }
    : disabledBelow('/logs', 'logs endpoint is disabled.');

async function serve(deps: LogFileDeps, exchange: Exchange): Promise<void> {
  const { params, query, response } = exchange;
  const path = params['path'] ?? '';
  const refuse = (status: number, body: string): void => reply(response, status, body, { nosniff: true });
  if (deps.nodeLogs === undefined) return serveFile(deps, path, exchange);
  const read = readNodeLogQuery(query);
  if (!read.ok) return refuse(400, read.body);
  if (read.query === undefined) return serveFile(deps, path, exchange);
  if (path !== '') return refuse(406, 'path not allowed in query mode\n');
  const problems = problemsOf(read.query);
  if (problems !== undefined) return refuse(406, problems);
  const [file] = read.query.files;
  if (file === undefined) return serveNodeLogs(deps.nodeLogs, read.query, exchange);
  return serveFile(deps, file.replaceAll('\\', '/'), exchange, () => refuse(406, missingFile(deps.root, file)));
}

async function serveFile(
  { root }: LogFileDeps,
  path: string,
  exchange: Exchange,
  missing = (): void => pageNotFound(exchange.response),
): Promise<void> {
  const { request, response } = exchange;
  let file: FileHandle;
  try {
    file = await openBelow(root, withoutEnd(path, '/'));
  } catch (err) {
    if (isFault(err, 'denied')) return reply(response, 403, '403 Forbidden\n', { nosniff: true });
    if (isFault(err, 'notFound')) return missing();
    throw err;
  }
  try {
    const isDirectory = (await file.stat()).isDirectory();
    const slash = path === '' || path.endsWith('/');
    const [last = ''] = path.split('/').slice(slash ? -2 : -1);
    if (isDirectory && !slash) moved(response, `${last}/${searchOf(request)}`);
    else if (!isDirectory && slash) moved(response, `../${last}${searchOf(request)}`);
    else if (isDirectory) await listing(file, response);
    else await content(file, path, exchange);
  } finally {
    await file.close();
  }
}

async function listing(directory: FileHandle, response: ServerResponse): Promise<void> {
  const names: string[] = [];
  for await (const entry of await opendir(`/proc/self/fd/${directory.fd}`))
    if (names.push(entry.isDirectory() ? `${entry.name}/` : entry.name) >= MAX_LISTED) break;
  names.sort((a, b) => (a < b ? -1 : 1));
  const rows = names.map((name) => `<a href="${escapeHtml(linkTo(name))}">${escapeHtml(name)}</a>\n`);
  const head = '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n';
  reply(response, 200, `${head}${rows.join('')}</pre>\n`, {
    contentType: 'text/html; charset=utf-8',
    headers: { 'Last-Modified': (await directory.stat()).mtime.toUTCString() },
  });
}

const escapeHtml = (text: string): string =>
  text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&#34;')
    .replaceAll("'", '&#39;');

/** A name with a colon would otherwise be read as a scheme. */
const linkTo = (name: string): string => {
  const path = name.split('/').map(encodeURIComponent).join('/');
  return name.includes(':') ? `./${path}` : path;
};

async function content(file: FileHandle, path: string, { request, response, signal }: Exchange): Promise<void> {
  const { size, mtime } = await file.stat();
  const range = byteRange(request.headers.range, size);
  response.setHeader('Last-Modified', mtime.toUTCString());
  response.setHeader('Accept-Ranges', 'bytes');
  if (range === 'unsatisfiable') {
    response.setHeader('Content-Range', `bytes */${size}`);
    return reply(response, 416, 'invalid range: failed to overlap\n', { nosniff: true });
  }
  const { from, to } = range ?? { from: 0, to: size };
  response.statusCode = range === undefined ? 200 : 206;
  if (range !== undefined) response.setHeader('Content-Range', `bytes ${from}-${to - 1}/${size}`);
  response.setHeader('Content-Type', TYPES[extname(path)] ?? (await sniffed(file)));
  response.setHeader('Content-Length', to - from);
  // A file that grows meanwhile is sent up to the length that was promised.
  for (let at = from; at < to;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(Math.min(CHUNK, to - at)), 0, undefined, at);
    if (bytesRead === 0) return void response.destroy();
    at += bytesRead;
    if (!response.write(buffer.subarray(0, bytesRead))) await once(response, 'drain', { signal });
  }
  response.end();
}

async function sniffed(file: FileHandle): Promise<string> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(SNIFF), 0, SNIFF, 0);
  const head = buffer.subarray(0, bytesRead);
  const binary = head.some((b) => b < 0x20 && b !== 9 && b !== 10 && b !== 12 && b !== 13 && b !== 27);
  return binary ? 'application/octet-stream' : 'text/plain; charset=utf-8';
}

/** One range, as `tail`-like clients ask for; several are answered with the whole file, and so are all of an empty one. */
export function byteRange(
  header: string | undefined,
  size: number,
): { readonly from: number; readonly to: number } | 'unsatisfiable' | undefined {
  const parts = /^bytes=(\d*)-(\d*)$/.exec(header ?? '');
  if (parts === null || size === 0 || (parts[1] === '' && parts[2] === '')) return undefined;
  const [first, last] = [parts[1] ?? '', parts[2] ?? ''];
  const from = first === '' ? Math.max(0, size - Number(last)) : Number(first);
  const to = first === '' || last === '' ? size : Math.min(size, Number(last) + 1);
  return from >= size || from >= to ? 'unsatisfiable' : { from, to };
}
