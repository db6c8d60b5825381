// GET over the kubelet's socket. Every failure is one line that says what to do.
import { request } from 'node:http';
import { errnoOf, KubeletError } from '../lib/errors.ts';

export type Ask = (path: string, signal: AbortSignal) => Promise<string>;

const ANSWER_MS = 30_000;
const MAX_BYTES = 256 * 1024 * 1024;
/** What has no such form (`/statusz`, `/metrics`) comes as text. */
const ACCEPT = 'application/json, text/plain;q=0.5';

/** Fails with `unavailable` where there is no kubelet, `denied` without the right, `notFound` for what it does not have. */
export const socketClient =
  (socketPath: string): Ask =>
  (path, signal) =>
    new Promise((resolve, reject) => {
      const asked = request({ socketPath, path, signal, timeout: ANSWER_MS, headers: { accept: ACCEPT } });
      asked.on('timeout', () => asked.destroy(new KubeletError('deadline', `the kubelet did not answer ${path}`)));
      asked.on('error', (err) => reject(explained(err, socketPath)));
      asked.on('response', (response) => {
        const parts: Buffer[] = [];
        let size = 0;
        response.on('data', (part: Buffer) => {
          parts.push(part);
          size += part.length;
          if (size > MAX_BYTES) response.destroy(new KubeletError('exhausted', `the answer to ${path} is too large`));
        });
        response.on('error', reject);
        response.on('end', () => {
          const body = Buffer.concat(parts).toString();
          const status = response.statusCode ?? 0;
          if (status === 200) resolve(body);
          else reject(new KubeletError(status === 404 ? 'notFound' : 'internal', body.trim() || `status ${status}`));
        });
      });
      asked.end();
    });

function explained(err: Error, socketPath: string): Error {
  switch (errnoOf(err)) {
    case 'ENOENT':
    case 'ECONNREFUSED':
    case 'ENOTDIR':
      return new KubeletError(
        'unavailable',
        `no kubelet answers at ${socketPath}: is it running? Another place is named by --root-dir or --socket`,
        { cause: err },
      );
    case 'EACCES':
    case 'EPERM':
      return new KubeletError('denied', `${socketPath} is for root alone: use sudo`, { cause: err });
    default:
      return err;
  }
}
