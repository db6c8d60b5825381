// How well a pod does, and the small rules workloads share.
import { createHash } from 'node:crypto';
import { parseTimeMs } from '../../core/time.ts';
import { recordsAt, textAt, type ApiObject, type Json } from '../api/objects.ts';

export const isFinished = (pod: ApiObject): boolean => ['Succeeded', 'Failed'].includes(textAt(pod, 'status', 'phase'));
export const isActive = (pod: ApiObject): boolean => !isFinished(pod) && pod.metadata.deletionTimestamp === undefined;

const readyCondition = (pod: ApiObject): Json | undefined =>
  recordsAt(pod, 'status', 'conditions').find((c) => c['type'] === 'Ready' && c['status'] === 'True');
export const isPodReady = (pod: ApiObject): boolean => readyCondition(pod) !== undefined;
/** Ready for at least `minSeconds`. */
export function isAvailable(pod: ApiObject, minSeconds: number, nowMs: number): boolean {
  const ready = readyCondition(pod);
  if (ready === undefined) return false;
  return minSeconds === 0 || nowMs - parseTimeMs(textAt(ready, 'lastTransitionTime')) >= minSeconds * 1000;
}

/** A short name for a template: equal templates have equal hashes. */
export function templateHash(template: Json): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(sorted(template)))
    .digest();
  const letters = 'bcdfghjklmnpqrstvwxz2456789';
  return [...digest.subarray(0, 10)].map((byte) => letters[byte % letters.length]).join('');
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, v]) => [k, sorted(v)]),
  );
}

/** Replaces the condition of the same type; its transition time moves only with its status. */
export function withCondition(conditions: readonly Json[], next: Json, now: string): Json[] {
  const old = conditions.find((c) => c['type'] === next['type']);
  const same = old !== undefined && old['status'] === next['status'];
  const unchanged = same && old['reason'] === next['reason'] && old['message'] === next['message'];
  if (unchanged) return [...conditions];
  const made = { ...next, lastUpdateTime: now, lastTransitionTime: same ? old['lastTransitionTime'] : now };
  return [...conditions.filter((c) => c !== old), made];
}
