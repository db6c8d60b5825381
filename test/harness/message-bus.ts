// A message bus of its own for a test: a real dbus-daemon that can be frozen and killed, and services on it.
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { descriptorTransport } from '../../src/host/descriptor-transport.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { socketPaths } from '../../src/lib/dbus/address.ts';
import { Connection, DBUS, type ConnectionOptions } from '../../src/lib/dbus/connection.ts';
import { removeFolder, temporaryFolder } from './temporary-folder.ts';

const DAEMON = '/usr/bin/dbus-daemon';
export const noMessageBus = existsSync(DAEMON) ? false : 'dbus-daemon is not installed';
const WAIT_MS = 30_000;

const configOf = (
  socket: string,
): string => `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=${socket}</listen>
  <auth>EXTERNAL</auth>
  <policy context="default">
    <allow user="*"/>
    <allow own="*"/>
    <allow send_destination="*"/>
    <allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/>
    <allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/>
    <allow receive_type="method_return"/>
    <allow receive_type="error"/>
    <allow receive_type="signal"/>
  </policy>
</busconfig>
`;

export class MessageBus {
  readonly dir = temporaryFolder('kts-bus-');
  readonly address = `unix:path=${join(this.dir, 'bus')}`;
  readonly #connections: Connection[] = [];
  #daemon: ChildProcess | undefined;

  async start(): Promise<this> {
    const config = join(this.dir, 'bus.conf');
    writeFileSync(config, configOf(join(this.dir, 'bus')));
    rmSync(join(this.dir, 'bus'), { force: true });
    const daemon = spawn(DAEMON, [`--config-file=${config}`, '--nofork', '--nopidfile', '--print-address=1'], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#daemon = daemon;
    await new Promise<void>((resolve, reject) => {
      daemon.stdout.once('data', () => resolve());
      daemon.once('error', reject);
      daemon.once('exit', (code) => reject(new Error(`dbus-daemon ended with ${code}`)));
    });
    return this;
  }

  /** Takes a name and answers what is asked of it. */
  async serve(name: string, serve: NonNullable<ConnectionOptions['serve']>): Promise<Connection> {
    const { signal } = new AbortController();
    const [path = ''] = socketPaths(this.address);
    const transport = await descriptorTransport(systemClock)(path, signal);
    const connection = new Connection(systemClock, transport, { uid: process.getuid?.() ?? 0, serve });
    await connection.open(signal);
    await connection.call({ ...DBUS, member: 'RequestName', signature: 'su', body: [name, 4] }, WAIT_MS, signal);
    this.#connections.push(connection);
    return connection;
  }

  freeze(): void {
    this.#daemon?.kill('SIGSTOP');
  }

  thaw(): void {
    this.#daemon?.kill('SIGCONT');
  }

  async kill(): Promise<void> {
    const daemon = this.#daemon;
    if (daemon === undefined || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const ended = new Promise((resolve) => daemon.once('exit', resolve));
    daemon.kill('SIGKILL');
    await ended;
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.close();
    await this.kill();
    removeFolder(this.dir);
  }
}
