// One row of the matrix from beginning to end: pods that run, then the part freezes, a pod is deleted, another is evicted
// because memory runs short, probes and node statuses go on, and the agent is told to stop.
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { timePasses, until, untilSeen } from '../../harness/until.ts';
import { FrozenNode, type FrozenNodeOptions } from './frozen-node.ts';
import { COLUMNS, type Column, type Part, type Row } from './rows.ts';

/** For as long probes and statuses are watched at least. */
const WATCH_MS = 6000;
/** After this a cell has failed whatever its bound. */
const GIVE_UP_MS = 45_000;

export class RowRun {
  readonly #row: Row;
  readonly #options: FrozenNodeOptions;
  readonly #cells = new Map<Column, PromiseWithResolvers<number>>();
  readonly #took = new Map<Column, number>();
  #node: FrozenNode | undefined;
  #part: Part | undefined;
  #done: Promise<void> = Promise.resolve();

  constructor(row: Row, options: FrozenNodeOptions) {
    this.#row = row;
    this.#options = options;
    for (const column of COLUMNS) this.#cells.set(column, Promise.withResolvers());
    for (const { promise } of this.#cells.values()) promise.catch(() => undefined); // whoever asks for the cell is told
  }

  begin(): void {
    this.#done = this.#run().catch((err: unknown) => {
      const log = this.#node?.log().split('\n').slice(-5).join('\n') ?? '';
      for (const { reject } of this.#cells.values()) reject(new Error(`${String(err)}\n${log}`, { cause: err }));
    });
  }

  /** How long it took. */
  cell(column: Column): Promise<number> {
    return this.#cells.get(column)?.promise ?? Promise.resolve(Infinity);
  }

  async finished(): Promise<ReadonlyMap<Column, number>> {
    await this.#done;
    return this.#took;
  }

