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
  const href = location.replaceAll('&', '&amp;').replaceAll('"', '&#34;').replaceAll('<', '&lt;');
  reply(response, 307, `<a href="${href}">Temporary Redirect</a>.\n\n`, {
    contentType: 'text/html; charset=utf-8',
    headers: { Location: location },
  });
}

export const json = (response: ServerResponse, value: unknown, options: { readonly newline?: boolean } = {}): void =>
  reply(response, 200, `${JSON.stringify(value)}${options.newline === true ? '\n' : ''}`, {
    contentType: 'application/json',
  });
