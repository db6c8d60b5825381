// A pod that ended here and whose object the agent itself had removed is never started again, whatever an old list says.
import type { World } from '../world/world.ts';

export function watchGone(world: World, report: (invariant: string, text: string) => void): void {
  const removed = new Map<string, string>();
  const served = world.api.onServed;
  world.api.onServed = (request, status) => {
    served(request, status);
    const { method, path, body } = request;
    if (method !== 'DELETE' || status !== 200 || !/\/pods\/[^/?]+$/.test(path) || body === undefined) return;
    const { preconditions } = JSON.parse(body) as { preconditions?: { uid?: string } };
    removed.set(preconditions?.uid ?? '', path.slice(path.lastIndexOf('/') + 1));
  };
  const called = world.onCall;
  world.onCall = (verb, request) => {
    called(verb, request);
    if (verb !== 'RunPodSandbox') return;
    const { config } = request as { config?: { metadata?: { uid?: string } } };
    const name = removed.get(config?.metadata?.uid ?? '');
    if (name !== undefined)
      report('gone stays gone', `${name} ended here, its object was removed, and it is started again`);
  };
}
