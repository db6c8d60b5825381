// All surfaces, in the order in which they get their turn.
import { CONFIGURATION_INPUTS, MANIFEST_INPUTS } from './file-inputs.ts';
import { POD_INPUTS } from './pod-inputs.ts';
import { RUNTIME_INPUTS } from './runtime-inputs.ts';
import type { Surface } from './surface.ts';

export const SURFACES: readonly Surface[] = [POD_INPUTS, RUNTIME_INPUTS, MANIFEST_INPUTS, CONFIGURATION_INPUTS];
