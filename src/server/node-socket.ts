// The socket that the command line of this machine uses: what the main port shows, read-only, for root alone. A socket
// that cannot be opened costs the node nothing else.
import { join } from 'node:path';
import { aborted } from '../lib/abort.ts';
import { messageOf } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Listener } from './listener.ts';
import type { Endpoint } from './router.ts';

const socketBelow = (rootDir: string): string => join(rootDir, 'node', 'kubelet.sock');

export const nodeSocket = (endpoint: Endpoint, log: Logger, rootDir: string): Runnable => ({
  name: 'node-socket',
  run: async (signal) => {
    const socketPath = socketBelow(rootDir);
    const options = { name: 'node-socket', socketPath, address: '', port: 0 };
    try {
      await new Listener({ endpoint: readOnly(endpoint), log }, options).run(signal);
    } catch (err) {
      log.warn('the socket of the command line could not be opened', { socketPath, err: messageOf(err) });
      await aborted(signal);
    }
  },
});

/** What can be read and changes nothing: no exec, no settings, no profiles that cost something. */
export const readOnly = ({ roots, routes }: Endpoint): Endpoint => ({
  roots,
  routes: routes
    .filter((r) => r.upgrades !== true && (r.methods === undefined || r.methods.includes('GET')))
    .map((r) => ({ ...r, methods: ['GET'] })),
});
