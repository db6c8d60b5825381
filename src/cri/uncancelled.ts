// Runtimes do not take it well when the making of something is called off half-way: containers stay behind that can be
// neither started nor removed for seconds. A pod that is to stop waits the moment it takes, but not for a runtime or a
// network plugin that hangs; the end of the agent itself cuts these calls short at once.
import { childScope } from '../lib/abort.ts';
import type { Clock } from '../lib/clock.ts';
import { KubeletError } from '../lib/errors.ts';
import type { CriRuntime } from './services.ts';

/** How long a call goes on after its pod was told to stop. */
const PATIENCE_MS = 10_000;

/** `whole`: aborts when the agent stops. */
export function uncancelled(clock: Clock, cri: CriRuntime, whole: AbortSignal): CriRuntime {
  const kept =
    <Req, Res>(call: (request: Req, signal: AbortSignal) => Promise<Res>) =>
    async (request: Req, signal: AbortSignal): Promise<Res> => {
      const scope = childScope(whole);
      const giveUp = (): void =>
        scope.abort(new KubeletError('deadline', `no answer ${PATIENCE_MS}ms after its pod was to stop`));
      let timer = signal.aborted ? clock.after(PATIENCE_MS, giveUp) : undefined;
      const onAbort = (): void => void (timer = clock.after(PATIENCE_MS, giveUp));
      signal.addEventListener('abort', onAbort, { once: true });
      try {
        return await call(request, scope.signal);
      } finally {
        timer?.cancel();
        signal.removeEventListener('abort', onAbort);
        scope.release();
      }
    };
  return {
    ...cri,
    runPodSandbox: kept((request, signal) => cri.runPodSandbox(request, signal)),
    createContainer: kept((request, signal) => cri.createContainer(request, signal)),
    startContainer: kept((request, signal) => cri.startContainer(request, signal)),
  };
}
