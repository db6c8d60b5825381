// The runtime's full lists. A node with very many dead containers can make a list larger than the runtime is willing to
// send; then the same is asked for in parts, so that the node goes on and its garbage can be collected.
import { ContainerState, PodSandboxState, type Container, type PodSandbox } from '../cri/gen/cri.ts';
import type { CriRuntime } from '../cri/services.ts';
import { isFault } from '../lib/errors.ts';
import { Semaphore } from '../lib/semaphore.ts';
import { POD_UID } from '../core/runtime-labels.ts';

type Lister = Pick<CriRuntime, 'listPodSandbox' | 'listContainers'>;

const PARALLEL = 8;
const { CONTAINER_CREATED, CONTAINER_EXITED, CONTAINER_RUNNING, CONTAINER_UNKNOWN } = ContainerState;

export type Lists = {
  readonly sandboxes: readonly PodSandbox[];
  readonly containers: readonly Container[];
  /** Without, dead sandboxes or containers may be missing. */
  readonly isWhole: boolean;
};
type Part<T> = { readonly items: readonly T[]; readonly isWhole: boolean };

export async function listAll(runtime: Lister, signal: AbortSignal): Promise<Lists> {
  const [sandboxes, containers] = await Promise.all([
    unlessTooLarge(runtime.listPodSandbox({}, signal).then((r) => r.items)),
    unlessTooLarge(runtime.listContainers({}, signal).then((r) => r.containers)),
  ]);
  const all = sandboxes === undefined ? await sandboxesInParts(runtime, signal) : whole(sandboxes);
  const inAll = containers === undefined ? await containersInParts(runtime, all.items, signal) : whole(containers);
  return { sandboxes: all.items, containers: inAll.items, isWhole: all.isWhole && inAll.isWhole };
}

/** Ready ones in any case; if even the dead ones alone are too many, they have to wait until some are gone. */
async function sandboxesInParts(runtime: Lister, signal: AbortSignal): Promise<Part<PodSandbox>> {
  const inState = (state: PodSandboxState): Promise<readonly PodSandbox[]> =>
    runtime.listPodSandbox({ filter: { state: { state } } }, signal).then((r) => r.items);
  const dead = await unlessTooLarge(inState(PodSandboxState.SANDBOX_NOTREADY));
  const items = [...(await inState(PodSandboxState.SANDBOX_READY)), ...(dead ?? [])];
  return { items, isWhole: dead !== undefined };
}

/** The living of all pods, then the dead pod by pod. */
async function containersInParts(
  runtime: Lister,
  sandboxes: readonly PodSandbox[],
  signal: AbortSignal,
): Promise<Part<Container>> {
  const list = (filter: object): Promise<readonly Container[]> =>
    runtime.listContainers({ filter }, signal).then((r) => r.containers);
  const living = await Promise.all(
    [CONTAINER_RUNNING, CONTAINER_CREATED, CONTAINER_UNKNOWN].map((state) => list({ state: { state } })),
  );
  const uids = new Set(sandboxes.map((s) => s.metadata?.uid ?? ''));
  for (const c of living.flat()) uids.add(c.labels[POD_UID] ?? '');
  const slots = new Semaphore(PARALLEL);
  const dead = await Promise.all(
    [...uids].map((uid) =>
      slots.run(signal, () =>
        unlessTooLarge(list({ state: { state: CONTAINER_EXITED }, labelSelector: { [POD_UID]: uid } })),
      ),
    ),
  );
  return { items: [...living.flat(), ...dead.flatMap((part) => part ?? [])], isWhole: !dead.includes(undefined) };
}

const whole = <T>(items: readonly T[]): Part<T> => ({ items, isWhole: true });

async function unlessTooLarge<T>(list: Promise<T>): Promise<T | undefined> {
  try {
    return await list;
  } catch (err) {
    if (isFault(err, 'exhausted')) return undefined;
    throw err;
  }
}
