// GET /logs/?query=…: logs of services by journalctl or, for those the journal does not know, from their files.
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { childScope } from '../../lib/abort.ts';
import { isFault, messageOf } from '../../lib/errors.ts';
import { hasOptions, journalArguments, logFilesOf, type NodeLogQuery, type NodeLogs } from '../node-log-query.ts';
import type { Exchange } from '../router.ts';

export async function serveNodeLogs(
  logs: NodeLogs,
  asked: NodeLogQuery,
  { request, response, signal }: Pick<Exchange, 'request' | 'response' | 'signal'>,
): Promise<void> {
  const compressed = request.headers['accept-encoding'] === 'gzip';
  response.setHeader('Content-Type', 'text/plain;charset=UTF-8');
  if (compressed) response.setHeader('Content-Encoding', 'gzip');
  const scope = childScope(signal);
  try {
    const lines = collect(logs, asked, scope.signal);
    if (compressed) await pipeline(lines, createGzip(), response, { signal: scope.signal });
    else await pipeline(lines, response, { signal: scope.signal });
  } finally {
    scope.abort();
    scope.release();
  }
}

/** What cannot be found is said in the text: the answer has begun by then. */
async function* collect(logs: NodeLogs, query: NodeLogQuery, signal: AbortSignal): AsyncGenerator<Buffer> {
  try {
    const inJournal: string[] = [];
    for (const name of query.services) if (await logs.isInJournal(name, signal)) inJournal.push(name);
    const inFiles = query.services.filter((name) => !inJournal.includes(name));
    if (inJournal.length > 0) yield* logs.journal(journalArguments({ ...query, services: inJournal }), signal);
    if (inFiles.length > 0 && hasOptions(query)) {
      const named = inFiles.join(' ');
      yield text(`\noptions present and query resolved to log files for [${named}]\ntry without specifying options\n`);
      return;
    }
    for (const name of inFiles) yield* fromFiles(logs, name, signal);
  } catch (err) {
    if (signal.aborted) throw err;
    yield text(`${messageOf(err)}\n`);
  }
}

const text = (words: string): Buffer => Buffer.from(words);

async function* fromFiles(logs: NodeLogs, service: string, signal: AbortSignal): AsyncGenerator<Buffer> {
  for (const path of logFilesOf(service)) {
    try {
      yield* await logs.file(path, signal);
      return;
    } catch (err) {
      if (!isFault(err, 'notFound')) throw err;
    }
  }
  yield text(`\nlog not found for ${service}\n`);
}
