// The text of --help: every flag, grouped, wrapped to the terminal.
import { printFlag, type FlagDef, type FlagGroup, type FlagType } from './flag-types.ts';
import { FLAGS } from './flags.ts';

const TITLES: readonly (readonly [FlagGroup, string])[] = [
  ['Kubelet', 'Node and files'],
  ['Configuration', 'Configuration (better set in the --config file)'],
  ['Logging', 'Logging'],
  ['cAdvisor', 'Statistics'],
  ['Own', 'Only in kubelet-ts'],
  ['Misc', 'Other'],
];

const INTRO = `The kubelet is the node agent of Kubernetes. It runs the pods that the API server assigns to this machine, or those of static manifests, through a container runtime, and keeps them in the state their specification asks for.`;

/** How the value is called after the flag's name; booleans have none. */
const VALUE_NAMES: Readonly<Partial<Record<FlagType, string>>> = {
  colonMultimap: 'name:value,...',
  labels: 'key=value,...',
  langleMap: 'signal<quantity,...',
  level: 'level',
  mapStringBool: 'Name=true|false,...',
  mapStringString: 'key=value,...',
  mapStringStringNoSplit: 'key=value',
  reservedMemory: 'node:type=quantity,...',
  taints: 'key=value:Effect,...',
  version: '[raw]',
  vmodule: 'pattern=N,...',
};

export function helpText(columns: number): string {
  const width = Math.max(50, Math.min(columns, 120));
  const parts = [
    wrap(INTRO, width, ''),
    '',
    'Usage:',
    '  kubelet [flags]',
    '  kubelet node top|why|events|pulls|doctor|support-bundle',
  ];
  for (const [group, title] of TITLES) {
    parts.push('', `${title}:`, '');
    const flags = FLAGS.filter((def) => def.group === group).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const def of flags) parts.push(heading(def), wrap(sentence(def), width, '        '));
  }
  return `${parts.join('\n')}\n`;
}

function heading(def: FlagDef): string {
  const short = def.shorthand === undefined ? '    ' : `-${def.shorthand}, `;
  const value = def.type === 'bool' ? '' : ` ${VALUE_NAMES[def.type] ?? def.type}`;
  return `  ${short}--${def.name}${value}`;
}

function sentence(def: FlagDef): string {
  const shown = printFlag(def.type, def.default);
  const empty = shown === '' || shown === '[]' || shown === 'false' || shown === '0' || shown === '0s';
  const quoted = def.type === 'string' ? JSON.stringify(shown) : shown;
  const fallback = empty || def.type === 'version' ? '' : ` (default ${quoted})`;
  return `${def.help}${fallback}${def.deprecated === undefined ? '' : ` (deprecated: ${def.deprecated})`}`;
}

function wrap(text: string, width: number, indent: string): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.split(/\s+/)) {
    if (line.length > indent.length && line.length + 1 + word.length > width) {
      lines.push(line);
      line = indent;
    }
    line += line.length === indent.length ? word : ` ${word}`;
  }
  lines.push(line);
  return lines.join('\n');
}
