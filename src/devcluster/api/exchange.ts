// One request and its answer: bodies in, JSON and Status documents out.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { parse } from 'yaml';
import { messageOf } from '../../lib/errors.ts';
import { ApiError, badRequest, internal, unsupportedMediaType } from './api-error.ts';
import { draftOf, isJson, type Json } from './objects.ts';
import { decodeProtobuf, PROTOBUF_TYPE } from './protobuf-body.ts';
import type { RequestInfo } from './request-info.ts';
import type { RequestContext, User } from './strategy.ts';

const MAX_BODY_BYTES = 3 * 1024 * 1024;

export type Exchange = {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly query: URLSearchParams;
  readonly info: RequestInfo;
  readonly user: User;
};

export const mediaType = (request: IncomingMessage): string =>
  (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? '';

export function readBody(request: IncomingMessage): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= MAX_BODY_BYTES) return void chunks.push(chunk);
      request.pause();
      reject(new ApiError(413, 'RequestEntityTooLarge', `Request entity too large: limit is ${MAX_BODY_BYTES}`));
    });
    const cutOff = (): void => reject(badRequest('the body of the request ends early'));
    request.once('end', () => {
      request.off('close', cutOff);
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks));
    });
    request.once('error', reject);
    request.once('close', cutOff);
  });
}

export function parseDocument(text: string, type: string): unknown {
  try {
    const document =
      type === 'application/yaml' || type === 'application/apply-patch+yaml'
        ? (parse(text, { schema: 'yaml-1.1', merge: true }) as unknown)
        : (JSON.parse(text) as unknown);
    // A copy has no fields called `__proto__`. An escape may spell the name, too.
    return text.includes('__proto__') || text.includes('\\') ? draftOf(document) : document;
  } catch (err) {
    throw badRequest(`couldn't parse the body of the request: ${messageOf(err)}`);
  }
}

const OBJECT_TYPES = new Set(['', 'application/json', 'application/yaml']);

/** The body as one JSON object; an empty body is `{}`. */
export async function readObject(request: IncomingMessage): Promise<Json> {
  const body = await readBody(request);
  if (body.length === 0) return {};
  const type = mediaType(request);
  if (type === PROTOBUF_TYPE) return decodeProtobuf(body);
  if (!OBJECT_TYPES.has(type))
    throw unsupportedMediaType('application/json, application/yaml, application/vnd.kubernetes.protobuf');
  const parsed = parseDocument(body.toString('utf8'), type);
  if (!isJson(parsed)) throw badRequest('the body of the request is not an object');
  return parsed;
}

export function contextOf(exchange: Exchange): RequestContext {
  const dryRun = exchange.query.getAll('dryRun').filter((v) => v !== '');
  if (dryRun.some((v) => v !== 'All'))
    throw badRequest(`invalid: dryRun: Unsupported value: "${dryRun.join(',')}": supported values: "All"`);
  const fieldValidation = exchange.query.get('fieldValidation') || 'Warn';
  if (fieldValidation !== 'Ignore' && fieldValidation !== 'Warn' && fieldValidation !== 'Strict')
    throw badRequest(
      `fieldValidation: Unsupported value: "${fieldValidation}": supported values: "Ignore", "Strict", "Warn"`,
    );
  const fieldManager = exchange.query.get('fieldManager') || managerOf(exchange.request);
  return { user: exchange.user, dryRun: dryRun.length > 0, fieldValidation, warnings: [], fieldManager };
}

/** Clients that do not say who they are are known by the program they name. */
const managerOf = (request: IncomingMessage): string => (request.headers['user-agent'] ?? '').split('/')[0] ?? '';

export function sendText(
  response: ServerResponse,
  code: number,
  text: string,
  type = 'application/json',
  warnings: readonly string[] = [],
): void {
  if (response.headersSent) return;
  const bytes = Buffer.from(text);
  response.statusCode = code;
  response.setHeader('Content-Type', type);
  response.setHeader('Cache-Control', 'no-cache, private');
  response.setHeader('Content-Length', bytes.length);
  if (warnings.length > 0)
    response.setHeader(
      'Warning',
      warnings.map((w) => `299 - ${JSON.stringify(w)}`),
    );
  response.end(bytes);
}

export const sendJson = (response: ServerResponse, code: number, value: unknown): void =>
  sendText(response, code, JSON.stringify(value));

export function sendError(response: ServerResponse, err: unknown): ApiError {
  const error = err instanceof ApiError ? err : internal(messageOf(err));
  if (error.details?.retryAfterSeconds !== undefined && !response.headersSent)
    response.setHeader('Retry-After', error.details.retryAfterSeconds);
  if (response.headersSent) response.destroy();
  else sendJson(response, error.code, error.status());
  return error;
}
