// A node that is going down starts nothing.
import type { Rejection } from './verdict.ts';

export const checkShutdown = (shuttingDown: boolean): Rejection | undefined =>
  shuttingDown ? { reason: 'NodeShutdown', message: 'Pod was rejected as the node is shutting down.' } : undefined;
