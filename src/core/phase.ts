// Phases a pod never leaves again.
import type { PodPhase, PodStatus } from './pod.ts';

export const isFinalPhase = (phase: PodPhase | undefined): boolean => phase === 'Succeeded' || phase === 'Failed';

export const hasEnded = (status: PodStatus | undefined): boolean => isFinalPhase(status?.phase);
