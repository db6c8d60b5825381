// The node's resolver file, and a word once, at the start, when it has more than a pod's can take.
import { readFile } from 'node:fs/promises';
import type { EventRecorder } from '../core/events.ts';
import { errnoOf, KubeletError, messageOf } from '../lib/errors.ts';
import { resolvConfProblem } from './dns.ts';

const REASON = 'CheckLimitsForResolvConf';

/** As people look it up. */
const PROBLEMS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
};

/** Fails in upstream's words: without the file no pod starts, and the text is in its event. */
export async function readResolvConf(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (err) {
    const problem = PROBLEMS[errnoOf(err) ?? ''] ?? messageOf(err);
    throw new KubeletError('unavailable', `open ${path}: ${problem}`, { cause: err });
  }
}

export async function checkResolvConf(
  path: string,
  clusterDomain: string,
  events: Pick<EventRecorder, 'node'>,
): Promise<void> {
  if (path === '') return;
  const problem = await readResolvConf(path).then(
    (text) => resolvConfProblem(path, text, clusterDomain),
    (err: unknown) => messageOf(err),
  );
  if (problem !== undefined) events.node('Warning', REASON, problem);
}
