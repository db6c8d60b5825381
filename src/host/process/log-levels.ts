// How much each component logs: one level for all, and patterns for some. Can change while the process runs.

export type ModuleLevel = { readonly filePattern: string; readonly verbosity: number };

export class LogLevels {
  #verbosity: number;
  #modules: readonly { pattern: RegExp; verbosity: number }[] = [];
  readonly #known = new Map<string, number>();

  constructor(verbosity: number, modules: readonly ModuleLevel[]) {
    this.#verbosity = verbosity;
    this.set(verbosity, modules);
  }

  set(verbosity: number, modules: readonly ModuleLevel[]): void {
    this.#verbosity = verbosity;
    this.#modules = modules.map((m) => ({ pattern: globOf(m.filePattern), verbosity: m.verbosity }));
    this.#known.clear();
  }

  /** Changes the level of everything that no pattern names. */
  setVerbosity(verbosity: number): void {
    this.#verbosity = verbosity;
    this.#known.clear();
  }

  get verbosity(): number {
    return this.#verbosity;
  }

  /** The first pattern that fits decides. */
  of = (component: string): number => {
    let level = this.#known.get(component);
    if (level === undefined) {
      level = this.#modules.find((m) => m.pattern.test(component))?.verbosity ?? this.#verbosity;
      this.#known.set(component, level);
    }
    return level;
  };
}

/** `*` and `?` as in file names; `_` and `-` count as the same, since file names here and upstream differ in that. */
function globOf(pattern: string): RegExp {
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
    .replace(/[-_]/g, '[-_]');
  return new RegExp(`^${source}$`);
}
