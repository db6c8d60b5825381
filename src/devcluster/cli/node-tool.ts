// `kubelet-dev top | why | events | pulls | doctor | support-bundle`: the node's own command line (`kubelet node`), told
// where this cluster's kubelet is.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathsBelow } from './paths.ts';

const KUBELET = join(import.meta.dirname, '..', '..', '..', 'bin', 'kubelet');
const VERBS = ['top', 'why', 'events', 'pulls', 'doctor', 'support-bundle'];
const INTERRUPTED = 130;

export const isNodeVerb = (verb: string): boolean => VERBS.includes(verb);

/** What is given to `kubelet node`. */
export function nodeToolArguments(verb: string, rest: readonly string[], directory: string): readonly string[] {
  const chosen = rest.findLast((arg) => arg.startsWith('--dir='))?.slice('--dir='.length) ?? directory;
  const { kubeletRoot, containerdSocket } = pathsBelow(chosen);
  const runtime = ['doctor', 'support-bundle'].includes(verb) ? [`--runtime-endpoint=unix://${containerdSocket}`] : [];
  return ['node', verb, ...rest.filter((arg) => !arg.startsWith('--dir=')), `--root-dir=${kubeletRoot}`, ...runtime];
}

/** Its exit code. The terminal is its own; an interrupt reaches it directly. */
export async function nodeTool(verb: string, rest: readonly string[], directory: string): Promise<number> {
  const child = spawn(KUBELET, nodeToolArguments(verb, rest, directory), { stdio: 'inherit' });
  process.on('SIGINT', () => undefined);
  const [code] = (await once(child, 'exit')) as [number | null];
  return code ?? INTERRUPTED;
}
