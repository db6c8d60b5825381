// What every part uses to tell people something about an object. The recorder never throws and never blocks.
import type { Pod } from './pod.ts';

export type EventType = 'Normal' | 'Warning';

export interface EventRecorder {
  pod(
    pod: Pod,
    type: EventType,
    reason: string,
    message: string,
    options?: { fieldPath?: string; annotations?: Readonly<Record<string, string>> },
  ): void;
  node(type: EventType, reason: string, message: string): void;
}
