// What is wrong with what people gave us, kept until it is right: listed for the API and told once as an event.
import type { EventRecorder } from '../core/events.ts';
import { apiTime } from '../core/time.ts';
import type { Clock } from '../lib/clock.ts';
import type { Logger } from '../lib/logger.ts';

export type SourceProblem = {
  readonly source: string;
  /** The file or URL. */
  readonly where: string;
  readonly severity: 'error' | 'warning';
  readonly line?: number;
  readonly column?: number;
  /** `spec.containers[0].name` */
  readonly field?: string;
  readonly message: string;
  /** When it was first seen. */
  readonly since: string;
};
export type FoundProblem = Omit<SourceProblem, 'source' | 'since'>;

/** `/etc/kubernetes/manifests/web.yaml:12:7: spec.containers[0].name: Required value` */
export function describeProblem(problem: FoundProblem): string {
  const place = problem.line === undefined ? '' : `:${problem.line}:${problem.column ?? 1}`;
  return `${problem.where}${place}: ${problem.message}`;
}

export type ProblemDeps = {
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: Pick<EventRecorder, 'node'>;
};

const MAX_EVENTS_PER_CHANGE = 5;
const EVENT_REASON = 'FailedValidation';

export class ProblemBoard {
  readonly #deps: ProblemDeps;
  readonly #bySource = new Map<string, ReadonlyMap<string, SourceProblem>>();

  constructor(deps: ProblemDeps) {
    this.#deps = deps;
  }

  /** The complete list of one source's problems. Those that are new are logged and sent as events. */
  set(source: string, found: readonly FoundProblem[]): void {
    const before = this.#bySource.get(source) ?? new Map<string, SourceProblem>();
    const now = new Map<string, SourceProblem>();
    const fresh: SourceProblem[] = [];
    for (const problem of found) {
      const key = `${problem.field ?? ''}\n${describeProblem(problem)}`;
      const known = before.get(key);
      const entry = known ?? { source, ...problem, since: apiTime(this.#deps.clock.now()) };
      if (known === undefined && !now.has(key)) fresh.push(entry);
      now.set(key, entry);
    }
    this.#bySource.set(source, now);
    for (const problem of fresh) this.#logOne(problem);
    this.#tell(fresh.filter((p) => p.severity === 'error'));
    for (const [key, problem] of before)
      if (!now.has(key)) this.#deps.log.info('manifest problem gone', { source, where: problem.where });
  }

  problems(): readonly SourceProblem[] {
    return [...this.#bySource.values()].flatMap((m) => [...m.values()]);
  }

  #logOne(problem: SourceProblem): void {
    const { severity, ...fields } = problem;
    if (severity === 'error') this.#deps.log.error('manifest not usable', fields);
    else this.#deps.log.warn('manifest questionable', fields);
  }

  #tell(problems: readonly SourceProblem[]): void {
    for (const problem of problems.slice(0, MAX_EVENTS_PER_CHANGE))
      this.#deps.events.node('Warning', EVENT_REASON, `${problem.source}: ${describeProblem(problem)}`);
    const rest = problems.length - MAX_EVENTS_PER_CHANGE;
    if (rest > 0) this.#deps.events.node('Warning', EVENT_REASON, `${rest} more problems in manifests`);
  }
}
