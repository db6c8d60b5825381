// The peer in `peer/`, built from the Go packages of the distribution.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, globSync, mkdirSync, readFileSync, renameSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

const GO = '/usr/bin/go';
const GO_PATH = '/usr/share/gocode';
const SOURCES = join(import.meta.dirname, 'peer');
const NEEDED: Readonly<Record<string, string>> = {
  'golang-go': GO,
  'golang-google-grpc-dev': join(GO_PATH, 'src/google.golang.org/grpc'),
};
const missing = Object.keys(NEEDED).filter((name) => !existsSync(NEEDED[name] ?? ''));

/** Why there is no peer; false where there is one. */
export const noGoPeer = missing.length > 0 && `missing: ${missing.join(' ')}`;

/** The program; it is built once for each version of its sources and of Go. */
function goPeer(): string {
  const cache = join(homedir(), '.cache', 'kubelet-ts');
  const hash = createHash('sha256').update(execFileSync(GO, ['version']));
  for (const file of globSync('*.go', { cwd: SOURCES }).sort()) hash.update(readFileSync(join(SOURCES, file)));
  const program = join(cache, `wire-peer-${hash.digest('hex').slice(0, 16)}`);
  if (existsSync(program)) return program;
  mkdirSync(cache, { recursive: true });
  const built = `${program}.${process.pid}`;
  const env = { PATH: '/usr/bin:/bin', GO111MODULE: 'off', GOPATH: GO_PATH, GOCACHE: join(cache, 'go-build') };
  execFileSync(GO, ['build', '-o', built, '.'], { cwd: SOURCES, env });
  renameSync(built, program);
  return program;
}

export function startPeer(...args: readonly string[]): ChildProcess {
  return spawn(goPeer(), args, { stdio: ['pipe', 'pipe', 'inherit'], env: {} });
}

/** A gRPC server that listens. */
export async function startServer(socketPath: string, streams?: number): Promise<ChildProcess> {
  const peer = startPeer('serve', socketPath, ...(streams === undefined ? [] : [String(streams)]));
  const ended = once(peer, 'exit').then(() => Promise.reject(new Error('the peer ended')));
  ended.catch(() => undefined);
  if (peer.stdout !== null) await Promise.race([once(peer.stdout, 'data'), ended]);
  return peer;
}

export async function stopPeer(peer: ChildProcess): Promise<void> {
  if (peer.exitCode !== null || peer.signalCode !== null) return;
  const gone = once(peer, 'exit');
  peer.kill('SIGKILL');
  await gone;
}
