// The words after `kubelet node`. Pure.
import { join } from 'node:path';

export type NodeCommand = 'top' | 'why' | 'events' | 'pulls' | 'doctor' | 'support-bundle';

export type NodeArguments = {
  readonly command: NodeCommand;
  readonly socket: string;
  readonly rootDir: string;
  readonly output: 'text' | 'json';
  /** Drawn anew until interrupted. */
  readonly watch: boolean | undefined;
  readonly namespace: string | undefined;
  /** A pod, or the file of the bundle. */
  readonly operand: string | undefined;
  readonly runtimeEndpoint: string | undefined;
};

export const NODE_HELP = `Usage: kubelet node <command> [options]

  top                    the node and its pods: state, use, and why a pod is not ready
  why [NAMESPACE/]POD    why one pod is not running, with evidence and what to do; without a pod, of all that are not,
                         and problems in manifests
  events [NAMESPACE/]POD the last events, of one pod or of everything on this node
  pulls                  images being pulled: how far, how fast, how long still
  doctor                 checks this machine and says how to repair what is wrong
  support-bundle [FILE]  writes one archive (.tar.gz) for whoever is to help, without secrets

Options:
  -o, --output=text|json
  -n, --namespace=NAME        of the pod (default: default)
  -w, --watch, --once         draw anew every two seconds (default for top and pulls on a terminal), or once
      --root-dir=DIR          of the kubelet (default /var/lib/kubelet)
      --socket=PATH           of the kubelet (default <root-dir>/node/kubelet.sock)
      --runtime-endpoint=URL  of the container runtime, for doctor

Exit codes: 0 all is well, 1 something is wrong (why: the pod does not run; doctor: something must be repaired),
2 the command line is wrong, 3 no kubelet answers, 4 there is no such pod.
`;

const COMMANDS: readonly NodeCommand[] = ['top', 'why', 'events', 'pulls', 'doctor', 'support-bundle'];
const SHORT: Readonly<Record<string, string>> = { '-o': '--output', '-n': '--namespace', '-w': '--watch' };
const WITH_VALUE = new Set(['--output', '--namespace', '--root-dir', '--socket', '--runtime-endpoint']);
const DEFAULT_ROOT = '/var/lib/kubelet';

/** A text says what is wrong; an empty one that help is wanted. */
export function readArguments(argv: readonly string[]): NodeArguments | string {
  const [command = '', ...rest] = argv;
  if (['', 'help', '--help', '-h'].includes(command)) return '';
  if (!isCommand(command)) return `unknown command ${JSON.stringify(command)}`;
  const values = new Map<string, string>();
  const operands: string[] = [];
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? '';
    if (!word.startsWith('-') || word === '-') {
      operands.push(word);
      continue;
    }
    const equals = word.indexOf('=');
    const given = equals < 0 ? word : word.slice(0, equals);
    const name = SHORT[given] ?? given;
    if (name === '--help' || name === '-h') return '';
    if (WITH_VALUE.has(name)) {
      const value = equals < 0 ? rest[++at] : word.slice(equals + 1);
      if (value === undefined || value === '') return `${name} needs a value`;
      values.set(name, value);
    } else if (['--watch', '--once'].includes(name) && equals < 0) values.set(name, '');
    else return `unknown option ${word}`;
  }
  return argumentsOf(command, operands, values);
}

const isCommand = (word: string): word is NodeCommand => (COMMANDS as readonly string[]).includes(word);

function argumentsOf(
  command: NodeCommand,
  operands: readonly string[],
  values: ReadonlyMap<string, string>,
): NodeArguments | string {
  const output = values.get('--output') ?? 'text';
  if (output !== 'text' && output !== 'json') return `--output is text or json, not ${JSON.stringify(output)}`;
  const allowed = ['why', 'events', 'support-bundle'].includes(command) ? 1 : 0;
  if (operands.length > allowed) return `unexpected argument ${JSON.stringify(operands[allowed])}`;
  const rootDir = values.get('--root-dir') ?? DEFAULT_ROOT;
  return {
    command,
    rootDir,
    socket: values.get('--socket') ?? join(rootDir, 'node', 'kubelet.sock'),
    output,
    watch: values.has('--once') ? false : values.has('--watch') ? true : undefined,
    namespace: values.get('--namespace'),
    operand: operands[0],
    runtimeEndpoint: values.get('--runtime-endpoint'),
  };
}

/** `web` of the default namespace, `shop/web` of its own. */
export function podOf({
  operand,
  namespace,
}: NodeArguments): { readonly namespace: string; readonly name: string } | undefined {
  if (operand === undefined) return undefined;
  const slash = operand.indexOf('/');
  if (slash >= 0) return { namespace: operand.slice(0, slash), name: operand.slice(slash + 1) };
  return { namespace: namespace ?? 'default', name: operand };
}
