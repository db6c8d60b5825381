// What a stateful set does next: which ordinal is made, which pod goes. Pure.

export type Member = {
  readonly ordinal: number;
  readonly revision: string;
  readonly state: 'pending' | 'available' | 'finished' | 'deleting';
};

export type StatefulWish = {
  readonly start: number;
  readonly replicas: number;
  /** One after the other, each when the one before is available; else all at once. */
  readonly ordered: boolean;
  /** Pods of other revisions are replaced by themselves. */
  readonly rolling: boolean;
  /** Ordinals below `start + partition` stay at the old revision. */
  readonly partition: number;
  readonly revision: string;
};

export type StatefulStep =
  | { readonly do: 'create'; readonly ordinal: number; readonly old: boolean }
  | { readonly do: 'delete'; readonly ordinal: number };

/** The steps that can be taken now; after any change of a pod the question is asked again. */
export function nextSteps(wish: StatefulWish, members: readonly Member[]): readonly StatefulStep[] {
  const growing = fillSteps(wish, members);
  if (growing.wait && wish.ordered) return growing.steps;
  const shrinking = shrinkSteps(wish, members);
  if (shrinking.length > 0) return [...growing.steps, ...shrinking];
  return growing.steps.length > 0 || surplus(wish, members).length > 0 ? growing.steps : updateSteps(wish, members);
}

function fillSteps(wish: StatefulWish, members: readonly Member[]): { steps: readonly StatefulStep[]; wait: boolean } {
  const { start, replicas, ordered, rolling, partition } = wish;
  const steps: StatefulStep[] = [];
  let wait = false;
  for (let ordinal = start; ordinal < start + replicas && !(ordered && wait); ordinal++) {
    const member = members.find((m) => m.ordinal === ordinal);
    wait ||= member?.state !== 'available';
    if (member === undefined) steps.push({ do: 'create', ordinal, old: rolling && ordinal < start + partition });
    else if (member.state === 'finished') steps.push({ do: 'delete', ordinal });
  }
  return { steps, wait };
}

const surplus = ({ start, replicas }: StatefulWish, members: readonly Member[]): readonly Member[] =>
  members.filter((m) => m.ordinal < start || m.ordinal >= start + replicas).toSorted((a, b) => b.ordinal - a.ordinal);

/** The highest first; in order, only when the one above is gone. */
function shrinkSteps(wish: StatefulWish, members: readonly Member[]): readonly StatefulStep[] {
  const all = surplus(wish, members);
  const chosen = wish.ordered ? all.slice(0, 1) : all;
  return chosen.filter((m) => m.state !== 'deleting').map(({ ordinal }) => ({ do: 'delete', ordinal }));
}

/** From the highest down to the partition, one at a time; what is not available holds up those below it. */
function updateSteps(wish: StatefulWish, members: readonly Member[]): readonly StatefulStep[] {
  if (!wish.rolling) return [];
  const first = wish.start + wish.partition;
  for (let ordinal = wish.start + wish.replicas - 1; ordinal >= first; ordinal--) {
    const member = members.find((m) => m.ordinal === ordinal);
    if (member === undefined || member.state === 'deleting') return [];
    if (member.revision !== wish.revision) return [{ do: 'delete', ordinal }];
    if (member.state !== 'available') return [];
  }
  return [];
}

/** The ordinal in the name of a pod; undefined for the pods of others. */
export function ordinalOf(set: string, pod: string): number | undefined {
  const tail = pod.startsWith(`${set}-`) ? pod.slice(set.length + 1) : '';
  return /^(0|[1-9]\d*)$/.test(tail) ? Number(tail) : undefined;
}
