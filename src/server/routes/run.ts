// POST /run/{namespace}/{pod}[/{uid}]/{container}?cmd=…: runs a command and answers with what it printed.
import type { CriRuntime } from '../../cri/services.ts';
import { fullErrorText } from '../../lib/grpc/status.ts';
import type { PodFinder } from '../pods-view.ts';
import { reply } from '../replies.ts';
import type { Endpoint, Exchange } from '../router.ts';

export type RunDeps = { readonly finder: PodFinder; readonly runtime: Pick<CriRuntime, 'execSync'> };

export const runRoutes = (deps: RunDeps): Endpoint => ({
  roots: [{ prefix: '/run' }],
  routes: ['/run/{namespace}/{pod}/{container}', '/run/{namespace}/{pod}/{uid}/{container}'].map((path) => ({
    path,
    methods: ['POST'],
    handle: (exchange) => serveRun(deps, exchange),
  })),
});

async function serveRun({ finder, runtime }: RunDeps, { params, query, response, signal }: Exchange): Promise<void> {
  const { namespace = '', pod: name = '', container = '', uid } = params;
  const pod = finder.pod(namespace, name);
  if (pod === undefined) return reply(response, 404, 'pod does not exist');
  const command = query.get('cmd') ?? '';
  let answer: Awaited<ReturnType<typeof runtime.execSync>>;
  try {
    const found = await finder.container(pod, uid, container, signal);
    answer = await runtime.execSync({ containerId: found.id, cmd: command.split(' '), timeout: 0 }, signal);
  } catch (err) {
    if (signal.aborted) throw err;
    return reply(response, 500, fullErrorText(err));
  }
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();
  if (answer.exitCode !== 0)
    return reply(response, 500, `command '${command}' exited with ${answer.exitCode}: ${text(answer.stderr)}`);
  reply(response, 200, text(answer.stdout) + text(answer.stderr), { contentType: 'application/json' });
}
