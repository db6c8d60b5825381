// What stands in the place of endpoints that are switched off: the path exists, the answer is no.
import { reply } from '../replies.ts';
import { joined, type Endpoint } from '../router.ts';

/** Whatever is asked for below `prefix`, by any method. */
export const disabledBelow = (prefix: string, message: string): Endpoint => ({
  roots: [{ prefix, slashOnly: true }],
  routes: [
    { path: `${prefix}/{rest...}`, handle: ({ response }) => reply(response, 405, `${message}\n`, { nosniff: true }) },
  ],
});

const DEBUG_ROOTS = ['run', 'exec', 'attach', 'portForward', 'containerLogs', 'runningpods', 'debug/pprof', 'logs'];

/** With enableDebuggingHandlers=false, and always on the read-only port. */
export const debuggingDisabled: Endpoint = joined(
  DEBUG_ROOTS.map((name) => disabledBelow(`/${name}`, 'Debug endpoints are disabled.')),
);