  /** `FAULT_LOG` names a folder where the kubelets' logs go for a closer look. */
  async close(): Promise<void> {
    await this.#done;
    const keep = process.env['FAULT_LOG'];
    if (keep !== undefined) writeFileSync(join(keep, `${this.#row.name}.log`), this.#node?.log() ?? '');
    if (this.#node !== undefined) await this.#part?.thaw(this.#node);
    await this.#node?.stop();
    await this.#part?.close?.();
  }

  async #run(): Promise<void> {
    const { name, dir } = this.#options;
    const part = await this.#row.open(dir);
    this.#part = part;
    const node = new FrozenNode({ ...this.#options, ...part.options });
    this.#node = node;
    await node.start();
    const [subject, victim, probed] = [`subject-${name}`, `victim-${name}`, `probed-${name}`];
    await node.create(node.probedPod(probed));
    const others = async (): Promise<void> => {
      const spec = part.spec ?? {};
      const pod = node.pod(subject, spec);
      if (this.#row.isStatic === true) writeFileSync(join(node.manifests, 'subject.json'), JSON.stringify(pod));
      else await node.create(pod);
      await node.create(node.pod(victim, { ...spec, priorityClassName: '' }));
    };
    if (this.#row.pods === 'running') {
      await others();
      await untilSeen(
        'they run',
        () => [subject, victim].filter((pod) => !node.runs(this.#runtimeName(pod))),
        (waiting) => waiting.length === 0,
      );
    }
    await untilSeen(
      'the probe is due',
      () => node.probes,
      (seen) => seen.length > 0,
    );
    await part.freeze(node);
    const frozenAt = performance.now();
    if (this.#row.pods === 'starting') {
      await others();
      await until('they wait', async () => {
        const [a, b] = await Promise.all([node.shown(subject), node.shown(victim)]);
        return a?.status?.startTime !== undefined && b?.status?.startTime !== undefined;
      });
      await until('they are held up', () => part.reached?.(node) ?? true);
    }
    for (let i = 0; i < (this.#row.crowd ?? 0); i++) await node.create(node.pod(`crowd-${i}-${name}`, part.spec ?? {}));
    await this.#whileFrozen(node, subject, victim, frozenAt);
    await this.#afterwards(node, part, subject);
    await this.#stop(node, part);
  }

  /** A static pod is called after its node. */
  #runtimeName(pod: string): string {
    return this.#row.isStatic === true && pod.startsWith('subject') ? `${pod}-${this.#options.name}` : pod;
  }

  async #whileFrozen(node: FrozenNode, subject: string, victim: string, frozenAt: number): Promise<void> {
    const begun = performance.now();
    node.memory('short');
    if (this.#row.isStatic === true) rmSync(join(node.manifests, 'subject.json'));
    else await node.delete(subject);
    const evicted = this.#measure('pod evicted', () => this.#isEvicted(node, victim)).finally(() =>
      node.memory('enough'),
    );
    const deleted =
      this.#row.bounds['pod deleted'].from === 'thawed'
        ? undefined
        : this.#measure('pod deleted', () => this.#isGone(node, subject));
    await Promise.all([evicted, deleted, timePasses(WATCH_MS - (performance.now() - begun), 'measuring')]);
    const end = performance.now();
    this.#tell('probe due', longestGap(frozenAt, node.probes, end));
    if (this.#row.bounds['node status due'].from === 'frozen')
      this.#tell('node status due', longestGap(frozenAt, await node.statusWrites(), end));
  }

  async #isEvicted(node: FrozenNode, victim: string): Promise<boolean> {
    const { evictionShows = 'status' } = this.#row;
    if (evictionShows === 'runtime') return !node.runs(victim);
    if (evictionShows === 'event') return node.eventOf(victim, 'Evicted');
    return (await node.shown(victim))?.status?.reason === 'Evicted';
  }

  async #isGone(node: FrozenNode, subject: string): Promise<boolean> {
    return this.#row.isStatic === true
      ? !node.runs(this.#runtimeName(subject))
      : (await node.shown(subject)) === undefined;
  }

  /** What can only be done when the part answers again. */
  async #afterwards(node: FrozenNode, part: Part, subject: string): Promise<void> {
    const { bounds } = this.#row;
    const [deleted, status] = [bounds['pod deleted'].from === 'thawed', bounds['node status due'].from === 'thawed'];
    if (!deleted && !status) return;
    await part.thaw(node);
    const thawedAt = performance.now();
    if (deleted) await this.#measure('pod deleted', () => this.#isGone(node, subject));
    if (status)
      await this.#measure('node status due', async () => (await node.statusWrites()).some((at) => at > thawedAt));
    await part.freeze(node);
  }

  async #stop(node: FrozenNode, part: Part): Promise<void> {
    node.signal('SIGTERM');
    if (this.#row.bounds['agent stopped'].from === 'thawed') {
      await timePasses(1000, 'an outage'); // it stops while nothing can be written
      await part.thaw(node);
    }
    await this.#measure('agent stopped', () => !node.running && !(part.children?.() ?? []).some(isAlive));
  }

  async #measure(column: Column, check: () => Promise<boolean> | boolean): Promise<void> {
    const begun = performance.now();
    try {
      await until(column, check, GIVE_UP_MS);
      this.#tell(column, performance.now() - begun);
    } catch (err) {
      this.#took.set(column, Infinity);
      this.#cells.get(column)?.reject(err);
    }
  }

  #tell(column: Column, ms: number): void {
    this.#took.set(column, ms);
    this.#cells.get(column)?.resolve(ms);
  }
}

const isAlive = (pid: number): boolean => existsSync(`/proc/${pid}`);

/** The longest time without any of these moments between two others. */
function longestGap(from: number, moments: readonly number[], to: number): number {
  const inside = moments.filter((at) => at > from && at < to).toSorted((a, b) => a - b);
  let longest = 0;
  let last = from;
  for (const at of [...inside, to]) {
    longest = Math.max(longest, at - last);
    last = at;
  }
  return longest;
}
