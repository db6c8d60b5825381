// Tells once, at the start, when the node's resolver file has more than a pod's can take.
import { readFile } from 'node:fs/promises';
import type { EventRecorder } from '../core/events.ts';
import { errnoOf, messageOf } from '../lib/errors.ts';
import { resolvConfProblem } from './dns.ts';

const REASON = 'CheckLimitsForResolvConf';

export async function checkResolvConf(
  path: string,
  clusterDomain: string,
  events: Pick<EventRecorder, 'node'>,
): Promise<void> {
  if (path === '') return;
  const problem = await readFile(path, 'utf8').then(
    (text) => resolvConfProblem(path, text, clusterDomain),
    (err: unknown) => `open ${path}: ${errnoOf(err) === 'ENOENT' ? 'no such file or directory' : messageOf(err)}`,
  );
  if (problem !== undefined) events.node('Warning', REASON, problem);
}
