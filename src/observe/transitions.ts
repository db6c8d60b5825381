// What happened between two reads of a pod, in the words of the pod lifecycle event generator. Pure.
import type { ContainerId, SandboxId } from '../core/ids.ts';
import type { PodSnapshot } from '../core/snapshot.ts';
import { sameData } from '../lib/same-data.ts';

export type PlegEvent = {
  readonly type: 'ContainerStarted' | 'ContainerDied' | 'ContainerRemoved';
  /** A container's or a sandbox's id. */
  readonly id: ContainerId | SandboxId;
  /** Absent for a sandbox. */
  readonly containerName?: string;
};

type LifeState = 'running' | 'exited' | 'unknown' | 'gone';
type Life = { readonly state: LifeState; readonly id: PlegEvent['id']; readonly containerName?: string };

export function transitions(before: PodSnapshot | undefined, after: PodSnapshot | undefined): readonly PlegEvent[] {
  const old = livesOf(before);
  const now = livesOf(after);
  const events: PlegEvent[] = [];
  for (const [id, life] of now) events.push(...eventsOf(life, old.get(id)?.state ?? 'gone', life.state));
  for (const [id, life] of old) if (!now.has(id)) events.push(...eventsOf(life, life.state, 'gone'));
  return events;
}

function eventsOf(life: Life, before: LifeState, after: LifeState): readonly PlegEvent[] {
  if (before === after) return [];
  const event = (type: PlegEvent['type']): PlegEvent => ({
    type,
    id: life.id,
    ...(life.containerName === undefined ? {} : { containerName: life.containerName }),
  });
  switch (after) {
    case 'running':
      return [event('ContainerStarted')];
    case 'exited':
      return [event('ContainerDied')];
    case 'unknown':
      return [];
    case 'gone':
      return before === 'exited' ? [event('ContainerRemoved')] : [event('ContainerDied'), event('ContainerRemoved')];
  }
}

function livesOf(snapshot: PodSnapshot | undefined): Map<string, Life> {
  const lives = new Map<string, Life>();
  for (const c of snapshot?.containers ?? [])
    lives.set(c.id, { id: c.id, containerName: c.name, state: c.state === 'created' ? 'unknown' : c.state });
  for (const s of snapshot?.sandboxes ?? []) lives.set(s.id, { id: s.id, state: s.ready ? 'running' : 'exited' });
  return lives;
}

/** Whether two reads say the same, whatever their versions. */
export function sameObservation(a: PodSnapshot | undefined, b: PodSnapshot | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return sameData({ ...a, version: 0 }, { ...b, version: 0 });
}
