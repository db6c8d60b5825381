// The first kubectl of PATH, spoken to a node through its API server, in the namespace of the server's tests.
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { NAMESPACE, type ServerNode } from '../contracts/server/server-node.ts';
import { HANG_MS } from '../harness/until.ts';

export const KUBECTL = (process.env['PATH'] ?? '')
  .split(':')
  .map((d) => join(d, 'kubectl'))
  .find((p) => existsSync(p));

const MAX_OUTPUT_BYTES = 64 * 1024 * 1024;

export type KubectlResult = { readonly code: number; readonly out: string; readonly err: string };

export class KubectlClient {
  readonly flags: readonly string[];

  constructor({ node }: ServerNode) {
    this.flags = ['--kubeconfig', node.api.adminKubeconfigPath, '-n', NAMESPACE];
  }

  run(args: readonly string[], input = ''): Promise<KubectlResult> {
    const options = { maxBuffer: MAX_OUTPUT_BYTES, timeout: HANG_MS };
    return new Promise((resolve) => {
      const child = execFile(KUBECTL ?? '', [...this.flags, ...args], options, (failure, out, err) =>
        resolve({ code: failure === null ? 0 : Number(failure.code), out, err }),
      );
      child.stdin?.end(input);
    });
  }

  start(...args: readonly string[]): ChildProcess {
    return spawn(KUBECTL ?? '', [...this.flags, ...args]);
  }

  /** Starts `port-forward` and returns its local port. */
  async forward(pod: string, port: number): Promise<{ readonly child: ChildProcess; readonly port: number }> {
    const child = this.start('port-forward', `pod/${pod}`, `:${port}`);
    const local = await new Promise<number>((resolve, reject) => {
      child.once('exit', (code) => reject(new Error(`port-forward ended with ${code}`)));
      child.stdout?.on('data', (chunk: Buffer) => {
        const found = /127\.0\.0\.1:(\d+)/.exec(chunk.toString());
        if (found !== null) resolve(Number(found[1]));
      });
    });
    return { child, port: local };
  }
}
