// All surfaces, in the order in which they get their turn.
import { POD_INPUTS } from './pod-inputs.ts';
import type { Surface } from './surface.ts';

export const SURFACES: readonly Surface[] = [POD_INPUTS];
