// The man page and the completions, from the table of flags.
import { readFlag, type FlagDef } from '../../src/config/flag-types.ts';
import { FLAGS } from '../../src/config/flags.ts';
import { KUBERNETES_VERSION } from '../../src/lib/version.ts';

const sorted = (): FlagDef[] => [...FLAGS].sort((a, b) => (a.name < b.name ? -1 : 1));
const takesValue = (def: FlagDef): boolean => def.type !== 'bool' && def.type !== 'version';
const roff = (text: string): string =>
  text
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/^([.'])/gm, '\\&$1');

export function manPage(version: string, date: string): string {
  const flags = sorted().map(
    (def) =>
      `.TP\n.B \\-\\-${roff(def.name)}${takesValue(def) ? ` \\fI${roff(def.type)}\\fR` : ''}\n${roff(def.help)}${def.deprecated === undefined ? '' : ` Deprecated: ${roff(def.deprecated)}`}`,
  );
  return `.TH KUBELET\\-TS 8 "${date}" "kubelet\\-ts ${version}" "System Administration"
.SH NAME
kubelet\\-ts \\- the Kubernetes node agent
.SH SYNOPSIS
.B kubelet\\-ts
.RI [ flags ]
.SH DESCRIPTION
The kubelet runs the pods that the API server assigns to this machine, or those of static manifests, through a container
runtime, and keeps them in the state their specification asks for. This one follows Kubernetes ${roff(KUBERNETES_VERSION)} and takes
the same flags, files and directories as the Go kubelet: a node can change hands between the two while its pods run.
.PP
As a service it is
.IR kubelet.service ;
the package's drop\\-in
.I 20\\-kubelet\\-ts.conf
says so, and uses the variables of kubeadm's
.IR 10\\-kubeadm.conf .
.SH OPTIONS
${flags.join('\n')}
.SH FILES
.TP
.I /var/lib/kubelet/config.yaml
The configuration that kubeadm writes.
.TP
.I /var/lib/kubelet/kubeadm\\-flags.env
Flags that kubeadm adds.
.TP
.I /etc/default/kubelet
KUBELET_EXTRA_ARGS, for the administrator.
.TP
.I /var/cache/kubelet\\-ts
Compiled code; can be removed at any time.
.SH EXIT STATUS
0 after an ordered stop, 1 after a failure or for input that was refused.
.SH SEE ALSO
.BR kubeadm (1),
.BR systemctl (1)
`;
}

const FILES = [
  'config',
  'kubeconfig',
  'bootstrap-kubeconfig',
  'tls-cert-file',
  'tls-private-key-file',
  'client-ca-file',
];
const DIRECTORIES = ['root-dir', 'cert-dir', 'config-dir', 'pod-manifest-path', 'volume-plugin-dir'];

/** Whether a word is accepted, so that no completion offers what the parser would refuse. */
const accepted = (def: FlagDef, word: string): boolean => {
  try {
    readFlag(def.type, word, undefined);
    return true;
  } catch {
    return false;
  }
};
const wordsOf = (def: FlagDef): string[] =>
  def.type === 'bool' ? ['true', 'false'].filter((word) => accepted(def, word)) : def.type === 'version' ? ['raw'] : [];

export function bashCompletion(): string {
  const names = sorted().map((def) => `--${def.name}${takesValue(def) ? '=' : ''}`);
  const options = (list: readonly string[]): string => list.map((name) => `--${name}`).join('|');
  return `# bash completion for kubelet-ts
_kubelet_ts() {
    local cur prev words cword
    _init_completion -s || return
    case $prev in
        ${options(FILES)}) _filedir; return ;;
        ${options(DIRECTORIES)}) _filedir -d; return ;;
        --version) COMPREPLY=($(compgen -W 'raw' -- "$cur")); return ;;
    esac
    COMPREPLY=($(compgen -W '${names.join(' ')}' -- "$cur"))
    [[ \${COMPREPLY-} == *= ]] && compopt -o nospace
} && complete -F _kubelet_ts kubelet-ts
`;
}

export function zshCompletion(): string {
  const quote = (text: string): string => text.replaceAll("'", "'\\''").replace(/[[\]:]/g, '\\$&');
  const lines = sorted().map((def) => {
    const [first = ''] = def.help.split('. ');
    const action = FILES.includes(def.name)
      ? '_files'
      : DIRECTORIES.includes(def.name)
        ? '_files -/'
        : wordsAction(def);
    return `  '--${def.name}${takesValue(def) ? '=' : ''}[${quote(first)}]${takesValue(def) ? `:${def.type}:${action}` : ''}'`;
  });
  return `#compdef kubelet-ts\n_arguments \\\n${lines.join(' \\\n')}\n`;
}

const wordsAction = (def: FlagDef): string => (wordsOf(def).length > 0 ? `(${wordsOf(def).join(' ')})` : '');

export function fishCompletion(): string {
  const lines = sorted().map((def) => {
    const [first = ''] = def.help.split('. ');
    const files = FILES.includes(def.name)
      ? ' -F'
      : DIRECTORIES.includes(def.name)
        ? " -a '(__fish_complete_directories)'"
        : '';
    const words = wordsOf(def).length > 0 && takesValue(def) ? ` -a '${wordsOf(def).join(' ')}'` : '';
    const text = first.replaceAll('\\', '\\\\').replaceAll("'", "\\'");
    return `complete -c kubelet-ts -l ${def.name}${takesValue(def) ? ' -r' : ''}${files}${words} -d '${text}'`;
  });
  return `complete -c kubelet-ts -f\n${lines.join('\n')}\n`;
}
