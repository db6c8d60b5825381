// Ranges of user and group ids for pods with their own user namespace. Each pod has one slot; its mapping is kept in the
// pod's directory so that it is the same after a restart of the agent.
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { goQuote } from '../core/downward.ts';
import { podRef, type Pod } from '../core/pod.ts';
import { writeFileAtomic } from '../lib/atomic-file.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import type { Logger } from '../lib/logger.ts';
import { podDir } from './facts.ts';
import type { UserNamespaceMapping } from './namespaces.ts';

export type IdRange = { readonly first: number; readonly length: number };
export type UserNamespaceOptions = {
  readonly rootDir: string;
  readonly idsPerPod: number;
  readonly maxPods: number;
  readonly range: IdRange;
};

const ID_SPACE = 2 ** 32;
const FILE = 'userns';

/** Everything above the first block, which belongs to the node itself. */
export const defaultIdRange = (idsPerPod: number): IdRange => ({ first: idsPerPod, length: ID_SPACE - idsPerPod });

/** Reads `getsubids kubelet` for users and for groups: `0: kubelet 65536 7208960`. Both must agree. */
export function parseSubIds(users: string, groups: string): IdRange {
  const [u, g] = [users.trim(), groups.trim()];
  const rangeOf = (text: string): IdRange => {
    const lines = text.split('\n');
    const match = /^\d+:\s+\S+\s+(\d+)\s+(\d+)$/.exec(lines[0] ?? '');
    if (lines.length !== 1 || match === null)
      throw new KubeletError(
        'invalid',
        `kubelet must have exactly one range of subordinate ids, got ${JSON.stringify(text)}`,
      );
    return { first: Number(match[1]), length: Number(match[2]) };
  };
  const [users_, groups_] = [rangeOf(u), rangeOf(g)];
  if (users_.first !== groups_.first || users_.length !== groups_.length)
    throw new KubeletError('invalid', `mismatched subuids and subgids for user "kubelet"`);
  return users_;
}

/** Why a range cannot be used, or undefined. */
export function idRangeProblem({ first, length }: IdRange, idsPerPod: number, maxPods: number): string | undefined {
  if (first % idsPerPod !== 0) return `kubelet user assigned ID ${first} is not a multiple of ${idsPerPod}`;
  if (length % idsPerPod !== 0) return `kubelet user assigned IDs length ${length} is not a multiple of ${idsPerPod}`;
  if (first < idsPerPod) return `kubelet user assigned ID ${first} must be greater or equal to ${idsPerPod}`;
  if (length / idsPerPod < maxPods) return `kubelet user assigned IDs are not enough to support ${maxPods} pods`;
  return undefined;
}

export type RestoreDeps = {
  /** First host id of the users of the pod's sandbox; undefined without a sandbox. */
  readonly firstIdOf: (uid: string) => Promise<number | undefined>;
  readonly log: Logger;
};

const outside = (path: string): KubeletError =>
  new KubeletError('invalid', `user namespace record ${path} is outside the range in use`);

type Stored = { hostId: number; containerId: number; length: number };

export class UserNamespaces {
  readonly #o: UserNamespaceOptions;
  readonly #slots = new Map<string, number>();
  readonly #taken = new Set<number>();
  /** Pods that run with a range that is not known. */
  readonly #unknown = new Set<string>();
  /** Pods with a damaged record that nothing uses. */
  readonly #unused = new Set<string>();
  #cursor = 0;

  constructor(options: UserNamespaceOptions) {
    this.#o = options;
  }

  /** The pod's mapping; undefined when it shares the node's users. `handler`: of its RuntimeClass, empty without one. */
  async mappingOf(pod: Pod, supported: boolean, handler = ''): Promise<UserNamespaceMapping | undefined> {
    if (pod.spec.hostUsers !== false) return undefined;
    if (!supported) {
      const who = handler === '' ? 'runtime' : `RuntimeClass handler ${goQuote(handler)}`;
      throw new KubeletError('invalid', `can't set \`spec.hostUsers: false\`, ${who} does not support user namespaces`);
    }
    const uid = pod.metadata.uid ?? '';
    const slot = this.#slots.get(uid) ?? (await this.#adopt(uid)) ?? (await this.#allocate(pod));
    return this.#mapping(slot);
  }

  /**
   * Takes over what is recorded for pods found on disk, before anything new is handed out. Where a record is damaged, the pod's
   * sandbox tells its range (`firstIdOf`); without a sandbox nothing uses one.
   */
  async restore(uids: readonly string[], { firstIdOf, log }: RestoreDeps): Promise<void> {
    await Promise.all(
      uids.map(async (uid) => {
        try {
          await this.#adopt(uid);
        } catch (err) {
          log.error('user namespace record of a pod is not usable', { podUID: uid, path: this.#file(uid), err });
          await this.#adoptFromSandbox(uid, firstIdOf).catch((failure: unknown) => {
            this.#unknown.add(uid);
            log.error('user namespace of a pod is not known, no other pod gets a new one', {
              podUID: uid,
              err: failure,
            });
          });
        }
      }),
    );
  }

