// `kubelet-dev top | why | events | pulls | doctor | support-bundle`: the node's own command line (`kubelet node`), told
// where this cluster's kubelet is.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { pathsBelow, realDirectory } from './paths.ts';
import { askedPod, unplaced } from './unplaced.ts';

const KUBELET = join(import.meta.dirname, '..', '..', '..', 'bin', 'kubelet');
const VERBS = ['top', 'why', 'events', 'pulls', 'doctor', 'support-bundle'];
const INTERRUPTED = 130;
const WRONG = 1;

export const isNodeVerb = (verb: string): boolean => VERBS.includes(verb);

const directoryOf = (rest: readonly string[], directory: string): string =>
  realDirectory(rest.findLast((arg) => arg.startsWith('--dir='))?.slice('--dir='.length) ?? directory);

/** What is given to `kubelet node`. */
export function nodeToolArguments(verb: string, rest: readonly string[], directory: string): readonly string[] {
  const { kubeletRoot, containerdSocket } = pathsBelow(directoryOf(rest, directory));
  const runtime = ['doctor', 'support-bundle'].includes(verb) ? [`--runtime-endpoint=unix://${containerdSocket}`] : [];
  return ['node', verb, ...rest.filter((arg) => !arg.startsWith('--dir=')), `--root-dir=${kubeletRoot}`, ...runtime];
}

/** Its exit code. The terminal is its own; an interrupt reaches it directly. */
export async function nodeTool(verb: string, rest: readonly string[], directory: string): Promise<number> {
  const asked = askedPod(rest);
  const inWords = verb === 'why' && !rest.some((arg) => arg.startsWith('-o') || arg.startsWith('--output'));
  const text = inWords ? await unplaced(pathsBelow(directoryOf(rest, directory)), asked) : '';
  if (text !== '' && asked !== undefined) {
    process.stdout.write(text);
    return WRONG;
  }
  const child = spawn(KUBELET, nodeToolArguments(verb, rest, directory), { stdio: 'inherit' });
  process.on('SIGINT', () => undefined);
  const [code] = (await once(child, 'exit')) as [number | null];
  process.stdout.write(text);
  return text !== '' && code === 0 ? WRONG : (code ?? INTERRUPTED);
}
