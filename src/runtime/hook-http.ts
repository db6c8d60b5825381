// The HTTP client of lifecycle hooks: one request, no keep-alive, certificates not verified, redirects not followed.
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import type { HookHttp } from './needs.ts';

const MAX_BODY = 10 * 1024;

export const hookHttp: HookHttp = {
  get: (url, headers, signal) =>
    new Promise<string>((resolve, reject) => {
      const options = { headers, signal, agent: false, method: 'GET' };
      const request =
        url.protocol === 'https:'
          ? httpsRequest(url, { ...options, rejectUnauthorized: false })
          : httpRequest(url, options);
      request.on('error', reject);
      request.on('response', (response) => {
        let body = '';
        response.setEncoding('utf8');
        response.on('data', (chunk: string) => {
          body += chunk;
          if (body.length >= MAX_BODY) response.destroy();
        });
        response.on('close', () => resolve(body.slice(0, MAX_BODY)));
        response.on('error', () => resolve(body));
      });
      request.end();
    }),
};
