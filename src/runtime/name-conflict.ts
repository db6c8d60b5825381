// A create that was cut off may have left its name taken in the runtime. The stale owner is found and removed, and the
// create tried once more with the same name.
import type { CriRuntime } from '../cri/services.ts';
import { ContainerState, PodSandboxState } from '../cri/gen/cri.ts';
import { isFault } from '../lib/errors.ts';
import { GrpcError } from '../lib/grpc/status.ts';
import { CONTAINER_NAME, POD_UID } from '../core/runtime-labels.ts';

/** Runtimes have no code for this; containerd and CRI-O both speak of a reserved name. */
const isNameTaken = (err: unknown): boolean =>
  err instanceof GrpcError &&
  (err.codeName === 'AlreadyExists' || (/\bname\b/i.test(err.message) && /\breserved?\b/i.test(err.message)));

type Named = { readonly uid: string; readonly attempt: number };

export function withFreeSandboxName<T>(
  cri: CriRuntime,
  owner: Named,
  create: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  return onceMore(create, () => removeStaleSandbox(cri, owner, signal));
}

/** `makeRoom` tells whether there was a leftover to remove. */
async function onceMore<T>(create: () => Promise<T>, makeRoom: () => Promise<boolean>): Promise<T> {
  try {
    return await create();
  } catch (err) {
    if (!isNameTaken(err) || !(await makeRoom())) throw err;
    return create();
  }
}

/** A sandbox in which something runs is no leftover: it stays, and the next read of the runtime will show it. */
async function removeStaleSandbox(cri: CriRuntime, { uid, attempt }: Named, signal: AbortSignal): Promise<boolean> {
  const { items } = await cri.listPodSandbox({ filter: { labelSelector: { [POD_UID]: uid } } }, signal);
  const stale = items.filter((s) => s.metadata?.uid === uid && s.metadata.attempt === attempt);
  for (const sandbox of stale) {
    const filter = { podSandboxId: sandbox.id, state: { state: ContainerState.CONTAINER_RUNNING } };
    if ((await cri.listContainers({ filter }, signal)).containers.length > 0) return false;
    if (sandbox.state === PodSandboxState.SANDBOX_READY) await cri.stopPodSandbox({ podSandboxId: sandbox.id }, signal);
    await ignoringAbsence(cri.removePodSandbox({ podSandboxId: sandbox.id }, signal));
  }
  return stale.length > 0;
}

export function withFreeContainerName<T>(
  cri: CriRuntime,
  owner: Named & { readonly name: string },
  create: () => Promise<T>,
  signal: AbortSignal,
): Promise<T> {
  return onceMore(create, () => removeStaleContainer(cri, owner, signal));
}

/** A running owner is no leftover: it stays, and the next read of the runtime will show it. */
async function removeStaleContainer(
  cri: CriRuntime,
  { uid, name, attempt }: Named & { readonly name: string },
  signal: AbortSignal,
): Promise<boolean> {
  const filter = { labelSelector: { [POD_UID]: uid, [CONTAINER_NAME]: name } };
  const { containers } = await cri.listContainers({ filter }, signal);
  const stale = containers.filter(
    (c) => c.metadata?.attempt === attempt && c.state !== ContainerState.CONTAINER_RUNNING,
  );
  for (const container of stale) await ignoringAbsence(cri.removeContainer({ containerId: container.id }, signal));
  return stale.length > 0;
}

async function ignoringAbsence(call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (err) {
    if (!isFault(err, 'notFound')) throw err;
  }
}
