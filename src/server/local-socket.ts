// A gRPC server on a unix socket for readers on this node. The node does without it while the socket cannot be bound (a full or
// read-only disk, a directory of that name); binding is tried again until it succeeds.
import { chmod, mkdir, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { aborted } from '../lib/abort.ts';
import { GrpcServer } from '../lib/grpc/server.ts';
import { retryUntilDone, type RetryDeps } from '../lib/retry.ts';

const DIRECTORY_MODE = 0o750;

export type LocalSocketOptions = {
  readonly path: string;
  /** Mode of the socket; the umask decides where it is absent. */
  readonly mode?: number;
  readonly register: (server: GrpcServer) => void;
};

export async function serveLocalSocket(
  deps: RetryDeps,
  options: LocalSocketOptions,
  signal: AbortSignal,
): Promise<void> {
  const { path } = options;
  const message = 'local API is not served, trying again';
  const server = await retryUntilDone(deps, { message, path }, () => bind(options), signal);
  if (server === undefined) return;
  await aborted(signal);
  await server.close();
  await rm(path, { force: true });
}

async function bind({ path, mode, register }: LocalSocketOptions): Promise<GrpcServer> {
  const server = new GrpcServer();
  register(server);
  await mkdir(dirname(path), { recursive: true, mode: DIRECTORY_MODE });
  await rm(path, { force: true });
  await server.listen(path);
  if (mode === undefined) return server;
  try {
    await chmod(path, mode);
  } catch (err) {
    await server.close();
    throw err;
  }
  return server;
}
