// The node keeps its lease and is Ready while nothing is wrong.
import { MINUTE, type Invariant } from './violation.ts';

export const nodeIsAlive: Invariant = ({ leaseVersion, isNodeReady, overdue }) => {
  const texts: string[] = [];
  if (overdue(`lease ${leaseVersion}`, MINUTE)) texts.push('the lease is not renewed');
  if (!isNodeReady && overdue('node', 2 * MINUTE)) texts.push('the node is not Ready');
  return texts;
};
