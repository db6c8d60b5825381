// node:os of the simulated machine.
import real from 'node:os';

export const { constants, EOL } = real;
export const hostname = (): string => 'n1';
export const arch = (): string => 'x64';
export const platform = (): string => 'linux';
export const homedir = (): string => '/root';
export const tmpdir = (): string => '/tmp';
export const totalmem = (): number => 64 * 2 ** 30;
export const freemem = (): number => 32 * 2 ** 30;
export const availableParallelism = (): number => 16;
export const cpus = (): unknown[] => Array.from({ length: 16 }, () => ({ model: 'simulated' }));
export const networkInterfaces = (): Record<string, unknown[]> => ({
  eth0: [{ address: '10.0.0.1', family: 'IPv4', internal: false, netmask: '255.255.255.0', cidr: '10.0.0.1/24' }],
});
export const setPriority = (): void => undefined;
export const release = (): string => '6.12.0';
export const uptime = (): number => 1000;
export const userInfo = (): { uid: number; gid: number; username: string } => ({ uid: 0, gid: 0, username: 'root' });
