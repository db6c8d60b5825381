// What child processes see of this process's environment, and of its input: nothing. Tools get what they need to be found and to speak plainly;
// plugins of the administrator's get the rest as well, as upstream, but never what is between systemd and this process.
import type { Writable } from 'node:stream';

const TOOL_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The way to tell systemd things in our name, file descriptors handed to us, settings of our own runtime. */
const OURS = /^(NOTIFY_SOCKET|WATCHDOG_.*|LISTEN_.*|FDSTORE|MAINPID|NODE_OPTIONS|NODE_EXTRA_CA_CERTS|UV_.*)$/;

/** For programs of the system. `also`: names of variables that this one needs. */
export function toolEnvironment(
  also: readonly string[] = [],
  own: NodeJS.ProcessEnv = process.env,
): Record<string, string> {
  const env: Record<string, string> = { PATH: own['PATH'] ?? TOOL_PATH, LC_ALL: 'C' };
  for (const name of also) if (own[name] !== undefined) env[name] = own[name];
  return env;
}

/** For credential plugins, which are configured through their environment. */
export const pluginEnvironment = (own: NodeJS.ProcessEnv = process.env): Record<string, string> =>
  Object.fromEntries(
    Object.entries(own).filter((entry): entry is [string, string] => entry[1] !== undefined && !OURS.test(entry[0])),
  );

/** For a child with a pipe as its input: one that reads it finds the end at once, as of /dev/null. */
export function endInput({ stdin }: { readonly stdin: Writable | null }): void {
  stdin?.on('error', () => undefined); // it has ended by itself
  stdin?.end();
}
