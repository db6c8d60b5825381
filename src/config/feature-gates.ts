// Feature gates as a value: decided once from flags and file, then handed to whoever asks. Nothing global.
import { GATES, GATE_NEEDS, type Stage } from './gate-table.ts';
import { nearestName } from './nearest.ts';

const GROUPS: Readonly<Record<string, Stage>> = { AllAlpha: 'Alpha', AllBeta: 'Beta' };

export class FeatureGates {
  readonly #values: ReadonlyMap<string, boolean>;
  readonly #groups: ReadonlyMap<string, boolean>;

  private constructor(values: ReadonlyMap<string, boolean>, groups: ReadonlyMap<string, boolean>) {
    this.#values = values;
    this.#groups = groups;
  }

  /** Unknown and locked names are ignored: use after `gateErrors` found none, or for defaults before it is asked. */
  static fromKnown(chosen: Readonly<Record<string, boolean>> = {}): FeatureGates {
    const values = new Map<string, boolean>();
    for (const [name, gate] of GATES) values.set(name, gate.on);
    for (const [group, stage] of Object.entries(GROUPS))
      if (chosen[group] !== undefined)
        for (const [name, gate] of GATES) if (gate.stage === stage && !gate.locked) values.set(name, chosen[group]);
    for (const [name, value] of Object.entries(chosen)) if (GATES.get(name)?.locked === false) values.set(name, value);
    return new FeatureGates(values, new Map(Object.keys(GROUPS).map((group) => [group, chosen[group] === true])));
  }

  /** Whether the gate is on. Asking for a name that does not exist is a mistake in the program. */
  enabled(name: string): boolean {
    const value = this.#values.get(name);
    if (value === undefined) throw new Error(`no feature gate ${name}`);
    return value;
  }

  /** Every gate with its value, the groups among them, for `kubernetes_feature_enabled`. */
  entries(): readonly { name: string; stage: Stage; enabled: boolean }[] {
    return [...this.#groups, ...this.#values].map(([name, enabled]) => ({
      name,
      stage: GATES.get(name)?.stage ?? GROUPS[name] ?? 'GA',
      enabled,
    }));
  }
}

/** What is wrong with a map of gates: unknown names and locked ones. Nothing else is worth checking if there is any. */
export function gateErrors(chosen: Readonly<Record<string, boolean>>): string[] {
  const errors: string[] = [];
  for (const [name, value] of Object.entries(chosen)) {
    if (Object.hasOwn(GROUPS, name)) continue;
    const gate = GATES.get(name);
    if (gate === undefined) {
      const hint = nearestName(name, GATES.keys());
      errors.push(`unrecognized feature gate: ${name}${hint === undefined ? '' : ` (did you mean ${hint}?)`}`);
    } else if (gate.locked && gate.on !== value)
      errors.push(`cannot set feature gate ${name} to ${value}, feature is locked to ${gate.on}`);
  }
  return errors;
}

/** Gates that are on although a gate they need is off. */
export function dependencyErrors(gates: FeatureGates): string[] {
  const errors: string[] = [];
  for (const [name, needs] of Object.entries(GATE_NEEDS)) {
    const missing = needs.filter((need) => !gates.enabled(need));
    if (gates.enabled(name) && missing.length > 0)
      errors.push(`${name} is enabled, but depends on features that are disabled: [${missing.join(' ')}]`);
  }
  return errors;
}
