// GET /containerLogs/{namespace}/{pod}/{container}: what `kubectl logs` reads. The container is chosen by the pod's
// status, as clients see it; its log file is then read as a stream.
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Pod } from '../../core/pod.ts';
import { KubeletError, messageOf } from '../../lib/errors.ts';
import { logContainerOf } from '../log-container.ts';
import { parseLogQuery, type LogQuery } from '../log-query.ts';
import type { PodFinder } from '../pods-view.ts';
import { reply } from '../replies.ts';
import type { Endpoint, Exchange } from '../router.ts';

/** Where a container's log is and whether more may come. */
export interface LogPlaces {
  /** Rejects when the runtime does not know the container any more. */
  pathOf(containerId: string, signal: AbortSignal): Promise<string>;
  isRunning(pod: Pod, containerId: string): boolean;
}

export type ReadLogs = (
  path: string,
  query: LogQuery,
  isRunning: () => boolean,
  signal: AbortSignal,
) => AsyncIterable<Buffer>;

export type ContainerLogDeps = {
  readonly finder: Pick<PodFinder, 'pod'>;
  readonly places: LogPlaces;
  readonly read: ReadLogs;
  /** Gate PodLogsQuerySplitStreams. */
  readonly splitStreams: boolean;
  readonly nowMs: () => number;
};

export const containerLogRoutes = (deps: ContainerLogDeps): Endpoint => ({
  roots: [{ prefix: '/containerLogs' }],
  routes: [
    {
      path: '/containerLogs/{namespace}/{pod}/{container}',
      methods: ['GET'],
      handle: (exchange) => serveLogs(deps, exchange),
    },
  ],
});

async function serveLogs(deps: ContainerLogDeps, { query, params, response, signal }: Exchange): Promise<void> {
  const parsed = parseLogQuery(query, deps.splitStreams, deps.nowMs());
  if (!parsed.ok) return reply(response, parsed.status, parsed.body);
  const { namespace = '', pod: name = '', container = '' } = params;
  const pod = deps.finder.pod(namespace, name);
  if (pod === undefined) return reply(response, 404, `pod ${JSON.stringify(name)} does not exist`);
  if (!hasContainer(pod, container))
    return reply(response, 404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`);
  const chosen = logContainerOf(pod, container, parsed.options.previous);
  if (!chosen.ok) return refuse(response, chosen.why);
  await stream(deps, pod, chosen, parsed.options, response, signal);
}

async function stream(
  deps: ContainerLogDeps,
  pod: Pod,
  { containerId, fullId }: { readonly containerId: string; readonly fullId: string },
  options: LogQuery,
  response: ServerResponse,
  signal: AbortSignal,
): Promise<void> {
  response.setHeader('Transfer-Encoding', 'chunked');
  // The answer begins before there is a line: who follows a silent container knows at once that it is being followed.
  if (options.stream !== 'Stderr') response.flushHeaders();
  try {
    const path = await pathOf(deps.places, containerId, fullId, signal);
    const running = (): boolean => deps.places.isRunning(pod, containerId);
    for await (const chunk of deps.read(path, options, running, signal))
      if (!response.write(chunk)) await once(response, 'drain', { signal });
    response.end();
  } catch (err) {
    if (signal.aborted) response.destroy();
    else refuse(response, messageOf(err));
  }
}

async function pathOf(places: LogPlaces, id: string, fullId: string, signal: AbortSignal): Promise<string> {
  try {
    return await places.pathOf(id, signal);
  } catch (err) {
    throw new KubeletError('notFound', `unable to retrieve container logs for ${fullId}`, { cause: err });
  }
}

/** By now the answer counts as begun: no length, no type. What goes wrong after lines were sent is told behind them. */
function refuse(response: ServerResponse, why: string): void {
  if (!response.headersSent) {
    response.statusCode = 400;
    response.setHeader('Transfer-Encoding', 'chunked');
  }
  response.end(why);
}

const hasContainer = ({ spec }: Pod, name: string): boolean =>
  [...spec.containers, ...(spec.initContainers ?? []), ...(spec.ephemeralContainers ?? [])].some(
    (c) => c.name === name,
  );
