// POST /checkpoint/{namespace}/{pod}/{container}: has the runtime write a container's state to a file.
import { mkdir, opendir, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import type { CriRuntime } from '../../cri/services.ts';
import { KubeletError } from '../../lib/errors.ts';
import { fullErrorText } from '../../lib/grpc/status.ts';
import type { PodFinder } from '../pods-view.ts';
import { reply } from '../replies.ts';
import type { Endpoint, Exchange } from '../router.ts';

export type CheckpointDeps = {
  readonly finder: PodFinder;
  readonly runtime: Pick<CriRuntime, 'checkpointContainer'>;
  /** `<root>/checkpoints` */
  readonly directory: string;
  /** Of the directory's filesystem; as it is but for tests. */
  readonly room?: (directory: string) => Promise<Room>;
  readonly nowMs: () => number;
};

const DIRECTORY_MODE = 0o700;
/** Archives are as large as the memory of their containers and are nobody's to remove but the administrator's. */
const MAX_ARCHIVES = 32;
const MIN_AVAILABLE = 0.1;

export const checkpointRoutes = (deps: CheckpointDeps): Endpoint => ({
  roots: [{ prefix: '/checkpoint', slashOnly: true }],
  routes: [
    {
      path: '/checkpoint/{namespace}/{pod}/{container}',
      methods: ['POST'],
      handle: (exchange) => serveCheckpoint(deps, exchange),
    },
  ],
});

async function serveCheckpoint(deps: CheckpointDeps, { params, query, response, signal }: Exchange): Promise<void> {
  const { namespace = '', pod: name = '', container = '' } = params;
  const pod = deps.finder.pod(namespace, name);
  if (pod === undefined) return reply(response, 404, 'pod does not exist');
  const { containers, initContainers = [], ephemeralContainers = [] } = pod.spec;
  if (![...containers, ...initContainers, ...ephemeralContainers].some((c) => c.name === container))
    return reply(response, 404, `container ${container} does not exist`);
  const wanted = query.getAll('timeout').at(-1) ?? '';
  if (wanted !== '' && !/^\d{1,9}$/.test(wanted))
    return reply(response, 404, 'cannot parse value of timeout parameter');
  const now = new Date(deps.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z');
  const location = join(deps.directory, `checkpoint-${name}_${namespace}-${container}-${now}.tar`);
  try {
    const { id } = await deps.finder.container(pod, undefined, container, signal);
    await mkdir(deps.directory, { recursive: true, mode: DIRECTORY_MODE });
    await checkRoom(deps.directory, await (deps.room ?? statfs)(deps.directory));
    await deps.runtime.checkpointContainer({ containerId: id, location, timeout: Number(wanted) }, signal);
  } catch (err) {
    if (signal.aborted) throw err;
    const why = `checkpointing of ${namespace}/${name}/${container} failed (${fullErrorText(err)})`;
    return reply(response, 500, why);
  }
  reply(response, 200, JSON.stringify({ items: [location] }), { contentType: 'application/json' });
}

/** Blocks of a filesystem: those that anybody may still use, and all. */
type Room = { readonly bavail: number; readonly blocks: number };

/** Whoever may ask for checkpoints may not fill the node's disk with them (CVE-2025-0426). */
async function checkRoom(directory: string, { bavail, blocks }: Room): Promise<void> {
  let archives = 0;
  for await (const { name } of await opendir(directory)) if (name.endsWith('.tar')) archives++;
  if (archives >= MAX_ARCHIVES)
    throw new KubeletError('exhausted', `${directory} holds ${archives} checkpoint archives: remove some first`);
  if (bavail < blocks * MIN_AVAILABLE)
    throw new KubeletError(
      'exhausted',
      `less than ${MIN_AVAILABLE * 100}% of the filesystem of ${directory} is available`,
    );
}
