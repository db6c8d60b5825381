// Deletes a pod within the milliseconds of a sync: some calls after the agent began to work on the pod's own files.
import type { Action } from '../workload/actions.ts';
import type { World } from './world.ts';

/** A pod whose files are left alone for so long is not deleted. */
const PATIENCE_MS = 60_000;

export function deleteAmid({ api, machine, scheduler }: World, { name, call, afterMs }: Action): void {
  const uid = api.store.get('pods', `default/${String(name)}`)?.object.metadata.uid;
  if (uid === undefined) return;
  let left = Number(call);
  const onCall = (path: string): void => {
    if (!path.includes(uid) || left-- > 0) return;
    machine.onFileCall.delete(onCall);
    const remove = (): void => void api.admin('DELETE', `/api/v1/namespaces/default/pods/${String(name)}`, {});
    scheduler.after(Number(afterMs), remove, scheduler.world);
  };
  machine.onFileCall.add(onCall);
  scheduler.after(PATIENCE_MS, () => machine.onFileCall.delete(onCall), scheduler.world);
}
