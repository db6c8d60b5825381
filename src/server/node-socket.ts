// The socket that the command line of this machine uses: what the main port shows, read-only, for root alone. The node does
// without a socket that cannot be opened; opening is tried again until it succeeds.
import { join } from 'node:path';
import { retryUntilDone, type RetryDeps } from '../lib/retry.ts';
import type { Runnable } from '../lib/supervise.ts';
import { Listener } from './listener.ts';
import type { Endpoint } from './router.ts';

const socketBelow = (rootDir: string): string => join(rootDir, 'node', 'kubelet.sock');

export const nodeSocket = (endpoint: Endpoint, { clock, log }: RetryDeps, rootDir: string): Runnable => ({
  name: 'node-socket',
  run: async (signal) => {
    const socketPath = socketBelow(rootDir);
    const options = { name: 'node-socket', socketPath, address: '', port: 0 };
    const listen = (): Promise<void> => new Listener({ endpoint: readOnly(endpoint), log }, options).run(signal);
    const message = 'the socket of the command line could not be opened, trying again';
    await retryUntilDone({ clock, log }, { message, path: socketPath }, listen, signal);
  },
});

/** What can be read and changes nothing: no exec, no settings, no profiles that cost something. */
export const readOnly = ({ roots, routes }: Endpoint): Endpoint => ({
  roots,
  routes: routes
    .filter((r) => r.upgrades !== true && (r.methods === undefined || r.methods.includes('GET')))
    .map((r) => ({ ...r, methods: ['GET'] })),
});
