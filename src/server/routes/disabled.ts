// What stands in the place of endpoints that are switched off: the path exists, the answer is no.
import { reply } from '../replies.ts';
import type { Endpoint } from '../router.ts';

const DEBUG_ROOTS = ['run', 'exec', 'attach', 'portForward', 'containerLogs', 'runningpods', 'debug/pprof', 'logs'];

/** With enableDebuggingHandlers=false, and always on the read-only port. */
export const debuggingDisabled: Endpoint = {
  roots: DEBUG_ROOTS.map((name) => ({ prefix: `/${name}`, slashOnly: true })),
  routes: DEBUG_ROOTS.map((name) => ({
    path: `/${name}/{rest...}`,
    handle: ({ response }) => reply(response, 405, 'Debug endpoints are disabled.\n', { nosniff: true }),
  })),
};
