// The command line: every flag in one table, parsed with the rules of pflag. `_` counts as `-` in names; a flag takes its
// value after `=` or as the next argument; a boolean needs none; `--` ends the flags.
import { KubeletError, messageOf } from '../lib/errors.ts';
import { printFlag, readFlag, type FlagDef } from './flag-types.ts';
import { CONFIG_FLAGS, LOGGING_FLAGS } from './flags-configuration.ts';
import { CADVISOR_FLAGS, KUBELET_FLAGS, MISC_FLAGS, OWN_FLAGS } from './flags-kubelet.ts';
import { nearestName } from './nearest.ts';

export const FLAGS: readonly FlagDef[] = [
  ...KUBELET_FLAGS,
  ...CONFIG_FLAGS,
  ...LOGGING_FLAGS,
  ...CADVISOR_FLAGS,
  ...OWN_FLAGS,
  ...MISC_FLAGS,
];

const BY_NAME: ReadonlyMap<string, FlagDef> = new Map(FLAGS.map((def) => [def.name, def]));
const BY_SHORTHAND: ReadonlyMap<string, FlagDef> = new Map(
  FLAGS.flatMap((def) => (def.shorthand === undefined ? [] : [[def.shorthand, def] as const])),
);

/** What was given on the command line, in its in-process form. Flags that were not given are absent. */
export type ParsedFlags = { readonly given: ReadonlyMap<string, unknown>; readonly warnings: readonly string[] };

const fail = (message: string): never => {
  throw new KubeletError('invalid', `failed to parse kubelet flag: ${message}`);
};

const normalise = (name: string): string => name.replaceAll('_', '-');

export function parseFlags(argv: readonly string[]): ParsedFlags {
  const given = new Map<string, unknown>();
  const deprecated = new Set<FlagDef>();
  const set = (def: FlagDef, value: string, written: string): void => {
    try {
      const read = readFlag(def.type, value, given.get(def.name));
      if (read !== undefined) given.set(def.name, read);
    } catch (err) {
      fail(`invalid argument ${shown(def, value)} for ${JSON.stringify(written)} flag: ${messageOf(err)}`);
    }
    if (def.deprecated !== undefined) deprecated.add(def);
  };
  const rest = [...argv];
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === '--') {
      if (rest[0] !== undefined) unknownCommand(rest[0]);
      break;
    }
    if (arg.startsWith('--')) longFlag(arg, rest, set);
    else if (arg.startsWith('-') && arg.length > 1) shortFlags(arg, rest, set);
    else unknownCommand(arg);
    if (given.get('help') === true) break;
  }
  return { given, warnings: [...deprecated].map((def) => `Flag --${def.name} has been deprecated, ${def.deprecated}`) };
}

/** A value of a flag that may hold credentials is not repeated. */
const shown = (def: FlagDef, value: string): string =>
  isSecretFlag(def.name) ? '(value not shown)' : JSON.stringify(value);

const isSecretFlag = (name: string): boolean => /header|password|token-file/.test(name);

type Setter = (def: FlagDef, value: string, written: string) => void;

function longFlag(arg: string, rest: string[], set: Setter): void {
  const eq = arg.indexOf('=');
  const written = eq < 0 ? arg : arg.slice(0, eq);
  const name = normalise(written.slice(2));
  if (name === '' || name.startsWith('-')) fail(`bad flag syntax: ${arg}`);
  const def = BY_NAME.get(name);
  if (def === undefined) return unknownFlag(name);
  if (eq >= 0) return set(def, arg.slice(eq + 1), `--${name}`);
  if (def.type === 'bool' || def.type === 'version') return set(def, 'true', `--${name}`);
  const value = rest.shift();
  if (value === undefined) fail(`flag needs an argument: --${name}`);
  else set(def, value, `--${name}`);
}

function shortFlags(arg: string, rest: string[], set: Setter): void {
  for (let letters = arg.slice(1); letters !== '';) {
    const letter = letters.charAt(0);
    const tail = letters.slice(1);
    const def = BY_SHORTHAND.get(letter);
    if (def === undefined) return fail(`unknown shorthand flag: '${letter}' in ${arg}${longHint(arg)}`);
    const written = `-${letter}, --${def.name}`;
    if (tail.startsWith('=')) return set(def, tail.slice(1), written);
    if (def.type === 'bool') {
      set(def, 'true', written);
      letters = tail;
      continue;
    }
    const value = tail === '' ? rest.shift() : tail;
    return value === undefined ? fail(`flag needs an argument: '${letter}' in ${arg}`) : set(def, value, written);
  }
}

/** Someone who wrote `-config` meant `--config`. */
function longHint(arg: string): string {
  const name = normalise(arg.slice(1).split('=', 1)[0] ?? '');
  return BY_NAME.has(name) ? ` (did you mean --${name}?)` : '';
}

function unknownFlag(name: string): never {
  const hint = nearestName(name, BY_NAME.keys());
  return fail(`unknown flag: --${name}${hint === undefined ? '' : ` (did you mean --${hint}?)`}`);
}

function unknownCommand(word: string): never {
  const hint = nearestName(normalise(word), BY_NAME.keys());
  throw new KubeletError(
    'invalid',
    `unknown command ${JSON.stringify(word)}: the kubelet takes flags only${hint === undefined ? '' : ` (did you mean --${hint}?)`}`,
  );
}

/** Flags that no configuration field carries, each with its value. */
export type KubeletFlags = {
  readonly config: string;
  readonly configDir: string;
  readonly kubeconfig: string;
  readonly bootstrapKubeconfig: string;
  readonly hostnameOverride: string;
  readonly nodeIp: string;
  readonly certDir: string;
  readonly cloudProvider: string;
  readonly rootDir: string;
  readonly seccompDefault: boolean;
  readonly nodeLabels: Readonly<Record<string, string>>;
  readonly lockFile: string;
  readonly exitOnLockContention: boolean;
  readonly runtimeCgroups: string;
  readonly imageCredentialProviderConfig: string;
  readonly imageCredentialProviderBinDir: string;
  readonly minimumContainerTtlDurationMs: number;
  readonly maximumDeadContainersPerContainer: number;
  readonly maximumDeadContainers: number;
  readonly experimentalMounterPath: string;
  readonly experimentalAllocatableIgnoreEviction: boolean;
  readonly housekeepingIntervalMs: number;
  readonly globalHousekeepingIntervalMs: number;
  readonly enableManifestApi: boolean;
  readonly imagePullProgress: boolean;
  readonly nodePageAddress: string;
  readonly nodePagePort: number;
  readonly nodePageWrite: boolean;
  readonly notReadyCondition: boolean;
  readonly podCheckpoint: boolean;
  readonly strictStreamAuthorization: boolean;
};

export function kubeletFlags(given: ReadonlyMap<string, unknown>): KubeletFlags {
  const out: Record<string, unknown> = {};
  for (const def of [...KUBELET_FLAGS, ...CADVISOR_FLAGS, ...OWN_FLAGS]) {
    const camel = def.name.replace(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
    out[def.type === 'duration' ? `${camel}Ms` : camel] = given.get(def.name) ?? def.default;
  }
  return out as KubeletFlags;
}

/** Every flag that was given, in the log's and /flagz's words. */
export const printFlags = (given: ReadonlyMap<string, unknown>): ReadonlyMap<string, string> =>
  new Map(
    FLAGS.map((def) => [
      def.name,
      isSecretFlag(def.name) && given.has(def.name)
        ? '<masked>'
        : printFlag(def.type, given.get(def.name) ?? def.default),
    ]),
  );
