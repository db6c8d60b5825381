// Answers in the forms upstream gives them: clients and tests compare headers and bodies to the byte.
import type { ServerResponse } from 'node:http';

const TEXT = 'text/plain; charset=utf-8';

export type ReplyOptions = {
  readonly nosniff?: boolean;
  readonly contentType?: string;
  readonly headers?: Readonly<Record<string, string>>;
};

export function reply(response: ServerResponse, status: number, body: string, options: ReplyOptions = {}): void {
  if (response.headersSent) {
    response.end();
    return;
  }
  response.statusCode = status;
  response.setHeader('Content-Type', options.contentType ?? TEXT);
  if (options.nosniff === true) response.setHeader('X-Content-Type-Options', 'nosniff');
  for (const [name, value] of Object.entries(options.headers ?? {})) response.setHeader(name, value);
  response.setHeader('Content-Length', Buffer.byteLength(body));
  response.end(body);
}

export const pageNotFound = (response: ServerResponse): void =>
  reply(response, 404, '404 page not found\n', { nosniff: true });

export function redirect(response: ServerResponse, location: string): void {
  // Who does not read is told no more than where.
  if (response.req.method !== 'GET' && response.req.method !== 'HEAD') return elsewhere(response, 307, location);
  const href = location.replaceAll('&', '&amp;').replaceAll('"', '&#34;').replaceAll('<', '&lt;');
  reply(response, 307, `<a href="${href}">Temporary Redirect</a>.\n\n`, {
    contentType: 'text/html; charset=utf-8',
    headers: { Location: location },
  });
}

/** To another name of the same thing, relative to the one that was asked for. */
export const moved = (response: ServerResponse, location: string): void => elsewhere(response, 301, location);

function elsewhere(response: ServerResponse, status: number, location: string): void {
  response.statusCode = status;
  response.setHeader('Location', Buffer.from(location).toString('latin1'));
  response.setHeader('Content-Length', 0);
  response.end();
}

export const json = (response: ServerResponse, value: unknown, options: { readonly newline?: boolean } = {}): void =>
  reply(response, 200, `${JSON.stringify(value)}${options.newline === true ? '\n' : ''}`, {
    contentType: 'application/json',
  });
