// From the command line to a checked configuration, in the order in which the kubelet has always done it. No state, no
// logging: what there is to say comes back as warnings, what is wrong as one error with everything in it.
import { KubeletError } from '../lib/errors.ts';
import type { KubeletConfig } from './config-fields.ts';
import { FeatureGates, gateErrors } from './feature-gates.ts';
import { kubeletFlags, parseFlags, printFlags, type KubeletFlags } from './flags.ts';
import { withField } from './convert.ts';
import { applyFlags, legacyDefaults, loadConfigFile, mergeDropIns } from './load.ts';
import { settleConfig, type MachineFacts } from './start-checks.ts';
import { validateConfig } from './validate.ts';
import { validateFlags, validateTogether } from './validate-flags.ts';

export type Configuration = {
  readonly config: KubeletConfig;
  /** As it was read, before what follows from it was filled in: for /configz. */
  readonly published: KubeletConfig;
  readonly flags: KubeletFlags;
  readonly gates: FeatureGates;
  /** Deprecated flags, unknown and repeated fields. */
  readonly warnings: readonly string[];
  /** Every flag with its printed value, secrets hidden: for the log and /flagz. */
  readonly flagValues: ReadonlyMap<string, string>;
};

export type Command =
  | { readonly do: 'help' }
  | { readonly do: 'version'; readonly raw: boolean }
  | { readonly do: 'run'; readonly configuration: Configuration };

export async function readCommand(argv: readonly string[], machine: MachineFacts): Promise<Command> {
  const { given, warnings } = parseFlags(argv);
  if (given.get('help') === true) return { do: 'help' };
  const version = given.get('version');
  if (version === 'true' || version === 'raw') return { do: 'version', raw: version === 'raw' };
  return { do: 'run', configuration: await configure(given, warnings, machine) };
}

async function configure(
  given: ReadonlyMap<string, unknown>,
  flagWarnings: readonly string[],
  machine: MachineFacts,
): Promise<Configuration> {
  const flags = kubeletFlags(given);
  const warnings = [...flagWarnings];
  checkGates((given.get('feature-gates') ?? {}) as Record<string, boolean>);
  refuse('failed to validate kubelet flags: ', validateFlags(flags, given), '');
  let config = applyFlags(legacyDefaults(), given);
  if (flags.config !== '') {
    const file = await loadConfigFile(flags.config);
    warnings.push(...file.warnings);
    config = file.config;
  }
  if (flags.configDir !== '') {
    const merged = await mergeDropIns(config, flags.configDir);
    warnings.push(...merged.warnings);
    config = merged.config;
  }
  config = applyFlags(config, given);
  if (flags.seccompDefault) config = { ...config, seccompDefault: true };
  checkGates(config.featureGates);
  const gates = FeatureGates.fromKnown(config.featureGates);
  if (!gates.enabled('LoggingAlphaOptions'))
    for (const field of splitStreams(config, given)) {
      config = withField(config, field, false);
      warnings.push(`${field} has no effect without the feature gate LoggingAlphaOptions`);
    }
  const path = flags.config === '' ? '' : `, path: ${flags.config}`;
  refuse('failed to validate kubelet configuration, error: ', validateConfig(config, gates, machine), path);
  refuse('failed to validate kubelet flags: ', validateTogether(flags, config), '');
  return {
    config: settleConfig(config, machine),
    published: config,
    flags,
    gates,
    warnings,
    flagValues: printFlags(given),
  };
}

/** Of the files: without the gate upstream refuses the flags alone. */
const splitStreams = ({ logging }: KubeletConfig, given: ReadonlyMap<string, unknown>): string[] =>
  (['text', 'json'] as const)
    .filter((format) => logging.options[format].splitStream && !given.has(`log-${format}-split-stream`))
    .map((format) => `logging.options.${format}.splitStream`);

function checkGates(chosen: Readonly<Record<string, boolean>>): void {
  refuse('failed to set feature gates from initial flags-based config: ', gateErrors(chosen), '');
}

/** One error that says everything at once. */
function refuse(prefix: string, problems: readonly string[], suffix: string): void {
  if (problems.length === 0) return;
  const text = problems.length === 1 ? problems[0] : `[${problems.join(', ')}]`;
  throw new KubeletError('invalid', `${prefix}${text}${suffix}`, { detail: { prefix, problems, suffix } });
}
