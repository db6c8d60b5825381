// Addresses of a bus, as in DBUS_SYSTEM_BUS_ADDRESS: which unix sockets to try, in order.
import { KubeletError } from '../errors.ts';

export const SYSTEM_BUS_ADDRESS = 'unix:path=/run/dbus/system_bus_socket';

/** Paths to connect to; one that begins with NUL names an abstract socket. Throws `invalid` where none is usable. */
export function socketPaths(address: string): readonly string[] {
  const paths = address.split(';').flatMap((one) => {
    const [transport, rest] = [one.slice(0, one.indexOf(':')), one.slice(one.indexOf(':') + 1)];
    if (transport !== 'unix') return [];
    const pairs = new Map(rest.split(',').map((pair) => split(pair)));
    const [path, abstract] = [pairs.get('path'), pairs.get('abstract')];
    return path !== undefined ? [path] : abstract !== undefined ? [`\0${abstract}`] : [];
  });
  if (paths.length === 0)
    throw new KubeletError('invalid', `D-Bus address ${JSON.stringify(address)} names no unix socket`);
  return paths;
}

function split(pair: string): [string, string] {
  const at = pair.indexOf('=');
  return [pair.slice(0, Math.max(at, 0)), unescape(pair.slice(at + 1))];
}

/** `%2f` and the like. */
const unescape = (text: string): string => {
  const bytes = Buffer.from(text).toString('latin1');
  return Buffer.from(
    bytes.replace(/%([0-9A-Fa-f]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString();
};