  async #adoptFromSandbox(uid: string, firstIdOf: RestoreDeps['firstIdOf']): Promise<void> {
    const first = await firstIdOf(uid);
    if (first === undefined) {
      this.#unused.add(uid);
      return;
    }
    const slot = this.#slotOf(first);
    if (slot === undefined) throw outside(this.#file(uid));
    this.#take(uid, slot);
    // The record is made good; where that fails, the sandbox is asked again at the next start.
    await this.#record(uid, slot).catch(() => undefined);
  }

  async release(uid: string): Promise<void> {
    this.#unknown.delete(uid);
    const slot = this.#slots.get(uid);
    if (slot === undefined) return; // most pods have none, and what is left of a record goes with the pod's directory
    this.#slots.delete(uid);
    this.#taken.delete(slot);
    await rm(this.#file(uid), { force: true });
  }

  /** Gives back the ranges of all pods but these; what is recorded of the others goes with their directories. */
  keepOnly(uids: ReadonlySet<string>): void {
    for (const uid of this.#unknown) if (!uids.has(uid)) this.#unknown.delete(uid);
    for (const uid of this.#unused) if (!uids.has(uid)) this.#unused.delete(uid);
    for (const [uid, slot] of this.#slots)
      if (!uids.has(uid)) {
        this.#slots.delete(uid);
        this.#taken.delete(slot);
      }
  }

  async #adopt(uid: string): Promise<number | undefined> {
    if (this.#unused.has(uid)) return undefined;
    let text: string;
    try {
      text = await readFile(this.#file(uid), 'utf8');
    } catch (err) {
      if (errnoOf(err) === 'ENOENT' || errnoOf(err) === 'ENOTDIR') return undefined;
      throw err;
    }
    const hostId = recordedHostId(text);
    const slot = hostId === undefined ? undefined : this.#slotOf(hostId);
    if (slot === undefined) throw outside(this.#file(uid));
    if (this.#taken.has(slot) && this.#slots.get(uid) !== slot)
      throw new KubeletError('conflict', `user namespace in ${this.#file(uid)} is in use by another pod`);
    this.#take(uid, slot);
    return slot;
  }

  async #allocate(pod: Pod): Promise<number> {
    const uid = pod.metadata.uid ?? '';
    const [unknown] = this.#unknown;
    if (unknown !== undefined)
      throw new KubeletError(
        'unavailable',
        `no user namespace is given out while that of pod ${unknown} is not known: ${this.#file(unknown)} is not usable`,
      );
    if (this.#taken.size >= this.#capacity)
      throw new KubeletError(
        'exhausted',
        `could not find an empty slot to allocate a user namespace for ${podRef(pod)}`,
      );
    while (this.#taken.has(this.#cursor % this.#capacity)) this.#cursor++;
    const slot = this.#cursor++ % this.#capacity;
    this.#take(uid, slot);
    try {
      await mkdir(podDir(this.#o.rootDir, uid), { recursive: true, mode: 0o750 });
      await this.#record(uid, slot);
    } catch (err) {
      this.#slots.delete(uid);
      this.#taken.delete(slot);
      throw err;
    }
    this.#unused.delete(uid);
    return slot;
  }

  async #record(uid: string, slot: number): Promise<void> {
    const { uids } = this.#mapping(slot);
    await writeFileAtomic(this.#file(uid), JSON.stringify({ uidMappings: uids, gidMappings: uids }), 0o600);
  }

  #slotOf(hostId: number): number | undefined {
    const slot = (hostId - this.#o.range.first) / this.#o.idsPerPod;
    return Number.isInteger(slot) && slot >= 0 && slot < this.#capacity ? slot : undefined;
  }

  #take(uid: string, slot: number): void {
    this.#slots.set(uid, slot);
    this.#taken.add(slot);
  }

  get #capacity(): number {
    return Math.floor(this.#o.range.length / this.#o.idsPerPod);
  }

  #mapping(slot: number): { uids: Stored[]; gids: Stored[] } {
    const hostId = this.#o.range.first + slot * this.#o.idsPerPod;
    const one = { hostId, containerId: 0, length: this.#o.idsPerPod };
    return { uids: [one], gids: [one] };
  }

  #file(uid: string): string {
    return join(podDir(this.#o.rootDir, uid), FILE);
  }
}

/** The one host range that both users and groups map to. */
function recordedHostId(text: string): number | undefined {
  try {
    const record = JSON.parse(text) as { uidMappings?: Stored[]; gidMappings?: Stored[] };
    const [u, g] = [record.uidMappings ?? [], record.gidMappings ?? []];
    const hostId = u[0]?.hostId;
    return u.length === 1 && g.length === 1 && hostId === g[0]?.hostId && typeof hostId === 'number'
      ? hostId
      : undefined;
  } catch {
    // Half a file: the caller refuses it by its undefined range.
    return undefined;
  }
}
