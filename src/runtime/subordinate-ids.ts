// Which host ids may be handed to pods: what the machine's administrator gave to the user `kubelet`, else nearly all.
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { endInput, toolEnvironment } from '../lib/child-environment.ts';
import { errnoOf, KubeletError } from '../lib/errors.ts';
import { defaultIdRange, idRangeProblem, parseSubIds, type IdRange } from './user-namespaces.ts';

const USER = 'kubelet';

export type IdRangeOptions = { readonly idsPerPod: number; readonly maxPods: number };

/** Rejects when the range given to the kubelet cannot be used. */
export async function subordinateIds(options: IdRangeOptions, signal: AbortSignal): Promise<IdRange> {
  const { idsPerPod, maxPods } = options;
  const range = (await givenRange(signal)) ?? defaultIdRange(idsPerPod);
  const problem = idRangeProblem(range, idsPerPod, maxPods);
  if (problem !== undefined) throw new KubeletError('invalid', problem);
  return range;
}

async function givenRange(signal: AbortSignal): Promise<IdRange | undefined> {
  const users = await readFile('/etc/passwd', 'utf8').catch(() => '');
  if (!users.split('\n').some((line) => line.startsWith(`${USER}:`))) return undefined;
  try {
    return parseSubIds(await getsubids([USER], signal), await getsubids(['-g', USER], signal));
  } catch (err) {
    // No such program: nothing was given.
    if (errnoOf(err) === 'ENOENT') return undefined;
    throw err;
  }
}

const getsubids = (args: readonly string[], signal: AbortSignal): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = execFile('getsubids', args, { signal, env: toolEnvironment() }, (err, stdout) =>
      err === null ? resolve(stdout) : reject(err),
    );
    endInput(child);
  });
