// Bounds of what is built from a pod's own words. Each has a row in docs/SECURITY.md, section "Bounds".
import { Budget } from '../lib/budget.ts';

const KIB = 1024;
const MIB = 1024 * KIB;

/** Linux's PATH_MAX, with the final NUL. */
export const PATH_MAX = 4096;

/**
 * Environment, command, arguments and sub paths of one container. Linux passes at most 6 MiB to a program; the runtime's
 * gRPC messages end at 16 MiB.
 */
const CONTAINER_BYTES = 8 * MIB;

export const containerBudget = (): Budget =>
  new Budget('environment, command, arguments and sub paths of the container', CONTAINER_BYTES);

/** Linux passes 2 MiB to a program by default. Smaller than a container's, because a probe runs every second. */
const PROBE_COMMAND_BYTES = 2 * MIB;

export const probeCommandBudget = (): Budget => new Budget('words of the probe command', PROBE_COMMAND_BYTES);

/** Files that the kubelet writes into the volumes of one pod. A ConfigMap or Secret has 1 MiB at most. */
export const POD_FILES_BYTES = 64 * MIB;

/** Of a message, what `why` looks at: as much as an event has. */
export const EXPLAINED_CHARACTERS = 1024;

/** Of one value of a spec, what the node page shows. */
export const SHOWN_VALUE_CHARACTERS = 4 * KIB;

/** Of one line of a log, what the node page shows. */
export const SHOWN_LINE_CHARACTERS = 16 * KIB;
